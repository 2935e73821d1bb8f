"""Find the test command in AGENTS.md.

An assignment (`TEST_COMMAND="pytest -q"`) beats every label, for whoever wrote it was speaking to
a program. Otherwise the first label in the document that has a command wins: `Test:`, `**Tests**:`,
`Test command:`, or a heading of that name, each with inline code, plain words or code below.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from rooda.ralph.reading.assignment import read_value
from rooda.ralph.reading.command_words import as_command, code_alone, command_in
from rooda.ralph.reading.inline import label_of, plain
from rooda.ralph.reading.markdown import Kind, Line, lines_of
from rooda.ralph.reading.shell_block import TEXTS, first_command

_LOOKED_AT_BELOW = 50  # lines below a label
_END = 20  # characters of a line

_ASSIGNMENT = re.compile(
    r"[ \t]*+(?:[-*+][ \t]++)?(?P<tick>`?)(?:\$[ \t]++)?(?:export[ \t]++)?"
    r"TEST_COMMAND[ \t]*+[?:]?=(?P<value>.*)(?P=tick)[ \t]*"
)
_TESTS = r"(?:unit )?tests?(?: suite)?(?: commands?)?"
_LABEL = re.compile(rf"(?:run(?:ning)? (?:the |all )?)?{_TESTS}|testing|test_command")
_DECORATION = re.compile(r"^[\W\d_]+|[\W_]+$")  # of a heading: numbers, signs
_INTRODUCTION = re.compile(r":[*_]*\s*$")


def find_test_command(text: str) -> str | None:
    """The command that runs the tests; "" where it is assigned as empty, None where none is."""
    lines = list(lines_of(text))
    for found in (map(_assigned, lines), _labelled(lines)):
        for command in found:
            if command is not None:
                return command
    return None


def _assigned(line: Line) -> str | None:
    if "TEST_COMMAND" not in line.text or line.kind not in (Kind.CODE, Kind.TEXT):
        return None
    match = _ASSIGNMENT.fullmatch(line.text)
    value = read_value(match["value"].strip()) if match else None
    if value is None or value.trouble:
        return None
    return as_command(value.text) if value.text.strip() else ""


def _labelled(lines: Sequence[Line]) -> Iterator[str | None]:
    language = ""
    for at, line in enumerate(lines):
        if line.kind is Kind.OPENING:
            language = line.text
        label = label_of(line.text) if line.kind in (Kind.TEXT, Kind.CODE, Kind.HEADING) else None
        if label is not None and _LABEL.fullmatch(label.name):
            if line.kind is not Kind.CODE or language in TEXTS:
                yield command_in(label.value) if label.value else _below(lines, at)
        elif line.kind is Kind.HEADING and _LABEL.fullmatch(_bare(line.text)):
            yield _below(lines, at)
        if line.kind is Kind.CLOSING:
            language = ""


def _bare(heading: str) -> str:
    return _DECORATION.sub("", plain(heading).lower())


def _below(lines: Sequence[Line], at: int) -> str | None:
    """The command in what comes next; between it and a heading there may be an introduction."""
    nearby = _after_blanks(lines[at + 1 : at + 1 + _LOOKED_AT_BELOW])
    if lines[at].kind is Kind.HEADING:
        nearby = _after_introduction(nearby)
    if not nearby:
        return None
    first = nearby[0]
    if first.kind is Kind.TEXT:
        return code_alone(first.text)
    if first.kind not in (Kind.OPENING, Kind.CODE):
        return None
    is_fenced = first.kind is Kind.OPENING
    code = takewhile(lambda line: line.kind is Kind.CODE, nearby[is_fenced:])
    command = first_command([line.text for line in code], first.text if is_fenced else "")
    return None if command is None else as_command(command)


def _after_introduction(lines: Sequence[Line]) -> Sequence[Line]:
    """What follows a paragraph such as `Run the tests with:`."""
    paragraph = list(takewhile(lambda line: line.kind is Kind.TEXT, lines))
    if paragraph and _INTRODUCTION.search(paragraph[-1].text[-_END:]):
        return _after_blanks(lines[len(paragraph) :])
    return lines


def _after_blanks(lines: Sequence[Line]) -> Sequence[Line]:
    return list(dropwhile(lambda line: line.kind is Kind.BLANK, lines))
