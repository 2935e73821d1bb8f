"""The lines of a text as parsers see them: bare, bounded, in order, and with their context."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rooda.testresults.clean import Bare, bare, labels
from rooda.testresults.quotes import Quotations

# Longer lines are cut and earlier ones dropped: hostile output must not cost more than this.
_LONGEST = 2048
_MOST_LINES = 150_000

# An agent's own line between the outputs of two commands, or a prompt; farther left than output.
_COMMANDS = ("● ", "⏺ ", "$ ")
_CODEX = {"exec", "codex"}
# One command runs several suites: the line with which each of them begins.
_SCOPES = re.compile(
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


class Line(NamedTuple):
    """One line. `whole` is the text uncut; `scope` and `command` say in what it was printed.

    `place` counts the lines of the command, from 1. `numbered`: it had a line number in front, as
    in listings of source. `quoted`: a tool shows it, and no runner printed it just now.
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


def lines(text: str) -> Iterator[Line]:
    """The lines of a plain text, without the agent's own; of several blank ones the first."""
    scope, command, began, leftmost = "", 0, 0, _LONGEST
    quotations = Quotations()
    for number, line in enumerate(_untangled(_bare_lines(text)), 1):
        content = line.text[:_LONGEST]
        leftmost = min(leftmost, line.indent) if content else leftmost
        if line.indent == leftmost and (content.startswith(_COMMANDS) or content in _CODEX):
            command, began, quotations = command + 1, number, Quotations()
            continue
        if line.pointed or any(hint in content for hint in _SCOPE_HINTS):
            started = _SCOPES.fullmatch(content)
            scope = started[started.lastgroup or 0] if started else scope
        yield Line(
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


def _bare_lines(text: str) -> Iterator[Bare]:
    known = labels(text)
    blank = False
    for raw in text.rsplit("\n", _MOST_LINES)[-_MOST_LINES:]:
        if blank and (not raw or raw.isspace()):
            continue
        line = bare(raw, known)
        blank = not line.text
        yield line


def _untangled(bare_lines: Iterable[Bare]) -> Iterator[Bare]:
    """The lines of packages that were tested side by side, each package's together."""
    packages: dict[str, list[Bare]] = {}
    for line in bare_lines:
        if line.scope:
            packages.setdefault(line.scope, []).append(line)
        elif not packages:
            yield line
        elif line.text:
            yield from _all_of(packages)
            packages = {}
            yield line
    yield from _all_of(packages)


def _all_of(packages: dict[str, list[Bare]]) -> Iterator[Bare]:
    for package in packages.values():
        yield from package
