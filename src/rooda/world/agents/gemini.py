"""Gemini CLI (`gemini`)."""

import re
from collections.abc import Sequence

from rooda.world.agents.adapter import JSON_FORMS, Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Tokens
from rooda.world.agents.facts import (
    ADDS_WORDS,
    AgentFacts,
    CommandLine,
    FlagRule,
    SandboxNeeds,
    ToolPermissions,
    has_flag,
    is_enabled,
    rejects_flags,
    without_flags,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import complaint, fault_in, last_lines
from rooda.world.agents.json_events import Event, amount, count, label, part, status_code, text

# The report of a request that gemini does not retry; the rest of the line is the reason.
_ERROR = re.compile(
    r"^Error when talking to Gemini API.*?(?:\.json)? (\w*Error: .*)$", re.MULTILINE
)
_STATUS = re.compile(r"^[ \t]*(?:status|code): (\d{3}),?$", re.MULTILINE)
_DELAY = re.compile(r"^[ \t]*retryDelayMs: (\d{1,12}),?$", re.MULTILINE)
_TOOL = re.compile(r"^Error executing tool .*$", re.MULTILINE)  # an error of a tool, not of gemini
_LAST_LINES = 2


def _is_not_trusted(line: CommandLine) -> bool:
    is_trusted = is_enabled(line.environ, "GEMINI_CLI_TRUST_WORKSPACE")
    return not is_trusted and not has_flag(line.words, "--skip-trust")


class Gemini(Adapter):
    """Gemini CLI."""

    name = "gemini"
    facts = AgentFacts(
        install="npm install -g @google/gemini-cli",
        nesting=("GEMINI_CLI",),
        payers={
            "GOOGLE_GENAI_USE_VERTEXAI": "the Vertex project",
            "GOOGLE_API_KEY": "the Vertex key, by use",
            "GEMINI_API_KEY": "the API key, by use",
            "GOOGLE_GEMINI_BASE_URL": "the operator of that server",
        },
        otherwise="the Google account of the `gemini` login",
        advice={
            FailureKind.AUTH: "Run `gemini` and log in, or set GEMINI_API_KEY to a key "
            "that is valid",
            FailureKind.USAGE: "See `gemini --help` for its flags; -m chooses the model",
        },
    )
    output_flags = ("-o", "--output-format")
    output_forms = JSON_FORMS
    permissions = ToolPermissions(
        all_tools=("--yolo", "-y", "--approval-mode=yolo"),
        some_tools=("--approval-mode=auto_edit", "--allowed-tools", "--policy"),
    )
    flag_rules = (
        *rejects_flags("-i", "--prompt-interactive"),
        ADDS_WORDS,
        FlagRule(
            "permissions",
            _is_not_trusted,
            "it ignores --yolo in a folder that is not trusted",
            "Add --skip-trust",
        ),
    )

    needs = SandboxNeeds(
        credentials=(
            ".gemini/oauth_creds.json",
            ".gemini/google_accounts.json",
            ".gemini/gemini-credentials.json",
        ),
        settings=(
            *(".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/.env"),
            *(".gemini/policies", ".gemini/trustedFolders.json"),
        ),
        environ={"GEMINI_SANDBOX": "false"},
        variables=("GEMINI_*", "GOOGLE_*"),
    )

    def without_own_sandbox(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return the flags without the sandbox; GEMINI_SANDBOX overrides the user's settings."""
        return without_flags(flags, switches=("-s", "--sandbox"))

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event, or of the single document, in the notes."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "init":
                notes.begins()
                notes.model = label(event.get("model")) or notes.model
            case "message" if event.get("role") == "assistant":
                say = notes.say_piece if event.get("delta") is True else notes.say
                say(text(event.get("content")))
            case "tool_use":
                notes.uses_tool(text(event.get("tool_name")), event.get("parameters"))
            case "tool_result":
                notes.tool_ended()
            case "error":
                notes.complains(text(event.get("message")))
            case "result":
                _totals(part(event, "stats"), notes)
                _end(event, notes, well=event.get("status") == "success")
            case None if "session_id" in event:
                _document(event, notes)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error on stderr, with the status and delay that Node.js prints below it."""
        if not printed.failed:
            return None
        errors = list(_ERROR.finditer(printed.stderr))
        if not errors:
            # Before its first request, gemini reports errors as plain sentences.
            stderr = _TOOL.sub("", printed.stderr)
            return fault_in(complaint(stderr)) or fault_in(last_lines(stderr, _LAST_LINES))
        found = errors[-1]
        rest = printed.stderr[found.end() :]
        status = _STATUS.search(rest)
        delay = _DELAY.search(rest)
        return fault_in(
            found[1],
            status_code(int(status[1])) if status else None,
            int(delay[1]) / 1000 if delay else None,
        )


def _end(event: Event, notes: AgentNotes, *, well: bool) -> None:
    if not well:
        error = part(event, "error")
        words = text(error.get("message")) or notes.complaint or "an error"
        notes.fails(words, status_code(error.get("code")))
    notes.ends(well=well)


def _document(event: Event, notes: AgentNotes) -> None:
    stats = part(event, "stats")
    models = part(stats, "models")
    tokens = Tokens()
    requests = 0
    for name in models:
        requests += count(part(models, name, "api").get("totalRequests"))
        used = part(models, name, "tokens")
        tokens += Tokens(
            count(used.get("prompt")),
            count(used.get("candidates")),
            count(used.get("cached")),
            reasoning=count(used.get("thoughts")),
            total=count(used.get("total")),
        )
    _model(models, notes)
    if models:
        notes.tokens = tokens
    notes.say(text(event.get("response")))
    notes.turns = requests or notes.turns
    if requests == 1:
        notes.context_used = tokens.total
    _end(event, notes, well=not event.get("error"))


def _totals(stats: Event, notes: AgentNotes) -> None:
    given, output = count(stats.get("input_tokens")), count(stats.get("output_tokens"))
    total, cached = count(stats.get("total_tokens")), count(stats.get("cached"))
    # The total also includes the reasoning tokens.
    thought = max(0, total - given - output)
    notes.tokens = Tokens(given, output, cached, reasoning=thought, total=total)
    _model(part(stats, "models"), notes)
    if amount(stats.get("tool_calls")) == 0:  # without tools there was only one request
        notes.context_used = total


def _model(models: Event, notes: AgentNotes) -> None:
    if notes.model is None and models:
        notes.model = label(next(iter(models)))


ADAPTER = Gemini()
