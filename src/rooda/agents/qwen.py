"""Qwen Code (`qwen`)."""

import re
from collections.abc import Sequence

from rooda.agents import anthropic_events as events
from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import complaint, fault_in
from rooda.agents.flags import flag_value
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form, Tokens
from rooda.agents.values import Event, count, label, part, text

_FORMS = {"stream-json": Form.EVENTS, "json": Form.DOCUMENT}
# In its events an error stands where the answer would, and is said to be none.
_ERROR = re.compile(r"\s*\[API Error: .*\]\s*", re.DOTALL)


class Qwen(Adapter):
    """Qwen Code."""

    name = "qwen"
    facts = Facts(
        install="npm install -g @qwen-code/qwen-code",
        nesting=("QWEN_CODE",),
        payers={
            "OPENAI_API_KEY": "the API key, by use",
            "DASHSCOPE_API_KEY": "the DashScope key, by use",
            "OPENAI_BASE_URL": "whoever runs that server",
        },
        otherwise="the account that `qwen` was logged in with",
        advice={
            FaultKind.AUTH: "Run `qwen` and log in with /auth, or set OPENAI_API_KEY to a valid key"
        },
    )

    def form(self, words: Sequence[str]) -> Form:
        """Its output flag says it."""
        return _FORMS.get(flag_value(words, "-o", "--output-format") or "", Form.TEXT)

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of an event of its stream."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                notes.begins()
                notes.model = label(event.get("model")) or notes.model
            case "assistant" if not _is_error(event):
                events.assistant(event, notes)
            case "user":
                events.user(event, notes)
            case "result":
                _result(event, notes)

    def last_words(self, printed: Printed) -> Fault | None:
        """As text it writes errors to standard error."""
        return fault_in(complaint(printed.stderr)) if printed.failed else None


def _is_error(event: Event) -> bool:
    """Whether the words are an error's: no model has written them."""
    message = part(event, "message")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    words = "".join(text(part(block).get("text")) for block in blocks)
    return bool(_ERROR.fullmatch(words)) and not count(part(message, "usage").get("output_tokens"))


def _result(event: Event, notes: Notes) -> None:
    usage = part(event, "usage")
    given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    total = count(usage.get("total_tokens")) or given + output
    read = count(usage.get("cache_read_input_tokens"))
    notes.tokens = Tokens(given, output, read, total=total)
    notes.turns = count(event.get("num_turns")) or notes.turns
    words = text(event.get("result"))
    error = text(part(event, "error").get("message"))
    failed = event.get("is_error") is True or (bool(_ERROR.fullmatch(words)) and not output)
    if failed:
        notes.fails(error or words or text(event.get("subtype")) or "an error")
    notes.ends(well=not failed, answer="" if failed else words)
