"""GitHub Copilot CLI (`copilot`)."""

from collections.abc import Sequence

from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import fault_in
from rooda.agents.flags import flag_value
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form
from rooda.agents.values import Event, label, part, status_code, text

_LAST = 2000


class Copilot(Adapter):
    """GitHub Copilot CLI."""

    name = "copilot"
    facts = Facts(
        install="npm install -g @github/copilot",
        payers={
            "COPILOT_PROVIDER_BASE_URL": "whoever runs that server",
            "COPILOT_PROVIDER_API_KEY": "the provider's API key, by use",
            "COPILOT_GITHUB_TOKEN": "the GitHub account of the token",
            "GH_TOKEN": "the GitHub account of the token",
            "GITHUB_TOKEN": "the GitHub account of the token",
        },
        otherwise="the GitHub account that `copilot login` chose",
        advice={
            FaultKind.AUTH: "Run `copilot` and log in with /login, or set a token that is valid",
            FaultKind.USAGE: "See `copilot --help` for its flags and models",
        },
    )

    def form(self, words: Sequence[str]) -> Form:
        """Its output flag says it."""
        return Form.EVENTS if flag_value(words, "--output-format") == "json" else Form.TEXT

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of an event of its stream."""
        data = part(event, "data")
        match event.get("type"):
            case "assistant.turn_start":
                notes.begins()
                notes.asks()
            case "assistant.message" if not data.get("parentToolCallId"):
                notes.model = label(data.get("model")) or notes.model
                notes.say(text(data.get("content")))
            case "model.call_start":
                notes.model = label(data.get("model")) or notes.model
            case "tool.execution_start":
                notes.uses_tool(text(data.get("toolName")), data.get("arguments"))
            case "assistant.turn_retry":
                notes.retries(text(data.get("reason")))
            case "session.error":
                notes.fails(
                    text(data.get("message")) or text(data.get("errorType")) or "an error",
                    status_code(data.get("statusCode")),
                )
            case "session.info":
                notes.note(text(data.get("message")))
            case "result":
                _result(event, notes)

    def last_words(self, printed: Printed) -> Fault | None:
        """As text it writes errors to standard error, and nothing else there."""
        return fault_in(printed.stderr.strip()[-_LAST:]) if printed.failed else None


def _result(event: Event, notes: Notes) -> None:
    notes.session_id = label(event.get("sessionId")) or notes.session_id
    well = event.get("exitCode") == 0 and notes.fault is None
    if not well and not notes.complaint:
        notes.fails(f"it reports exit code {event.get('exitCode')}")
    notes.ends(well=well)
