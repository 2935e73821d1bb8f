"""Markdown, line by line (headings, text, code; no comments), and the words within a line.

People and agents write plans and notes by hand, so this module reads what a reader sees on the
rendered page and ignores the rest of the grammar. It takes linear time for any input.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from rooda.base.controls import one_line

LONGEST = 1_000_000  # characters of a document that are read
_LONGEST_NAME = 400  # characters of a line that `plain` reads, so that its regexes stay fast

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

# A private-use character stands in for inline code and escapes, which `plain` must not change.
_HELD = "\ue000"
_CODE_OR_ESCAPED = re.compile(r"`+([^`]*)`+|\\([!-/:-@\[-`{-~])")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]*)>")
_STRONG = re.compile(r"(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])(.+?)(?<=[^\s*_])\1(?![\w*_])")

_LABEL = re.compile(
    r"""
    [ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+      # optional: a list item
    (?P<mark>\*{1,3}+|_{1,3}+)?+
    (?P<name>[^\W\d_](?:[\w \t-]{0,40}?[^\W_])?)
    (?(mark)(?:(?P=mark)[ \t]*:|[ \t]*:(?P=mark))|[ \t]*:)
    (?=[ \t*_`~\[<(]|[^\x00-\x7f]|\w|$)              # no `::`, no `://`
    (?P<value>.*)
    """,
    re.VERBOSE,
)
# `**Status: done**`: the whole line is emphasized.
_EMPHASIZED = re.compile(
    rf"[ \t]*+(?:{_ITEM}[ \t]++)?+(?P<mark>(?P<one>[*_])(?P=one){{0,2}}+)"
    r"(?P<words>(?:(?!(?P=one)).)++)(?P=mark)[ \t]*+"
)


class LineKind(Enum):
    """What a line is. Fenced code has an opening and a closing line; indented code has neither."""

    BLANK = auto()
    TEXT = auto()
    HEADING = auto()
    OPENING = auto()
    CODE = auto()
    CLOSING = auto()


class MarkdownLine(NamedTuple):
    """One line. `text` of a heading has no `#`s; `text` of an opening fence is the language.

    Text and code are as written. `level` is the level of a heading. `number` is that of the line in
    the document, from 1.
    """

    kind: LineKind
    text: str = ""
    level: int = 0
    number: int = 0


def lines_of(text: str) -> Iterator[MarkdownLine]:
    """Yield every line of the document that is not in a comment."""
    rows = rows_of(text)
    first = _front_matter(rows)
    return _Scanner().scan(rows[first:], first + 1)


def rows_of(text: str) -> list[str]:
    """Return the lines of the document as written, without their line breaks."""
    return _NEWLINE.split(text[:LONGEST].removeprefix("\ufeff"))


def _front_matter(rows: list[str]) -> int:
    """Return the number of lines of YAML front matter before the document."""
    if rows[0].rstrip() != "---" or not _FRONT_MATTER_KEY.match("".join(rows[1:2])):
        return 0
    for number, row in enumerate(rows[1:], 1):
        if row.rstrip() in ("---", "..."):
            return number + 1
    return 0


class _Scanner:
    """Tracks whether the next line is in a fence, a comment or a list, or follows a blank line."""

    def __init__(self) -> None:
        self._fence = ""
        self._in_comment = False
        self._in_list = False
        self._after_blank = True

    def scan(self, rows: list[str], first: int) -> Iterator[MarkdownLine]:
        underlined = False
        for number, (row, below) in enumerate(zip(rows, [*rows[1:], ""], strict=True), first):
            if underlined:  # this row underlines the heading above, which was yielded with it
                underlined = False
                continue
            if not row and self._after_blank and not self._fence:
                continue
            level = self._underlined(row, below)
            if level:
                underlined = True
                line: MarkdownLine | None = self._heading(row.strip(), level)
            else:
                line = self._line(row)
            if line is not None:
                self._after_blank = line.kind is LineKind.BLANK
                yield line._replace(number=number)

    def _line(self, row: str) -> MarkdownLine | None:
        if self._in_comment:
            self._in_comment = "-->" not in row
            return None
        if self._fence:
            return self._in_fence(row)
        if _COMMENT_START.match(row) and "-->" not in row:
            self._in_comment = True
            return None
        return self._plain(_without_comments(row))

    def _in_fence(self, row: str) -> MarkdownLine:
        mark = row.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._fence = ""
            return MarkdownLine(LineKind.CLOSING)
        return MarkdownLine(LineKind.CODE, row)

    def _plain(self, row: str) -> MarkdownLine | None:
        if not row.strip():
            return MarkdownLine(LineKind.BLANK)
        fence = _FENCE.match(row)
        if fence and not (fence["mark"][0] == "`" and "`" in fence["info"]):
            self._fence = fence["mark"]
            self._in_list = self._in_list or _LIST_ITEM.match(row) is not None
            return MarkdownLine(LineKind.OPENING, " ".join(fence["info"].lower().split()[:1]))
        heading = _HEADING.fullmatch(row)
        if heading:
            return self._heading(_without_marks(heading["text"] or ""), len(heading["marks"]))
        if self._is_indented_code(row):
            return MarkdownLine(LineKind.CODE, row)
        self._follow_list(row)
        return MarkdownLine(LineKind.TEXT, row)

    def _heading(self, text: str, level: int) -> MarkdownLine:
        self._in_list = False
        return MarkdownLine(LineKind.HEADING, text, level)

    def _is_indented_code(self, row: str) -> bool:
        """Return whether the row is code, and not a part of a list or of the text above."""
        return self._after_blank and not self._in_list and _CODE_INDENT.match(row) is not None

    def _follow_list(self, row: str) -> None:
        if _LIST_ITEM.match(row):
            self._in_list = True
        elif self._after_blank and not row[0].isspace():
            self._in_list = False

    def _underlined(self, row: str, below: str) -> int:
        """Return the level of a heading that the line below underlines; 0 if the row is none."""
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
    """Return the row without its comments; a comment that does not end in this row is text."""
    if "<!--" not in row:
        return row
    return _CODE_OR_COMMENT.sub(
        lambda match: "" if match[0].startswith("<") and match[0].endswith("-->") else match[0], row
    )


def _without_marks(text: str) -> str:
    """Return the text of a heading without the `#`s that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text


class Label(NamedTuple):
    """A label such as `**Status:** done`: its name in lower case, and the value as written."""

    name: str
    value: str


def label_of(text: str) -> Label | None:
    """Return the label at the start of a line: bold, all of it bold, or plain; in a list or not."""
    if (whole := _EMPHASIZED.fullmatch(text)) is not None:
        text = whole["words"]
    match = _LABEL.fullmatch(text)
    return match and Label(" ".join(match["name"].lower().split()), match["value"].strip())


def plain(text: str) -> str:
    """Return the words of a line without emphasis, links, code marks and control codes."""
    text = one_line(text[:_LONGEST_NAME]).replace(_HELD, "")
    held = iter([code or escaped for code, escaped in _CODE_OR_ESCAPED.findall(text)])
    text = _CODE_OR_ESCAPED.sub(_HELD, text)
    for _ in range(2):  # twice: an image may be in a link
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    text = _AUTOLINK.sub(r"\1", text)
    for pattern in (_STRONG, _STRONG, _EMPHASIS):  # twice: bold may be in struck-out text
        text = pattern.sub(r"\2", text)
    return " ".join(re.sub(_HELD, lambda _: next(held), text).split())


def shortened(text: str, most: int = 100) -> str:
    """Return at most `most` characters of the text, cut between words if possible."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    words = cut.rpartition(" ")[0]
    return f"{(words if len(words) > most // 2 else cut).rstrip()}…"
