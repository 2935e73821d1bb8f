"""How each CLI wants to be called by somebody who will not be there to answer."""

from collections.abc import Mapping

from rooda.agents.accounts import is_on
from rooda.agents.flags import flag_value, has_flag
from rooda.doctor.findings import Mark
from rooda.doctor.habit import Habits, Need, Rule, Situation, Spoiler, Words


def _lacks_verbose(at: Situation) -> bool:
    is_stream = flag_value(at.words, "--output-format") == "stream-json"
    return is_stream and not has_flag(at.words, "--verbose")


def _is_root_refused(at: Situation) -> bool:
    skips = has_flag(at.words, "--dangerously-skip-permissions")
    bypasses = flag_value(at.words, "--permission-mode") == "bypassPermissions"
    # Of the first it takes nothing but a 1.
    is_sandbox = at.environ.get("IS_SANDBOX") == "1"
    lifted = is_sandbox or is_on(at.environ, "CLAUDE_CODE_BUBBLEWRAP")
    return at.is_root and (skips or bypasses) and not lifted


def _has_prompt_of_its_own(at: Situation) -> bool:
    """Whether a word behind `codex exec` is none of its flags, their values, or `-`."""
    rest = iter(at.words[_index(at.words, "exec", "e") + 1 :])
    for word in rest:
        if word in _CODEX_TAKING:
            next(rest, None)
        elif not word.startswith("-"):
            return True
    return False


def _index(words: Words, *names: str) -> int:
    return next((place for place, word in enumerate(words) if word in names), len(words))


def _is_not_trusted(at: Situation) -> bool:
    return not has_flag(at.words, "--skip-trust") and not is_on(
        at.environ, "GEMINI_CLI_TRUST_WORKSPACE"
    )


def _adds_words(at: Situation) -> bool:
    return bool(flag_value(at.words, "-p", "--prompt"))


_CODEX_TAKING = frozenset(
    {"-c", "--config", "--enable", "--disable", "-i", "--image", "-m", "--model", "-p"}
    | {"--profile", "-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir"}
    | {"--local-provider", "--output-schema", "--color", "-o", "--output-last-message"}
)
_ASKS = "it would ask before it uses a tool, and nobody is there: the tool is denied"
_OPENS = "it opens its screen, for a person at a terminal"
_INTERACTIVE = "asks for its screen, for a person at a terminal"
_ADDS_WORDS = Rule(
    "prompt",
    Mark.WARNING,
    _adds_words,
    "-p adds its words to every prompt",
    "Leave -p out: the prompt comes on standard input",
)

HABITS: Mapping[str, Habits] = {
    "claude": Habits(
        grants=("--dangerously-skip-permissions", "--permission-mode=bypassPermissions"),
        some=(
            "--allowedTools",
            "--allowed-tools",
            "--permission-mode=acceptEdits",
            "--permission-mode=auto",
            "--permission-prompt-tool",
        ),
        without=_ASKS,
        needs=(Need(("-p", "--print"), f"without -p {_OPENS}", "claude -p"),),
        rules=(
            Rule(
                "output",
                Mark.PROBLEM,
                _lacks_verbose,
                "it refuses --output-format stream-json without --verbose",
                "Add --verbose",
            ),
            Rule(
                "root",
                Mark.PROBLEM,
                _is_root_refused,
                "it refuses to skip permissions for root, and you are root",
                "Run rooda as an ordinary user; in a container that is a sandbox of its own, set "
                "IS_SANDBOX=1 (or CLAUDE_CODE_BUBBLEWRAP=1), for example below `loop.env`",
            ),
        ),
    ),
    "codex": Habits(
        grants=(
            "--dangerously-bypass-approvals-and-sandbox",
            "--yolo",
            "--sandbox=danger-full-access",
            "-s=danger-full-access",
        ),
        some=(
            "--full-auto",
            "--approve-for-me",
            "--sandbox=workspace-write",
            "-s=workspace-write",
            "--profile",
            "-p",
            "*sandbox_mode",
        ),
        without="it may only read: every tool that writes is denied",
        needs=(Need(("exec", "e"), f"without exec {_OPENS}", "codex exec"),),
        rules=(
            Rule(
                "prompt",
                Mark.WARNING,
                _has_prompt_of_its_own,
                "it has a prompt on its command line, and standard input is only added to that",
                "Write `-` in its place, or nothing",
            ),
        ),
    ),
    "gemini": Habits(
        grants=("--yolo", "-y", "--approval-mode=yolo"),
        some=("--approval-mode=auto_edit", "--allowed-tools", "--policy"),
        without=_ASKS,
        spoilers=(Spoiler(("-i", "--prompt-interactive"), _INTERACTIVE),),
        rules=(
            _ADDS_WORDS,
            Rule(
                "permissions",
                Mark.WARNING,
                _is_not_trusted,
                "in a folder that it was not told to trust, it takes no notice of --yolo",
                "Add --skip-trust",
            ),
        ),
    ),
    "opencode": Habits(
        grants=("--auto", "--dangerously-skip-permissions"),
        some=(),
        without=_ASKS,
        needs=(Need(("run",), f"without run {_OPENS}", "opencode run"),),
        spoilers=(Spoiler(("-i", "--interactive"), _INTERACTIVE),),
    ),
    "qwen": Habits(
        grants=("--yolo", "-y", "--approval-mode=yolo"),
        some=("--approval-mode=auto-edit", "--allowed-tools"),
        without=_ASKS,
        spoilers=(Spoiler(("-i", "--prompt-interactive"), _INTERACTIVE),),
        rules=(_ADDS_WORDS,),
    ),
    "copilot": Habits(
        grants=("--allow-all", "--allow-all-tools", "--yolo"),
        some=("--allow-tool",),
        without=_ASKS,
        spoilers=(
            Spoiler(("-i", "--interactive"), _INTERACTIVE),
            Spoiler(("-p", "--prompt"), "takes the prompt from the command line"),
        ),
    ),
    "cursor-agent": Habits(
        grants=("-f", "--force", "--yolo"),
        some=(),
        without=_ASKS,
        needs=(Need(("-p", "--print"), f"without -p {_OPENS}", "cursor-agent -p"),),
    ),
    "kiro-cli": Habits(
        grants=("--trust-all-tools", "-a"),
        some=("--trust-tools",),
        without=_ASKS,
        needs=(
            Need(("chat",), f"without chat {_OPENS}", "kiro-cli chat --no-interactive"),
            Need(
                ("--no-interactive",),
                f"without --no-interactive {_OPENS}",
                "kiro-cli chat --no-interactive",
            ),
        ),
    ),
}
