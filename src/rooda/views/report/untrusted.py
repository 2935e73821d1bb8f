"""Texts of agents and file systems for a page: nothing in them acts, hides or reorders. Pure."""

import re

from rooda.base.controls import BIDIRECTIONAL, clean

# Characters without a width, and tags: they would hide text, or make equal texts differ.
_HIDDEN = re.compile(
    rf"[{BIDIRECTIONAL}\u200b-\u200d\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff\u00ad\u115f\u1160\u3164\uffa0]"
)
_BREAKS = re.compile(r"[\u0085\u2028\u2029\u000b\u000c]")
# More than three marks on one character would be drawn over the lines around it.
_MARKS = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})"
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_MORE = " [...]"


def plain_text(text: str, most: int | None = None) -> str:
    """Return the text without control, hidden and misleading characters, cut to `most`."""
    if most is not None and len(text) > most:
        text = text[:most].rstrip() + _MORE
    text = clean(_BREAKS.sub("\n", text))
    text = _MARKS.sub(r"\1", _HIDDEN.sub("", text))
    # A lone surrogate (a byte of a file name that is no text) can't be encoded.
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def plain_line(text: str, most: int | None = None) -> str:
    """Return the same on one line."""
    return " ".join(plain_text(text, most).split())
