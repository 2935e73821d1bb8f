"""Counts, and the suites that have them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooda.testresults.types import TestDetail

_MOST_DIGITS = 9  # no run has a billion tests, and int() of a megabyte of digits is slow


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests ended how. `expected`: failures that were expected, and their surprises."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    expected: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.expected + other.expected,
        )

    @property
    def total(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.skipped + self.expected

    @staticmethod
    def out_of(total: int, failed: int = 0, skipped: int = 0, expected: int = 0) -> "Counts":
        """The counts of a runner that prints all but the passed."""
        return Counts(max(0, total - failed - skipped - expected), failed, skipped, expected)


@dataclass(frozen=True, slots=True)
class Suite:
    """What one summary said, and where in the text it stands.

    Suites of one `run` (a number that no other run of that runner has) add up. `scope` names the
    environment or package in which a command ran it, `command` numbers the agent's own commands;
    see `combine.py`.
    """

    runner: str
    counts: Counts
    details: tuple[TestDetail, ...]
    first: int
    last: int
    run: int = 0
    scope: str = ""
    command: int = 0


XML_REPORT = "junit xml"  # the runner of a report that doesn't say who wrote it

# What a runner's word stands for: a field of `Counts`, the total, or nothing that is counted.
PASSED, FAILED, SKIPPED, EXPECTED = "passed", "failed", "skipped", "expected"
TOTAL, OTHER = "total", ""


def number(text: str) -> int:
    """The number that `text` is, or 0 for `-`, nothing, or what no run can have."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def tally(pieces: Iterable[str], words: Mapping[str, str]) -> dict[str, int] | None:
    """Add up pieces like `2 failed`, by what `words` says they are.

    What stands in brackets after the word is left out. Nothing at all when a piece is no number
    with a known word: then it isn't this runner's summary.
    """
    sums = dict.fromkeys((PASSED, FAILED, SKIPPED, EXPECTED, TOTAL, OTHER), 0)
    for piece in pieces:
        amount, _, word = piece.strip().partition(" ")
        role = words.get(word.partition(" (")[0].strip())
        if role is None or not amount.isdecimal():
            return None
        sums[role] += number(amount)
    return sums


def failed_among(counts: str) -> int:
    """How many failed, by a list that names them first: `2 failed | 1 passed`."""
    amount, _, rest = counts.partition(" ")
    return number(amount) if rest.startswith("failed") else 0


def counted(sums: Mapping[str, int]) -> Counts:
    """The counts of a runner that prints each of them."""
    return Counts(sums[PASSED], sums[FAILED], sums[SKIPPED], sums[EXPECTED])


def rest_passed(sums: Mapping[str, int]) -> Counts:
    """The counts of a runner that prints the total and what didn't pass."""
    return Counts.out_of(sums[TOTAL], sums[FAILED], sums[SKIPPED], sums[EXPECTED])
