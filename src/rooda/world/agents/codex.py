"""OpenAI Codex (`codex exec`)."""

import re
from collections.abc import Sequence

from rooda.world.agents.adapter import Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Form, Tokens, Usage
from rooda.world.agents.facts import (
    AgentFacts,
    CommandLine,
    FlagRule,
    SandboxNeeds,
    ToolPermissions,
    has_flag,
    needs_flag,
    without_flags,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import complaint, fault_in, last_plain_line
from rooda.world.agents.json_events import Event, count, label, part, parts, text

_RETRY = re.compile(r"(?:Reconnecting|Retrying)\b")
_ERROR = "ERROR: "
_MODEL = re.compile(r"^model: (\S{1,200})$", re.MULTILINE)
_SESSION = re.compile(r"^session id: (\S{1,200})$", re.MULTILINE)
_USED = re.compile(r"^tokens used\n(\d[\d,]{0,14})\s*\Z", re.MULTILINE)
_FLAGS_WITH_VALUE = frozenset(
    {"-c", "--config", "--enable", "--disable", "-i", "--image", "-m", "--model", "-p"}
    | {"--profile", "-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir"}
    | {"--local-provider", "--output-schema", "--color", "-o", "--output-last-message"}
)
_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call")
# Codex also prints an event when one of these starts.
_STARTED = ("command_execution", "mcp_tool_call", "collab_tool_call")


def _after_exec(words: Sequence[str]) -> int:
    """Return the place after the word `exec`; the end if there is none."""
    return next((at for at, word in enumerate(words, 1) if word in ("exec", "e")), len(words))


def _has_own_prompt(line: CommandLine) -> bool:
    """Return whether a word after `exec` is a prompt: no flag, no flag's value and not `-`."""
    rest = iter(line.words[_after_exec(line.words) :])
    for word in rest:
        if word in _FLAGS_WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return True
    return False


class Codex(Adapter):
    """OpenAI Codex."""

    name = "codex"
    facts = AgentFacts(
        install="npm install -g @openai/codex",
        nesting=("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
        payers={
            "CODEX_API_KEY": "the API key, by use, not a subscription",
            "OPENAI_API_KEY": "the API key, by use, if codex is configured to use it",
        },
        otherwise="the account that `codex login` chose",
        advice={
            FailureKind.AUTH: "Run `codex login`, or set CODEX_API_KEY to a key that is valid",
            FailureKind.USAGE: "See `codex exec --help` for its flags",
        },
    )
    permissions = ToolPermissions(
        all_tools=(
            _BYPASS,
            "--yolo",
            "--sandbox=danger-full-access",
            "-s=danger-full-access",
        ),
        some_tools=(
            "--full-auto",
            "--approve-for-me",
            "--sandbox=workspace-write",
            "-s=workspace-write",
            "--profile",
            "-p",
            "*sandbox_mode",
        ),
        otherwise="it may only read: every tool that writes is denied",
    )
    flag_rules = (
        needs_flag("exec", "e", write="codex exec"),
        FlagRule(
            "prompt",
            _has_own_prompt,
            "it has a prompt on its command line, and appends standard input to that prompt",
            "Write `-` in place of the prompt, or nothing",
        ),
    )

    needs = SandboxNeeds(
        credentials=(".codex/auth.json",),
        settings=(".codex/config.toml", ".codex/AGENTS.md", ".codex/rules", ".codex/.env"),
        variables=("CODEX_*", "OPENAI_*", "AZURE_OPENAI_API_KEY"),
    )

    def without_own_sandbox(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return the flags with the one that switches the sandbox off."""
        kept = without_flags(
            flags,
            *("-s", "--sandbox", "-a", "--ask-for-approval"),
            switches=(_BYPASS, "--yolo", "--full-auto", "--approve-for-me"),
        )
        place = _after_exec(kept)
        return (*kept[:place], _BYPASS, *kept[place:])

    def form(self, words: Sequence[str]) -> Form:
        """Return the form of the output; codex's output flags have no value."""
        return Form.EVENTS if has_flag(words, "--json", "--experimental-json") else Form.TEXT

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        match event.get("type"):
            case "thread.started":
                notes.session_id = label(event.get("thread_id")) or notes.session_id
            case "turn.started":
                notes.begins()
            case "item.started":
                _item(part(event, "item"), notes, is_new=True)
            case "item.completed":
                item = part(event, "item")
                _item(item, notes, is_new=item.get("type") not in _STARTED)
                if item.get("type") in _TOOLS:
                    notes.tool_ended()
            case "turn.completed":
                notes.tokens = _tokens(part(event, "usage"))
                notes.ends(well=True)
            case "turn.failed":
                notes.fails(text(part(event, "error").get("message")) or "the turn failed")
                notes.ends(well=False)
            case "error":
                _error(text(event.get("message")), notes)

    def text_usage(self, printed: LastOutput) -> Usage:
        """Return the model and session from the header on stderr, and the tokens at its end."""
        head = printed.beginning.partition("\nuser\n")[0]
        model, session = _MODEL.search(head), _SESSION.search(head)
        used = _USED.search(printed.stderr)
        return Usage(
            model[1] if model else None,
            session[1] if session else None,
            tokens=Tokens(total=int(used[1].replace(",", ""))) if used else None,
        )

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error in the last line of stderr; the lines before it are a transcript."""
        if not printed.failed:
            return None
        line = last_plain_line(printed.stderr)
        if printed.form is Form.TEXT and line.startswith(_ERROR):
            return fault_in(line.removeprefix(_ERROR))
        is_transcript = "\n--------\n" in printed.stderr
        return None if is_transcript else fault_in(complaint(printed.stderr))


def _item(item: Event, notes: AgentNotes, *, is_new: bool) -> None:
    match item.get("type"):
        case "agent_message":
            notes.say(text(item.get("text")))
        case "command_execution" if is_new:
            notes.uses_tool("run", text(item.get("command")))
        case "file_change" if is_new:
            paths = [text(change.get("path")) for change in parts(item.get("changes"))]
            notes.uses_tool("edit", paths)
        case "mcp_tool_call" | "collab_tool_call" if is_new:
            notes.uses_tool(text(item.get("tool")), item.get("arguments"))
        case "web_search" if is_new:
            notes.uses_tool("search", text(item.get("query")))
        case "error":
            notes.note(text(item.get("message")))


def _error(message: str, notes: AgentNotes) -> None:
    if _RETRY.match(message):
        notes.retries(message)
    else:
        notes.fails(message or "an error")


def _tokens(usage: Event) -> Tokens:
    given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    return Tokens(
        given,
        output,
        count(usage.get("cached_input_tokens")),
        count(usage.get("cache_write_input_tokens")),
        count(usage.get("reasoning_output_tokens")),
        given + output,
    )


ADAPTER = Codex()
