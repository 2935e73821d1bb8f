"""Colors of a terminal: when to use them, and the few that rooda uses."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

CHOICES = ("auto", "always", "never")
_END = "\x1b[0m"


class Color(StrEnum):
    """A color by its meaning; the value is the sequence that begins it."""

    GOOD = "\x1b[32m"
    BAD = "\x1b[31m"
    WARNING = "\x1b[33m"
    NAME = "\x1b[36m"  # a commit, a run, a command to copy
    TITLE = "\x1b[1m"
    QUIET = "\x1b[2m"  # less important than the rest


def wants_color(choice: str, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether to print colors. `choice` is one of CHOICES.

    With `auto`, a terminal gets colors unless NO_COLOR has a value or TERM is `dumb`.
    """
    if choice != "auto":
        return choice == "always"
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Painter(Struct, frozen=True):
    """Adds colors to texts, or returns them unchanged."""

    is_on: bool = False

    def __call__(self, color: Color, text: str) -> str:
        """Return the text in a color. A text of several lines is colored line by line."""
        if not self.is_on or not text:
            return text
        return "\n".join(f"{color}{line}{_END}" if line else "" for line in text.split("\n"))
