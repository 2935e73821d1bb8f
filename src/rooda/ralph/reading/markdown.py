"""Markdown, line by line: what is a heading, what is text, what is code. Comments are left out.

Plans and notes are written by agents, in a hurry and by hand, so this reads what a person sees on
the rendered page, without the rest of the grammar. It takes linear time whatever it is given.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

LONGEST = 1_000_000  # characters; nobody reads a longer plan

_NEWLINE = re.compile(r"\r\n|\n|\r")
_ITEM = r"(?:[-*+]|\d{1,9}[.)])"
_LIST_ITEM = re.compile(rf"[ \t]*+{_ITEM}(?:[ \t]|$)")
_FENCE = re.compile(rf"[ \t]*+(?:{_ITEM}[ \t]++)*+(?P<mark>`{{3,}}+|~{{3,}}+)(?P<info>.*)")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6}+)(?:[ \t](?P<text>.*)|$)")
_UNDERLINE = re.compile(r" {0,3}(?:(?P<first>={2,}+)|-{2,}+)[ \t]*+")
_NO_TITLE = re.compile(r" {0,3}(?:[>|]|[-=*_ \t]{2,}$)")  # a quotation, a table, a rule
_LABELLED = re.compile(r" {0,3}[*_]{0,3}[^\W_]++:")  # `Status: done` above a rule is no heading
_CODE_INDENT = re.compile(r" {0,3}\t| {4}")
_COMMENT_START = re.compile(rf"[ \t]*+(?:{_ITEM}[ \t]++)*+<!--")
_CODE_OR_COMMENT = re.compile(r"(`+[^`]*`+)|<!--.*?(?:-->|$)")
_NOT_UNDERLINED = (_NO_TITLE, _LABELLED, _COMMENT_START)
_FRONT_MATTER_KEY = re.compile(r"[\w-]+:(?: |$)")


class Kind(Enum):
    """What a line is. Fences have an opening and a closing line; indented code has neither."""

    BLANK = auto()
    TEXT = auto()
    HEADING = auto()
    OPENING = auto()
    CODE = auto()
    CLOSING = auto()


class Line(NamedTuple):
    """One line: a heading without its marks and with its level, an opening fence as its language.

    Text and code stand as they are written.
    """

    kind: Kind
    text: str = ""
    level: int = 0


def lines_of(text: str) -> Iterator[Line]:
    """Every line of the document that is not in a comment."""
    rows = _NEWLINE.split(text[:LONGEST].removeprefix("\ufeff"))
    return _Scanner().scan(rows[_front_matter(rows) :])


def _front_matter(rows: list[str]) -> int:
    """How many lines of settings stand before the document."""
    if rows[0].rstrip() != "---" or not _FRONT_MATTER_KEY.match("".join(rows[1:2])):
        return 0
    for number, row in enumerate(rows[1:], 1):
        if row.rstrip() in ("---", "..."):
            return number + 1
    return 0


class _Scanner:
    """Knows where in the document it is: in a fence, a comment, a list, after a blank line."""

    def __init__(self) -> None:
        self._fence = ""
        self._in_comment = False
        self._in_list = False
        self._after_blank = True

    def scan(self, rows: list[str]) -> Iterator[Line]:
        underlined = False
        for row, below in zip(rows, [*rows[1:], ""], strict=True):
            if underlined:  # by this row, which was told with the one above
                underlined = False
                continue
            if not row and self._after_blank and not self._fence:
                continue
            level = self._underlined(row, below)
            if level:
                underlined = True
                line: Line | None = self._heading(row.strip(), level)
            else:
                line = self._line(row)
            if line is not None:
                self._after_blank = line.kind is Kind.BLANK
                yield line

    def _line(self, row: str) -> Line | None:
        if self._in_comment:
            self._in_comment = "-->" not in row
            return None
        if self._fence:
            return self._in_fence(row)
        if _COMMENT_START.match(row) and "-->" not in row:
            self._in_comment = True
            return None
        return self._plain(_without_comments(row))

    def _in_fence(self, row: str) -> Line:
        mark = row.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._fence = ""
            return Line(Kind.CLOSING)
        return Line(Kind.CODE, row)

    def _plain(self, row: str) -> Line | None:
        if not row.strip():
            return Line(Kind.BLANK)
        fence = _FENCE.match(row)
        if fence and not (fence["mark"][0] == "`" and "`" in fence["info"]):
            self._fence = fence["mark"]
            self._in_list = self._in_list or _LIST_ITEM.match(row) is not None
            return Line(Kind.OPENING, " ".join(fence["info"].lower().split()[:1]))
        heading = _HEADING.fullmatch(row)
        if heading:
            return self._heading(_without_marks(heading["text"] or ""), len(heading["marks"]))
        if self._is_indented_code(row):
            return Line(Kind.CODE, row)
        self._follow_list(row)
        return Line(Kind.TEXT, row)

    def _heading(self, text: str, level: int) -> Line:
        self._in_list = False
        return Line(Kind.HEADING, text, level)

    def _is_indented_code(self, row: str) -> bool:
        """Deep in a list it is a part of the list, and below a line of text a part of that."""
        return self._after_blank and not self._in_list and _CODE_INDENT.match(row) is not None

    def _follow_list(self, row: str) -> None:
        if _LIST_ITEM.match(row):
            self._in_list = True
        elif self._after_blank and not row[0].isspace():
            self._in_list = False

    def _underlined(self, row: str, below: str) -> int:
        """The level of a heading that is made by the line below it, else 0."""
        rule = _UNDERLINE.fullmatch(below) if below[:4].strip()[:1] in ("=", "-") else None
        if rule is None or self._fence or self._in_comment or not self._after_blank:
            return 0
        if not row.strip() or any(
            pattern.match(row)
            for pattern in (*_NOT_UNDERLINED, _LIST_ITEM, _CODE_INDENT, _HEADING, _FENCE)
        ):
            return 0
        return 1 if rule["first"] else 2


def _without_comments(row: str) -> str:
    """One that has no end in its line is plain text; that it has none is found out only once."""
    if "<!--" not in row:
        return row
    return _CODE_OR_COMMENT.sub(
        lambda match: "" if match[0].startswith("<") and match[0].endswith("-->") else match[0], row
    )


def _without_marks(text: str) -> str:
    """A heading's text without the `#`s that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text
