"""`log_format: logfmt`: seed 004's lines."""

import json
import re

from rooda.loop.events import Event
from rooda.loop.levels import level
from rooda.text.controls import clean, one_line
from rooda.views.message import Field
from rooda.views.messages import describe

_PLAIN = re.compile(r"[^\s\"=\\]+")


def render(event: Event) -> str | None:
    """`ERROR AI CLI failed exit_code=1 ...`, or None when there is nothing to say."""
    message = describe(event)
    if message is None:
        return None
    return f"{level(event).name} {one_line(message.words)}{render_fields(message.fields)}"


def render_fields(fields: tuple[Field, ...]) -> str:
    """` key=value key="two words"`; a field without a value is left out."""
    return "".join(f" {key}={_value(value)}" for key, value in fields if value is not None)


def _value(value: str | float | bool) -> str:  # noqa: FBT001 - a field's value
    if isinstance(value, bool):
        return "true" if value else "false"
    text = clean(str(value))
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
