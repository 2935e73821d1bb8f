"""The lines of a text as parsers see them: bare, bounded, and with their context."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rooda.testresults.clean import bare

# Longer lines are cut and earlier ones dropped: hostile output must not cost more than this.
_LONGEST = 2048
_MOST_LINES = 150_000

# An agent's own line between the outputs of two commands, or a prompt; farther left than output.
_COMMANDS = ("● ", "⏺ ", "$ ")
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
_SCOPE_HINTS = ("commands[", "Entering directory")


class Line(NamedTuple):
    """One line. `whole` is the text uncut; `scope` and `command` say in what it was printed.

    `numbered`: it had a line number in front, as in listings of source.
    """

    number: int
    text: str
    indent: int
    whole: str
    scope: str
    command: int
    numbered: bool


def lines(text: str) -> Iterator[Line]:
    """The lines of a plain text, without the agent's own; of several blank ones the first."""
    scope, command, blank, leftmost = "", 0, False, _LONGEST
    for number, raw in enumerate(text.split("\n")[-_MOST_LINES:], 1):
        if blank and (not raw or raw.isspace()):
            continue
        whole, indent, own_scope, numbered = bare(raw)
        content = whole[:_LONGEST]
        blank = not content
        leftmost = leftmost if blank else min(leftmost, indent)
        if content.startswith(_COMMANDS) and indent == leftmost:
            command += 1
            continue
        if any(hint in content for hint in _SCOPE_HINTS) or ">" in raw[:_LONGEST]:
            started = _SCOPES.fullmatch(content)
            scope = started[started.lastgroup or 0] if started else scope
        yield Line(number, content, indent, whole, own_scope + scope, command, numbered)
