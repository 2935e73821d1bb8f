"""Splits the output of a program into lines for the parsers.

This module removes the decoration that terminals, agents and log viewers add (colors, gutters,
timestamps), limits the number and length of lines, and determines the command and the package of
each line.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from rooda.base.controls import clean

# Longer lines are cut and earlier lines are dropped, which limits the cost of hostile output.
_LONGEST = 2048
_MOST_LINES = 150_000

# The start of a line that the agent prints between two commands; output is never farther left.
_COMMANDS = ("● ", "⏺ ", "$ ")
_CODEX = {"exec", "codex"}
# The lines that start a suite when one command runs several suites.
_SCOPE_STARTS = re.compile(
    r"""(?P<tox>[\w.-]{1,80}:[ ]commands\[\d+\]>|[\w.-]{1,80}[ ]run-test:[ ]commands\[\d+\])[ ].*
    | nox[ ]>[ ]Running[ ]session[ ](?P<nox>.+)
    | (?:>[ ])?(?P<npm>(?:@[\w.-]{1,80}/)?[\w.-]{1,80}@\d\S{0,80}[ ][\w:.-]{1,80})(?:[ ]/.*)?
    | (?:>[ ])?nx[ ]run[ ](?P<nx>\S{1,80})(?:[ ].*)?
    | ==>[ ](?P<mix>\w{1,80})
    | make(?:\[\d+\])?:[ ]Entering[ ]directory[ ]['`](?P<make>.+)'
    """,
    re.VERBOSE,
)
_SCOPE_HINTS = (">", "commands[", "Entering directory")

# Codes that move the cursor: the text after them overwrites a line, so it becomes a new line.
_REWRITES = re.compile(r"(?:\x1b\[|\x9b)[0-9;]*+[ABDEFGHf]")
_FORWARD = re.compile(r"(?:\x1b\[|\x9b)[0-9]*+C")
_REST_OF_COLORS = re.compile(
    r"(?:\(B)?(?:\^\[|\\(?:u001b|x1b|033|e))?\[(?:\d[\d;]{0,20}+m|[mK](?!\w))"
)
_RESETS = ("[0m", "[39m", "[m")
_LONE_BYTES = re.compile("[\udc80-\udcff]")
_CSI_BYTE = "\udc9b"

_BOX = "│┃║▌▍▎▏┆┊╎╏"
_NO_NAMES = (  # words in brackets that runners and builds print; they are not package names
    "doctest|gw\\d+|(?i:debug|info|warn|warning|error|ok|pass|passed|fail|failed|skip|skipped|x)"
)
_GUTTERS = re.compile(
    rf"""[ \t]*+(?:
      (?P<box>[{_BOX}])(?=[ \t]|$)
    | [|⎿](?=[ \t]|$)                                     # a bar; Claude Code's corner
    | [├└╰╭┌][─╴]{{0,3}}+(?=[ ])                            # a tree
    | (?P<point>>)(?=[ ]|$)                               # a quotation
    | \[(?:stdout|stderr|out|err)\](?=\s)                  # the stream's name
    | \[?(?:\d{{4}}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?
      (?:Z|[+-]\d\d:?\d\d)?\]?(?:[ ]\d\d[OE]\+?)?(?=\s|$)  # the time, and GitLab's stream
    | (?P<number>\d{{1,7}})(?:[→\t]|[ ]?:(?=\D)|[ ]{{0,4}}[|│](?=\s|$))  # a listing's line number
    | \#\d{{1,4}}[ ]\d{{1,6}}\.\d{{1,3}}(?=\s|$)               # docker build, its step and seconds
    | remote:(?=\s|$)                                     # git push
    | (?P<service>[\w.-]{{1,60}}[-_]\d{{1,4}})[ ]{{1,40}}\|(?=\s|$)          # docker compose
    | \[(?!(?:{_NO_NAMES})[ ]*\])(?P<name>\d{{1,3}}|[A-Za-z@][\w@./:+-]{{0,60}})[ ]{{0,40}}\]:?
      (?=\s|$)(?![ ]›)                                    # concurrently, yarn
    | \[[^\]\t]{{1,80}}\][ ]{{1,40}}\|(?=\s|$)               # act
    | [^\t]{{1,80}}\t[^\t]{{1,80}}\t(?=\d{{4}}-\d\d-\d\dT)      # gh run view --log
    | (?P<scoped>@[\w.-]{{1,80}}/[\w.-]{{1,80}}):(?=\s|$)      # nx, lerna
    | (?P<package>@?[\w./-]{{1,80}}:test[\w:-]{{0,40}}):(?=\s|$)  # turbo
    | (?P<folder>[\w@.-]{{0,80}}[/.][\w@./-]{{0,80}}[ ]test[\w:-]{{0,40}}):(?=\s|$)  # pnpm -r
    )""",
    re.VERBOSE,
)
_SCOPE_GROUPS = ("service", "name", "scoped", "package", "folder", "label")
_MOST_GUTTERS = 4
# Other labels are taken from the lines in which npm and pnpm announce the scripts they run.
_LABELLED = re.compile(
    r"^[ \t]*+(?:(\S{1,120}): > (?:@[\w.-]{1,80}/)?[\w.-]{1,80}@\d|(\S{1,120} [\w:.-]{1,40})\$ \S)",
    re.MULTILINE,
)
_LABEL = re.compile(r"[ \t]*+(?P<label>\S{1,120}?(?: [\w:.-]{1,40})?):(?=\s|$)")
_MOST_LABELS = 200

_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,7}))? \+\d+(?:,(\d{1,7}))? @@.*")
_DATE = re.compile(
    r"(?:Author|Commit)?Date: +(?:[A-Z][a-z]{2} [A-Z][a-z]{2} +\d|\d{4}-\d\d-\d\d).*"
)
_MESSAGE_INDENT = 4


class OutputLine(NamedTuple):
    """One line of an output, as passed to the parsers.

    `text`: the line without gutters, cut if it is too long. `whole`: the same line, uncut.
    `scope`: the package or environment that printed the line. `command`: the number of the agent's
    command. `place`: the line's number in the output of this command, starting at 1.
    `numbered`: the line had a line number in front, as in source listings.
    `quoted`: the line is part of a diff or a log, so no runner printed it during this run.
    """

    number: int
    text: str
    indent: int
    whole: str
    scope: str
    command: int
    place: int
    numbered: bool
    quoted: bool


class _BareLine(NamedTuple):
    """A line without its gutters; `indent` is the column of its first character.

    `scope`: the package that a build tool printed in front. `numbered`: the line had a line number
    in front, as in source listings. `pointed`: the line had a `>` in front.
    """

    text: str
    indent: int
    scope: str
    numbered: bool
    pointed: bool


def decode(data: bytes) -> str:
    """Return the output as text. Accepts any bytes; a lone byte 9B is the CSI of a terminal."""
    text = data.decode("utf-8", "surrogateescape")
    return _LONE_BYTES.sub(lambda byte: "\x9b" if byte[0] == _CSI_BYTE else "\ufffd", text)


def plain(text: str) -> str:
    """Return the text without control codes; text that overwrites a line becomes a new line."""
    if "\x1b" in text or "\x9b" in text:
        text = _FORWARD.sub(" ", _REWRITES.sub("\n", text))
    text = clean(text).replace("\xa0", " ").replace("\ufeff", "")
    # Some agents strip only the escape characters and print the rest of the color codes.
    colored = any(reset in text for reset in _RESETS)
    return _REST_OF_COLORS.sub("", text) if colored else text


def lines(text: str) -> Iterator[OutputLine]:
    """Yield the lines of a plain text without the agent's own lines; merge blank lines."""
    scope, command, began, leftmost = "", 0, 0, _LONGEST
    quotations = _Quotations()
    for number, line in enumerate(_untangled(_bare_lines(text)), 1):
        content = line.text[:_LONGEST]
        leftmost = min(leftmost, line.indent) if content else leftmost
        if line.indent == leftmost and (content.startswith(_COMMANDS) or content in _CODEX):
            command, began, quotations = command + 1, number, _Quotations()
            continue
        if line.pointed or any(hint in content for hint in _SCOPE_HINTS):
            started = _SCOPE_STARTS.fullmatch(content)
            scope = started[started.lastgroup or 0] if started else scope
        yield OutputLine(
            number,
            content,
            line.indent,
            line.text,
            line.scope + scope,
            command,
            number - began,
            line.numbered,
            quotations.cover(content, line.indent),
        )


