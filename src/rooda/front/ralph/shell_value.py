"""Reads the VALUE of `KEY=VALUE` as a shell reads it, but runs and expands nothing."""

import re
from collections.abc import Iterator

from msgspec import Struct

_PIECE = re.compile(
    r"""
      '(?P<single>[^']*+)'
    | "(?P<double>(?:[^"\\]++|\\.)*+)"
    | \\(?P<escaped>.)
    | (?P<blank>[ \t]++)
    | (?P<plain>[^'"\\ \t]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r'\\([$`"\\])')  # in double quotes, `\` before any other character stays
_ANY_ESCAPE = re.compile(r"\\.", re.DOTALL)
_EXPANSION = re.compile(r"\$[\w{(@*#?!$-]|`")


class ShellValue(Struct, frozen=True):
    """A value: `text` is one word without its quotes, or several words with their quotes.

    `written`: the value with its quotes and without the comment.
    `is_detached`: a blank precedes the value, so a shell would run it as a command.
    `expands`: a shell would expand a part of the value.
    `trouble`: why the value can't be read; `text` is empty then.
    """

    text: str
    written: str = ""
    is_one_word: bool = True
    is_detached: bool = False
    expands: bool = False
    trouble: str = ""


def read_value(written: str) -> ShellValue:
    """Return the value in the rest of a line, without a ` # comment` at its end."""
    pieces = list(_pieces(written))
    if pieces and pieces[-1] is None:
        return ShellValue("", trouble=_trouble(written))
    found = [piece for piece in pieces if piece is not None]
    solid = [piece for piece in found if piece.lastgroup != "blank"]
    if not solid:
        return ShellValue("")
    first, last = solid[0].start(), solid[-1].end()
    is_one_word = not any(p.lastgroup == "blank" and first < p.start() < last for p in found)
    return ShellValue(
        "".join(map(_unquoted, solid)) if is_one_word else written[first:last],
        written[first:last],
        is_one_word,
        is_detached=first > 0,
        expands=any(map(_expands, solid)),
    )


def _pieces(written: str) -> Iterator[re.Match[str] | None]:
    """Yield the pieces up to a comment; None for a piece that is not closed."""
    position, after_blank = 0, False
    while position < len(written):
        if after_blank and written[position] == "#":
            return
        piece = _PIECE.match(written, position)
        yield piece
        if piece is None:
            return
        position, after_blank = piece.end(), piece.lastgroup == "blank"


def _trouble(written: str) -> str:
    if written.endswith("\\"):
        return "ends with a backslash, but a value is one line"
    return "has a quote that is not closed"


def _unquoted(piece: re.Match[str]) -> str:
    text = piece[piece.lastgroup or 0]
    return _ESCAPE.sub(r"\1", text) if piece.lastgroup == "double" else text


def _expands(piece: re.Match[str]) -> bool:
    if piece.lastgroup == "double":
        return _EXPANSION.search(_ANY_ESCAPE.sub("", piece["double"])) is not None
    return piece.lastgroup == "plain" and _EXPANSION.search(piece["plain"]) is not None
