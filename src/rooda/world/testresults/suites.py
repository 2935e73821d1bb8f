"""The records that the parsers produce: suites with their counts and details."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from rooda.world.testresults.results import TestDetail, TestStatus

MOST_DETAILS = 1000  # of one suite, and of one result
LONGEST_NAME = 400
_LONGEST_MESSAGE = 1000
_MOST_DIGITS = 9  # no run has a billion tests, and int() is slow for many digits


class Counts(Struct, frozen=True):
    """The number of tests by result.

    `expected` counts expected failures and unexpected passes.
    """

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
        """The number of all tests."""
        return self.passed + self.failed + self.skipped + self.expected

    @staticmethod
    def out_of(total: int, failed: int = 0, skipped: int = 0, expected: int = 0) -> "Counts":
        """Return the counts for a runner that prints the total but not the passed tests."""
        return Counts(max(0, total - failed - skipped - expected), failed, skipped, expected)


class Suite(Struct, frozen=True):
    """The results of one summary, and the numbers of its first and last line.

    Suites with the same `run` add up; each run of a runner has its own number. `scope` names the
    environment or package of the suite. `command` is the number of the agent's command.
    `combine.py` uses all three.
    """

    runner: str
    counts: Counts
    details: tuple[TestDetail, ...]
    first: int
    last: int
    run: int = 0
    scope: str = ""
    command: int = 0


def detail(name: str, status: TestStatus, message: str = "") -> TestDetail:
    """Return a detail with name and message cut to their maximum length."""
    return TestDetail(name[:LONGEST_NAME], status, error=message[:_LONGEST_MESSAGE] or None)


class RunnerReport(NamedTuple):
    """The results in one report document of a runner; with the names of tests in JUnit XML."""

    runner: str
    counts: Counts
    details: list[TestDetail]
    ran: Sequence[str] = ()
    skipped: Sequence[str] = ()


XML_REPORT = "junit xml"  # the runner name of a report that does not name its runner

# The meaning of a runner's word: a field of `Counts`, the total, or a number to ignore.
PASSED, FAILED, SKIPPED, EXPECTED = "passed", "failed", "skipped", "expected"
TOTAL, OTHER = "total", ""


def number(text: str) -> int:
    """Return the number in the text; 0 for `-`, an empty text or an implausible number."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def tally(pieces: Iterable[str], words: Mapping[str, str]) -> dict[str, int] | None:
    """Return the sums of pieces such as `2 failed`, by the meanings of their words.

    Text in brackets after the word is ignored. Returns None if a piece is not a number with a known
    word, because then the line is not a summary of this runner.
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
    """Return the number of failures in a list that starts with them: `2 failed | 1 passed`."""
    amount, _, rest = counts.partition(" ")
    return number(amount) if rest.startswith("failed") else 0


def counted(sums: Mapping[str, int]) -> Counts:
    """Return the counts for a runner that prints each of them."""
    return Counts(sums[PASSED], sums[FAILED], sums[SKIPPED], sums[EXPECTED])


def rest_passed(sums: Mapping[str, int]) -> Counts:
    """Return the counts for a runner that prints the total and the tests that did not pass."""
    return Counts.out_of(sums[TOTAL], sums[FAILED], sums[SKIPPED], sums[EXPECTED])
