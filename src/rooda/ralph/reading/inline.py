"""What stands within a line of Markdown: its plain words, and labels such as `**Status:** done`."""

import re
from typing import NamedTuple

from rooda.text.controls import one_line

_LOOKED_AT = 400  # characters of a line; more is no name, and the patterns stay quick

# A character that means nothing to anybody holds the place of what has to stay as it is.
_HELD = "\ue000"
_CODE_OR_ESCAPED = re.compile(r"`+([^`]*)`+|\\([!-/:-@\[-`{-~])")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]*)>")
_STRONG = re.compile(r"(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])(.+?)(?<=[^\s*_])\1(?![\w*_])")

_LABEL = re.compile(
    r"""
    [ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+      # a list's item or not
    (?P<mark>\*{1,3}+|_{1,3}+)?+
    (?P<name>[^\W\d_](?:[\w \t-]{0,40}?[^\W_])?)
    (?(mark)(?:(?P=mark)[ \t]*:|[ \t]*:(?P=mark))|[ \t]*:)
    (?=[ \t*_`~\[<(]|[^\x00-\x7f]|\w|$)              # no `::`, no `://`
    (?P<value>.*)
    """,
    re.VERBOSE,
)


class Label(NamedTuple):
    """A name in lower case and single blanks, and what stands after its colon, as written."""

    name: str
    value: str


def label_of(text: str) -> Label | None:
    """The label at the start of a line: bold or plain, in a list or not."""
    match = _LABEL.fullmatch(text)
    return match and Label(" ".join(match["name"].lower().split()), match["value"].strip())


def plain(text: str) -> str:
    """The words of a line without emphasis, links, inline code marks and control codes."""
    text = one_line(text[:_LOOKED_AT]).replace(_HELD, "")
    held = iter([code or escaped for code, escaped in _CODE_OR_ESCAPED.findall(text)])
    text = _CODE_OR_ESCAPED.sub(_HELD, text)
    for _ in range(2):  # an image within a link
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    text = _AUTOLINK.sub(r"\1", text)
    for pattern in (_STRONG, _STRONG, _EMPHASIS):  # bold within struck out
        text = pattern.sub(r"\2", text)
    return " ".join(re.sub(_HELD, lambda _: next(held), text).split())


def shortened(text: str, most: int = 100) -> str:
    """At most so many characters, cut between words where there are any."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    words = cut.rpartition(" ")[0]
    return f"{(words if len(words) > most // 2 else cut).rstrip()}…"
