"""Columns of a terminal that a text takes: wide characters take two, marks none. Pure."""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_MORE = "\u2026"
_EMOJI_STYLE = "\ufe0f"  # after a narrow character: many terminals then show a wide emoji
_INVISIBLE = ("Mn", "Me", "Cf")  # categories of characters that are drawn on the one before


def width(text: str) -> int:
    """Return how many columns a line of text takes at most."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


@lru_cache(maxsize=4096)
def _width_of(char: str) -> int:
    if char == _EMOJI_STYLE:
        return 1
    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def cut(text: str, columns: int) -> str:
    """Return the text, or its beginning and an ellipsis, so that it takes at most so many columns.

    The work is bounded by the columns, and not by the length of the text.
    """
    start = text[: 4 * columns + 4]
    if len(start) == len(text) and width(text) <= columns:
        return text
    return _beginning(start, columns - 1).rstrip() + _MORE if columns > 0 else ""


def _beginning(text: str, columns: int) -> str:
    """Return as many characters as fit."""
    used = 0
    for place, char in enumerate(text):
        used += _width_of(char)
        if used > columns:
            return text[:place]
    return text


def wrapped(text: str, columns: int) -> Iterator[str]:
    """Yield the text in lines of at most so many columns; a word that is too long is split."""
    line = ""
    for word in text.split(" "):
        if line and width(line) + 1 + width(word) <= columns:
            line = f"{line} {word}"
            continue
        if line:
            yield line
        *full, line = _pieces(word, max(1, columns))
        yield from full
    yield line


def _pieces(word: str, columns: int) -> list[str]:
    """Return the parts of a word, each of which fits; one part if the word is empty."""
    found, at = [], 0
    while at < len(word):
        # A wide character may not fit into a single column: it comes alone.
        found.append(_beginning(word[at : at + 4 * columns], columns) or word[at])
        at += len(found[-1])
    return found or [""]
