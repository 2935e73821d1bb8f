"""What stands after the `=` of `KEY=VALUE`, read as a shell reads it but never run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
_ESCAPE = re.compile(r'\\([$`"\\])')  # within double quotes a backslash means itself elsewhere
_ANY_ESCAPE = re.compile(r"\\.", re.DOTALL)
_EXPANSION = re.compile(r"\$[\w{(@*#?!$-]|`")


@dataclass(frozen=True, slots=True)
class Value:
    """One word without its quotes; or several, as they are written: a command line keeps its own.

    `written`: all of it with its quotes, but without the comment.
    `is_detached`: it stands after a blank, where a shell would take it for a command.
    `expands`: a shell would put something else in place of a part of it.
    `trouble`: why it can't be read; the text is empty then.
    """

    text: str
    written: str = ""
    is_one_word: bool = True
    is_detached: bool = False
    expands: bool = False
    trouble: str = ""


def read_value(written: str) -> Value:
    """The value in the rest of a line; ` # ...` at its end is a comment."""
    pieces = list(_pieces(written))
    if pieces and pieces[-1] is None:
        return Value("", trouble=_trouble(written))
    found = [piece for piece in pieces if piece is not None]
    solid = [piece for piece in found if piece.lastgroup != "blank"]
    if not solid:
        return Value("")
    first, last = solid[0].start(), solid[-1].end()
    is_one_word = not any(p.lastgroup == "blank" and first < p.start() < last for p in found)
    return Value(
        "".join(map(_unquoted, solid)) if is_one_word else written[first:last],
        written[first:last],
        is_one_word,
        is_detached=first > 0,
        expands=any(map(_expands, solid)),
    )


def _pieces(written: str) -> Iterator[re.Match[str] | None]:
    """The pieces up to a comment; None in place of one that has no end."""
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
