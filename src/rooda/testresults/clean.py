"""Take off what terminals and agents put around a program's lines."""

import re
from typing import NamedTuple

from rooda.text.controls import clean

# The cursor goes elsewhere: what follows is written over something, so it is a line of its own.
_REWRITES = re.compile(r"(?:\x1b\[|\x9b)[0-9;]*+[ABDEFGHf]")
_FORWARD = re.compile(r"(?:\x1b\[|\x9b)[0-9]*+C")
_LONE_BYTES = re.compile("[\udc80-\udcff]")
_CSI_BYTE = "\udc9b"

_BOX = "│┃║▌▍▎▏┆┊╎╏"
_GUTTERS = re.compile(
    rf"""[ \t]*+(?:
      (?P<box>[{_BOX}])(?=[ \t]|$)
    | [|⎿](?=[ \t]|$)                                     # a bar; Claude Code's corner
    | [├└╰╭┌][─╴]{{0,3}}+(?=[ ])                            # a tree
    | >(?=[ ]|$)                                          # a quotation
    | \[(?:stdout|stderr|out|err|\d{{1,3}})\](?=\s)         # which stream, which of several
    | \[?(?:\d{{4}}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?
      (?:Z|[+-]\d\d:?\d\d)?\]?(?=\s)                        # the time
    | (?P<number>\d{{1,7}})(?:[→\t]|[ ]?:(?=\s)|[ ]?[|│](?=\s|$))  # a listing's line number
    | [\w.-]{{1,60}}[-_]\d{{1,4}}[ ]{{1,40}}\|(?=\s|$)          # docker compose
    | [^\t]{{1,80}}\t[^\t]{{1,80}}\t(?=\d{{4}}-\d\d-\d\dT)      # gh run view --log
    | (?P<package>@?[\w./-]{{1,80}}:test[\w:-]{{0,40}}):(?=\s)  # turbo
    | (?P<folder>[\w@.-]{{0,80}}[/.][\w@./-]{{0,80}}[ ]test[\w:-]{{0,40}}):(?=\s)  # pnpm -r
    )""",
    re.VERBOSE,
)
_MOST_GUTTERS = 4


class Bare(NamedTuple):
    """A line without its gutters; `indent` is the column where it begins.

    `scope` names the package that a build tool put there; `numbered` says that there was the
    number of a line, as in listings of source.
    """

    text: str
    indent: int
    scope: str
    numbered: bool


def decode(data: bytes) -> str:
    """The text of a program that may print anything; a lone byte 9B is a terminal's CSI."""
    text = data.decode("utf-8", "surrogateescape")
    return _LONE_BYTES.sub(lambda byte: "\x9b" if byte[0] == _CSI_BYTE else "\ufffd", text)


def plain(text: str) -> str:
    """The text without control codes, each rewriting of a line being a line."""
    if "\x1b" in text or "\x9b" in text:
        text = _FORWARD.sub(" ", _REWRITES.sub("\n", text))
    return clean(text)


def bare(line: str) -> Bare:
    """The line without prefixes that agents, terminals and log viewers put there."""
    start, scope, boxed, numbered = 0, "", False, False
    for _ in range(_MOST_GUTTERS):
        gutter = _GUTTERS.match(line, start)
        if gutter is None:
            break
        start = gutter.end()
        scope = scope or gutter["package"] or gutter["folder"] or ""
        boxed = boxed or gutter["box"] is not None
        numbered = numbered or gutter["number"] is not None
    text = line[start:]
    begin = start + len(text) - len(text.lstrip())
    text = text.strip()
    if boxed:
        text = text.rstrip(_BOX + " ")
    return Bare(text, begin + 7 * line.count("\t", 0, begin), scope, numbered)
