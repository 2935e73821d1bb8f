"""Gemini CLI (`gemini`)."""

import re
from collections.abc import Sequence

from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import complaint, fault_in, last_lines
from rooda.agents.flags import flag_value
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form, Tokens
from rooda.agents.values import Event, amount, count, label, part, status_code, text

_FORMS = {"stream-json": Form.EVENTS, "json": Form.DOCUMENT}
# How it speaks of a request that has failed for good; the rest of the line says why.
_ERROR = re.compile(
    r"^Error when talking to Gemini API.*?(?:\.json)? (\w*Error: .*)$", re.MULTILINE
)
_STATUS = re.compile(r"^[ \t]*(?:status|code): (\d{3}),?$", re.MULTILINE)
_DELAY = re.compile(r"^[ \t]*retryDelayMs: (\d{1,12}),?$", re.MULTILINE)
_TOOL = re.compile(r"^Error executing tool .*$", re.MULTILINE)  # that is the tool's trouble
_LAST_LINES = 2


class Gemini(Adapter):
    """Gemini CLI."""

    name = "gemini"
    facts = Facts(
        install="npm install -g @google/gemini-cli",
        nesting=("GEMINI_CLI",),
        payers={
            "GOOGLE_GENAI_USE_VERTEXAI": "the Vertex project",
            "GOOGLE_API_KEY": "the Vertex key, by use",
            "GEMINI_API_KEY": "the API key, by use",
            "GOOGLE_GEMINI_BASE_URL": "whoever runs that server",
        },
        otherwise="the Google account that `gemini` was logged in with",
        advice={
            FaultKind.AUTH: "Run `gemini` and log in, or set GEMINI_API_KEY to a key that is valid",
            FaultKind.USAGE: "See `gemini --help` for its flags; -m chooses the model",
        },
    )

    def form(self, words: Sequence[str]) -> Form:
        """Its output flag says it."""
        return _FORMS.get(flag_value(words, "-o", "--output-format") or "", Form.TEXT)

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of an event of its stream, or of the one document."""
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

    def last_words(self, printed: Printed) -> Fault | None:
        """Its errors are on standard error, with all that its runtime knows of them."""
        if not printed.failed:
            return None
        errors = list(_ERROR.finditer(printed.stderr))
        if not errors:
            # Before the first request it says in plain sentences what it lacks.
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


def _end(event: Event, notes: Notes, *, well: bool) -> None:
    if not well:
        error = part(event, "error")
        words = text(error.get("message")) or notes.complaint or "an error"
        notes.fails(words, status_code(error.get("code")))
    notes.ends(well=well)


def _document(event: Event, notes: Notes) -> None:
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


def _totals(stats: Event, notes: Notes) -> None:
    given, output = count(stats.get("input_tokens")), count(stats.get("output_tokens"))
    total, cached = count(stats.get("total_tokens")), count(stats.get("cached"))
    # What is neither given nor answered was thought.
    thought = max(0, total - given - output)
    notes.tokens = Tokens(given, output, cached, reasoning=thought, total=total)
    _model(part(stats, "models"), notes)
    if amount(stats.get("tool_calls")) == 0:  # then there was one request
        notes.context_used = total


def _model(models: Event, notes: Notes) -> None:
    if notes.model is None and models:
        notes.model = label(next(iter(models)))
