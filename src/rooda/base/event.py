"""The base class of all events: fields, a level and words. Logs and their reference use these."""

import json
import re
from enum import IntEnum
from typing import Any, ClassVar

from msgspec import Struct

from rooda.base.colors import Color
from rooda.base.controls import clean, one_line
from rooda.base.formats import to_builtins

Value = str | int | float | bool | None
Field = tuple[str, Value]

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_PLAIN = re.compile(r"[^\s\"=\\]+")
_ADVICE = "suggestion"  # the field that a text log shows on a line of its own


class LogLevel(IntEnum):
    """The importance of an event."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


_TONES = {LogLevel.DEBUG: Color.QUIET, LogLevel.WARN: Color.WARNING, LogLevel.ERROR: Color.BAD}


class Message(Struct, frozen=True):
    """Words and ordered fields. A log omits fields with the value None."""

    words: str
    fields: tuple[Field, ...] = ()


def say(words: str, /, **fields: Value) -> Message:
    """Return a message with these fields, in this order."""
    return Message(words, tuple(fields.items()))


EVENTS: list[type["Event"]] = []  # all event classes, in the order of their definition


class Event(Struct, frozen=True):
    """An event. A subclass declares everything that rooda prints about it in one place.

    Each field has a comment on its line, which the reference shows. The fields are the schema of
    `log_format: json`, so they may be added but never renamed. `level` is the default level.
    `raised` is the level of events for which `is_raised` is true, and a phrase for that condition.
    `text_level` is the level in a text log, if it differs: people do not need to read each step,
    because the line of the iteration tells what came of it.
    """

    level: ClassVar[LogLevel] = LogLevel.INFO
    text_level: ClassVar[LogLevel | None] = None
    raised: ClassVar[tuple[LogLevel, str] | None] = None
    is_logged: ClassVar[bool] = True  # False for events that are too frequent for a log
    unlogged: ClassVar[tuple[str, ...]] = ()  # fields that only the record contains

    def __init_subclass__(cls) -> None:
        """Register the class."""
        super().__init_subclass__()
        EVENTS.append(cls)

    @classmethod
    def event_name(cls) -> str:
        """Return the name in logs, such as `iteration_started` for IterationStarted."""
        return _CAPITAL.sub("_", cls.__name__).lower()

    def is_raised(self) -> bool:
        """Return whether this event is more important than usual."""
        return False

    @property
    def log_level(self) -> LogLevel:
        """The level of this particular event."""
        return self.raised[0] if self.raised and self.is_raised() else self.level

    @property
    def text_log_level(self) -> LogLevel:
        """The level of this particular event in a text log."""
        return self.log_level if self.text_level is None or self.is_raised() else self.text_level

    @property
    def tone(self) -> Color | None:
        """The color of its first line on a terminal; None for an ordinary line."""
        return _TONES.get(self.text_log_level)

    @property
    def highlights(self) -> tuple[str, ...]:
        """Words of its further lines that a terminal shows like names: commits, commands."""
        return ()

    def describe(self) -> Message | None:
        """Return the message about the event, or None for an event without one."""
        return None

    def as_text(self) -> str | None:
        """Return the event as readable text: one line, with further lines indented below it."""
        message = self.describe()
        if message is None:
            return None
        prefix = "" if self.log_level is LogLevel.INFO else f"{self.log_level.name}: "
        fields = tuple(field for field in message.fields if field[0] != _ADVICE)
        line = f"{prefix}{one_line(message.words)}{logfmt_fields(fields)}"
        advice = next((value for name, value in message.fields if name == _ADVICE), None)
        return line if advice is None else f"{line}\n{advised(str(advice))}"

    def as_text_alone(self) -> str | None:
        """Return the text for a log without warnings: what they have told must be in it."""
        return self.as_text()

    def as_logfmt(self) -> str | None:
        """Return the event as one line: `ERROR AI CLI failed exit_code=1 ...`."""
        message = self.describe()
        if message is None:
            return None
        return f"{self.log_level.name} {one_line(message.words)}{logfmt_fields(message.fields)}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `log_format: json`."""
        body = to_builtins(self)
        for name in self.unlogged:
            del body[name]
        return body


def logfmt_fields(fields: tuple[Field, ...]) -> str:
    """Return ` key=value key="two words"`, without fields that are None."""
    return "".join(f" {key}={_shown(value)}" for key, value in fields if value is not None)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = clean(str(value))
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def quoted(title: str, text: str) -> list[str]:
    """Return a title and the lines of a text, indented below the line of an event."""
    return [f"  {title}:", *(f"    | {line}" for line in clean(text).splitlines())]


def advised(suggestion: str) -> str:
    """Return the line that says what the user can try, indented below the line of an event."""
    return f"  Try: {one_line(suggestion)}"