def _bare_lines(text: str) -> Iterator[_BareLine]:
    known = _labels(text)
    blank = False
    for raw in text.rsplit("\n", _MOST_LINES)[-_MOST_LINES:]:
        if blank and (not raw or raw.isspace()):
            continue
        line = _bare(raw, known)
        blank = not line.text
        yield line


def _untangled(bare_lines: Iterable[_BareLine]) -> Iterator[_BareLine]:
    """Yield the lines grouped by package, for packages that were tested in parallel."""
    packages: dict[str, list[_BareLine]] = {}
    for line in bare_lines:
        if line.scope:
            packages.setdefault(line.scope, []).append(line)
        elif not packages:
            yield line
        elif line.text:
            yield from _grouped(packages)
            packages = {}
            yield line
    yield from _grouped(packages)


def _grouped(packages: dict[str, list[_BareLine]]) -> Iterator[_BareLine]:
    for package in packages.values():
        yield from package


# -- gutters -------------------------------------------------------------------------------------


def _labels(text: str) -> frozenset[str]:
    """Return the labels that a build tool prints in front of the lines of each package."""
    found = (match[1] or match[2] for match in _LABELLED.finditer(text))
    return frozenset(islice(found, _MOST_LABELS))


def _bare(line: str, known: frozenset[str] = frozenset()) -> _BareLine:
    """Return the line without the prefixes of agents, terminals and log viewers."""
    start, scope = 0, ""
    kinds = set()
    for _ in range(_MOST_GUTTERS):
        gutter = _gutter(line, start, known)
        if gutter is None:
            break
        start = gutter.end()
        kinds.add(gutter.lastgroup)
        if gutter.lastgroup in _SCOPE_GROUPS:
            scope += gutter[gutter.lastgroup]
    text = line[start:]
    begin = start + len(text) - len(text.lstrip())
    text = text.strip()
    if "box" in kinds:
        text = text.rstrip(_BOX + " ")
    indent = begin + 7 * line.count("\t", 0, begin)
    return _BareLine(text, indent, scope, "number" in kinds, "point" in kinds)


