"""Take off what terminals and agents put around a program's lines."""

import re
from itertools import islice
from typing import NamedTuple

from rooda.text.controls import clean

# The cursor goes elsewhere: what follows is written over something, so it is a line of its own.
_REWRITES = re.compile(r"(?:\x1b\[|\x9b)[0-9;]*+[ABDEFGHf]")
_FORWARD = re.compile(r"(?:\x1b\[|\x9b)[0-9]*+C")
_REST_OF_COLOURS = re.compile(
    r"(?:\(B)?(?:\^\[|\\(?:u001b|x1b|033|e))?\[(?:\d[\d;]{0,20}+m|[mK](?!\w))"
)
_RESETS = ("[0m", "[39m", "[m")
_LONE_BYTES = re.compile("[\udc80-\udcff]")
_CSI_BYTE = "\udc9b"

_BOX = "│┃║▌▍▎▏┆┊╎╏"
_NO_NAMES = (  # words in brackets that runners and builds print themselves
    "doctest|gw\\d+|(?i:debug|info|warn|warning|error|ok|pass|passed|fail|failed|skip|skipped|x)"
)
_GUTTERS = re.compile(
    rf"""[ \t]*+(?:
      (?P<box>[{_BOX}])(?=[ \t]|$)
    | [|⎿](?=[ \t]|$)                                     # a bar; Claude Code's corner
    | [├└╰╭┌][─╴]{{0,3}}+(?=[ ])                            # a tree
    | (?P<point>>)(?=[ ]|$)                               # a quotation
    | \[(?:stdout|stderr|out|err)\](?=\s)                  # which stream
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
_SCOPES = ("service", "name", "scoped", "package", "folder", "label")
_MOST_GUTTERS = 4
# Any other label gives itself away where npm and pnpm say what they run.
_LABELLED = re.compile(
    r"^[ \t]*+(?:(\S{1,120}): > (?:@[\w.-]{1,80}/)?[\w.-]{1,80}@\d|(\S{1,120} [\w:.-]{1,40})\$ \S)",
    re.MULTILINE,
)
_LABEL = re.compile(r"[ \t]*+(?P<label>\S{1,120}?(?: [\w:.-]{1,40})?):(?=\s|$)")
_MOST_LABELS = 200


class Bare(NamedTuple):
    """A line without its gutters; `indent` is the column where it begins.

    `scope` names the package that a build tool put there; `numbered` says that there was the
    number of a line, as in listings of source; `pointed`, that there was a `>`.
    """

    text: str
    indent: int
    scope: str
    numbered: bool
    pointed: bool


def decode(data: bytes) -> str:
    """The text of a program that may print anything; a lone byte 9B is a terminal's CSI."""
    text = data.decode("utf-8", "surrogateescape")
    return _LONE_BYTES.sub(lambda byte: "\x9b" if byte[0] == _CSI_BYTE else "\ufffd", text)


def plain(text: str) -> str:
    """The text without control codes, each rewriting of a line being a line."""
    if "\x1b" in text or "\x9b" in text:
        text = _FORWARD.sub(" ", _REWRITES.sub("\n", text))
    text = clean(text).replace("\xa0", " ").replace("\ufeff", "")
    # Some agents drop the escape characters alone, and print what is left of the colours.
    coloured = any(reset in text for reset in _RESETS)
    return _REST_OF_COLOURS.sub("", text) if coloured else text


def labels(text: str) -> frozenset[str]:
    """What a build tool put in front of each line of a package, where it names the package."""
    found = (match[1] or match[2] for match in _LABELLED.finditer(text))
    return frozenset(islice(found, _MOST_LABELS))


def bare(line: str, known: frozenset[str] = frozenset()) -> Bare:
    """The line without prefixes that agents, terminals and log viewers put there."""
    start, scope = 0, ""
    kinds = set()
    for _ in range(_MOST_GUTTERS):
        gutter = _gutter(line, start, known)
        if gutter is None:
            break
        start = gutter.end()
        kinds.add(gutter.lastgroup)
        if gutter.lastgroup in _SCOPES:
            scope += gutter[gutter.lastgroup]
    text = line[start:]
    begin = start + len(text) - len(text.lstrip())
    text = text.strip()
    if "box" in kinds:
        text = text.rstrip(_BOX + " ")
    indent = begin + 7 * line.count("\t", 0, begin)
    return Bare(text, indent, scope, "number" in kinds, "point" in kinds)


def _gutter(line: str, start: int, known: frozenset[str]) -> re.Match[str] | None:
    gutter = _GUTTERS.match(line, start)
    if gutter is None and known:
        label = _LABEL.match(line, start)
        return label if label is not None and label["label"] in known else None
    return gutter
