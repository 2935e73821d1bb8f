"""Claude Code (`claude`)."""

import re
from collections.abc import Sequence

from msgspec import DecodeError, json
from msgspec.structs import replace

from rooda.world.agents.adapter import JSON_FORMS, Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Form
from rooda.world.agents.facts import (
    AgentFacts,
    CommandLine,
    FlagRule,
    SandboxNeeds,
    ToolPermissions,
    flag_value,
    has_flag,
    is_enabled,
    needs_flag,
    without_flags,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import complaint, fault_in
from rooda.world.agents.json_events import (
    Event,
    amount,
    anthropic_tokens,
    count,
    label,
    part,
    parts,
    read_assistant,
    read_user,
    says_error,
    status_code,
    text,
)

# The start of an error message. In text form, claude prints errors in place of the answer.
_ERRORS = re.compile(
    r"API Error(?:: | \()|Invalid API key|You've (?:hit|reached) your|You're out of"
    r"|Claude (?:AI )?usage limit|Prompt is too long|Credit balance|Please run /login|Not logged in"
    r"|Failed to authenticate|OAuth|Your organization|There's an issue with the selected model"
    r"|[\w-]+ limit reached|Execution error|Login expired|Error:|error:"
    r"|Unable to connect to |Connection error|Request timed out|fetch failed|socket hang up"
    r"|upstream connect error|(?:Repeated )?(?:5\d\d )?(?i:overloaded|service unavailable"
    r"|internal server error|bad gateway|gateway timeout)\b"
)
_LONGEST_ERROR = 2000
_LARGEST_SECONDS = 1e11  # larger unix times are in milliseconds
_ROOT = re.compile(r"\broot\b")
_AS_ROOT = (
    "Run rooda as an ordinary user, or with --sandbox bwrap; in a container that is itself "
    "a sandbox, set IS_SANDBOX=1 (--env IS_SANDBOX=1)"
)


def _lacks_verbose(line: CommandLine) -> bool:
    is_stream = flag_value(line.words, "--output-format") == "stream-json"
    return is_stream and not has_flag(line.words, "--verbose")


def _refuses_root(line: CommandLine) -> bool:
    skips = has_flag(line.words, "--dangerously-skip-permissions")
    bypasses = flag_value(line.words, "--permission-mode") == "bypassPermissions"
    # claude accepts only the value 1 for IS_SANDBOX.
    is_sandbox = line.environ.get("IS_SANDBOX") == "1"
    is_allowed = is_sandbox or is_enabled(line.environ, "CLAUDE_CODE_BUBBLEWRAP")
    return line.is_root and (skips or bypasses) and not is_allowed


class Claude(Adapter):
    """Claude Code."""

    name = "claude"
    facts = AgentFacts(
        install="npm install -g @anthropic-ai/claude-code",
        nesting=("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"),
        payers={
            "CLAUDE_CODE_USE_BEDROCK": "the Bedrock account",
            "CLAUDE_CODE_USE_VERTEX": "the Vertex account",
            "ANTHROPIC_AUTH_TOKEN": "the account of the bearer token",
            "ANTHROPIC_API_KEY": "the API key, by use, not a subscription",
            "CLAUDE_CODE_OAUTH_TOKEN": "the subscription of the OAuth token",
            "ANTHROPIC_BASE_URL": "the operator of that server",
        },
        otherwise="the account that `claude /login` chose",
        tells_cost=True,
        advice={
            FailureKind.AUTH: "Run `claude /login`, or set ANTHROPIC_API_KEY to a key "
            "that is valid",
            FailureKind.USAGE: "See `claude --help` for its flags and models",
        },
    )
    output_flags = ("--output-format",)
    output_forms = JSON_FORMS
    permissions = ToolPermissions(
        all_tools=("--dangerously-skip-permissions", "--permission-mode=bypassPermissions"),
        some_tools=(
            "--allowedTools",
            "--allowed-tools",
            "--permission-mode=acceptEdits",
            "--permission-mode=auto",
            "--permission-prompt-tool",
        ),
    )
    flag_rules = (
        needs_flag("-p", "--print", write="claude -p"),
        FlagRule(
            "output",
            _lacks_verbose,
            "it refuses --output-format stream-json without --verbose",
            "Add --verbose",
            is_fatal=True,
        ),
        FlagRule(
            "root",
            _refuses_root,
            "it refuses to skip permissions for root, and you are root",
            "Run rooda as an ordinary user, or with `sandbox: bwrap`; in a container that is "
            "itself a sandbox, set IS_SANDBOX=1 (or CLAUDE_CODE_BUBBLEWRAP=1), for example below "
            "`loop.env`",
            is_fatal=True,
        ),
    )
    needs = SandboxNeeds(
        credentials=(".claude/.credentials.json",),
        settings=(".claude/settings.json", ".claude/CLAUDE.md", ".claude/rules"),
        # Without IS_SANDBOX, claude refuses to skip its permissions for root.
        environ={"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1"},
        variables=(
            *("ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR"),
            *("AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "CLOUD_ML_REGION", "VERTEX_REGION_*"),
            *("API_TIMEOUT_MS", "BASH_*_TIMEOUT_MS", "MAX_THINKING_TOKENS", "MCP_*TIMEOUT"),
            *("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"),
        ),
    )

    def without_own_sandbox(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return the flags with settings that switch the sandbox off.

        claude uses only its last `--settings`. A value that is JSON is merged; a file is kept,
        because it may have settings that the run depends on.
        """
        settings: dict[str, object] = {}
        given = flag_value(flags, "--settings")
        if given is not None:
            try:
                settings = json.decode(given, type=dict[str, object])
            except DecodeError:
                return tuple(flags)
        sandbox = {**part(settings, "sandbox"), "enabled": False}
        merged = json.encode({**settings, "sandbox": sandbox}).decode()
        return ("--settings", merged, *without_flags(flags, "--settings"))

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system":
                _system(event, notes)
            case "assistant" if text(event.get("error")):
                pass  # an error in place of an answer; the result event repeats it
            case "assistant":
                read_assistant(event, notes)
            case "user":
                read_user(event, notes)
            case "rate_limit_event":
                info = part(event, "rate_limit_info")
                if text(info.get("status")) == "rejected":
                    resets = amount(info.get("resetsAt"))
                    if resets is not None and resets > _LARGEST_SECONDS:
                        resets /= 1000
                    notes.resets = resets
            case "result":
                _result(event, notes)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return an error in place of the answer, or on stderr if claude refuses to start."""
        if not printed.failed:
            return None
        words = printed.stdout.strip()
        if printed.form is Form.TEXT and len(words) <= _LONGEST_ERROR and _ERRORS.match(words):
            return fault_in(words)
        fault = fault_in(complaint(printed.stderr))
        return replace(fault, advice=_AS_ROOT) if fault and _ROOT.search(fault.evidence) else fault


def _system(event: Event, notes: AgentNotes) -> None:
    match event.get("subtype"):
        case "init":
            notes.begins()
            notes.model = label(event.get("model")) or notes.model
        case "api_retry":
            status = status_code(event.get("error_status"))
            words = f"{status or ''} {text(event.get('error'))}".strip()
            attempt, most = count(event.get("attempt")), count(event.get("max_retries"))
            notes.retries(f"{words} (try {attempt} of {most})")


def _result(event: Event, notes: AgentNotes) -> None:
    _numbers(event, notes)
    for denied in parts(event.get("permission_denials")):
        notes.note(f"was not allowed to use {text(denied.get('tool_name'))}")
    failed = says_error(event)
    words = text(event.get("result"))
    if failed:
        status = status_code(event.get("api_error_status"))
        errors = event.get("errors")
        more = " ".join(filter(None, map(text, errors))) if isinstance(errors, list) else ""
        notes.fails(words or more or text(event.get("subtype")) or "an error", status)
    notes.ends(well=not failed, answer="" if failed else words)


def _numbers(event: Event, notes: AgentNotes) -> None:
    turns = count(event.get("num_turns"))
    notes.turns = turns or notes.turns
    notes.tokens = anthropic_tokens(part(event, "usage"))
    notes.cost = amount(event.get("total_cost_usd"))
    if notes.context_used is None and turns == 1:
        notes.context_used = notes.tokens.total
    models = part(event, "modelUsage")
    main = max(models, key=lambda name: _tokens_read(part(models, name)), default=None)
    if main is not None:
        notes.model = notes.model or label(main)
        notes.window = count(part(models, main).get("contextWindow")) or notes.window


def _tokens_read(usage: Event) -> int:
    """Return the number of tokens that a model read; a subagent's model reads fewer."""
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(count(usage.get(name)) for name in names)


ADAPTER = Claude()
