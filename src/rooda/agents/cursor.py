"""Cursor's agent (`cursor-agent`)."""

from collections.abc import Mapping, Sequence

from rooda.agents import anthropic_events as events
from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import complaint, fault_in
from rooda.agents.flags import flag_value
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form, Tokens
from rooda.agents.values import Event, count, label, part, says_error, text

_FORMS = {"stream-json": Form.EVENTS, "json": Form.DOCUMENT}


class Cursor(Adapter):
    """Cursor's agent."""

    name = "cursor-agent"
    facts = Facts(
        install="see Cursor's documentation of its CLI",
        nesting=("CURSOR_AGENT",),
        payers={"CURSOR_API_KEY": "the account of the API key"},
        otherwise="the account that `cursor-agent login` chose",
        advice={FaultKind.AUTH: "Run `cursor-agent login`, or set CURSOR_API_KEY"},
    )

    def form(self, words: Sequence[str]) -> Form:
        """Its output flag says it."""
        return _FORMS.get(flag_value(words, "--output-format") or "", Form.TEXT)

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of an event of its stream."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                notes.begins()
                notes.model = label(event.get("model")) or notes.model
            case "assistant":
                events.assistant(event, notes)
            case "tool_call" if event.get("subtype") == "started":
                _tool(part(event, "tool_call"), notes)
            case "tool_call":
                notes.tool_ended()
            case "result":
                _result(event, notes)

    def last_words(self, printed: Printed) -> Fault | None:
        """Its errors are on standard error."""
        return fault_in(complaint(printed.stderr)) if printed.failed else None


def _tool(call: Event, notes: Notes) -> None:
    """A call is an object with one name, such as `writeToolCall`, and arguments below it."""
    name = next((name for name in call if isinstance(call[name], Mapping)), "")
    notes.uses_tool(name.removesuffix("ToolCall"), part(call, name, "args"))


def _result(event: Event, notes: Notes) -> None:
    usage = part(event, "usage")
    if usage:
        given, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
        read, written = count(usage.get("cacheReadTokens")), count(usage.get("cacheWriteTokens"))
        total = given + output + read + written
        notes.tokens = Tokens(given, output, read, written, total=total)
    failed = says_error(event)
    words = text(event.get("result"))
    if failed:
        notes.fails(words or text(event.get("subtype")) or "an error")
    notes.ends(well=not failed, answer="" if failed else words)
