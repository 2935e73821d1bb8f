"""Jinja2 for the pages of rooda: everything is escaped, and no text has control characters.

Jinja2 is imported here and nowhere else, so only the making of a page imports it.
"""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rooda.base.numbers import money
from rooda.base.times import format_duration
from rooda.views.report.untrusted import plain_line, plain_text
from rooda.views.wording.labels import brief_duration, brief_number, clock, day, not_known
from rooda.views.wording.lines import holding_of
from rooda.views.wording.sentences import short

TEMPLATES = Path(__file__).with_name("templates")


@cache
def environment(*folders: Path) -> Environment:
    """Return what makes pages of the templates of these folders, and of the report's parts."""
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finished,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "line": plain_line,
        "block": plain_text,
        "diffline": lambda text: text or " ",
        "clock": clock,
        "day": day,
        "brief": brief_duration,
        "duration": format_duration,
        "number": brief_number,
        "money": money,
        "short": short,
        "holding": holding_of,
        "not_known": not_known,
    }
    return made


def _finished(value: object) -> object:
    """Return what an expression of the template writes: no text has control characters."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return plain_text(value)