def _gutter(line: str, start: int, known: frozenset[str]) -> re.Match[str] | None:
    gutter = _GUTTERS.match(line, start)
    if gutter is None and known:
        label = _LABEL.match(line, start)
        return label if label is not None and label["label"] in known else None
    return gutter


# -- quotations ----------------------------------------------------------------------------------


class _Quotations:
    """Finds lines that a tool quotes: the hunks of a diff, and the messages in a commit log.

    The heading of a hunk states the number of its lines. Each line of a hunk starts in the column
    of the heading with a sign or a blank, so any other line ends a truncated hunk.
    """

    def __init__(self) -> None:
        self._column = 0
        self._old = self._new = 0
        self._in_message = False

    def cover(self, text: str, indent: int) -> bool:
        """Return whether the next line belongs to a quotation."""
        if (self._old > 0 or self._new > 0) and self._continues_hunk(text, indent):
            return True
        self._old = self._new = 0
        if self._in_message and (not text or indent >= self._column + _MESSAGE_INDENT):
            return True
        self._in_message = False
        self._begin(text, indent)
        return False

    def _continues_hunk(self, text: str, indent: int) -> bool:
        sign = text[:1] if indent <= self._column else " "
        if sign not in {" ", "+", "-", "\\", ""} or (text and indent < self._column):
            return False
        self._old -= sign in {" ", "-", ""}
        self._new -= sign in {" ", "+", ""}
        return True

    def _begin(self, text: str, indent: int) -> None:
        hunk = _HUNK.fullmatch(text) if text.startswith("@@") else None
        if hunk is not None:
            self._old, self._new = (int(lines or 1) for lines in hunk.groups())
            self._column = indent
        elif "Date: " in text[:12] and _DATE.fullmatch(text):
            self._in_message = True
            self._column = indent
