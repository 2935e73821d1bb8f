"""Test result records, and a fast check whether an output can contain results.

Every run imports this module, so it stays small; `read.py` and the parsers are loaded on demand.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

LIMIT = 4 * 1024 * 1024  # read this many bytes from the end of an output

# Every test runner prints one of these words, in lower case, upper case or capitalized.
_STEMS = (b"pass", b"fail", b"test", b"ok", b"spec", b"example", b"assertion", b"scenario", b"1..")
_FORMS = (form for stem in _STEMS for form in (stem, stem.upper(), stem.capitalize()))
_WORDS = tuple(form for form in _FORMS if form != b"FAIL")
_FAIL = re.compile(rb"(?<!<promise>)FAIL")  # the agent's FAILURE signal is not a test result


class TestStatus(StrEnum):
    """How one test ended."""

    __test__ = False  # pytest would collect the class because of its name

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"

    @property
    def is_bad(self) -> bool:
        """Whether the test failed, or could not run to its end."""
        return self in (TestStatus.FAILED, TestStatus.ERROR)


class TestDetail(Struct, frozen=True):
    """One test, or one error outside of the tests."""

    __test__ = False

    name: str
    status: TestStatus
    duration_ms: int | None = None
    error: str | None = None


class TestResults(Struct, frozen=True):
    """The sum of the last run of each test runner.

    `failed` includes errors. `total` counts the passed, failed and skipped tests and the tests with
    an expected failure. `details` names the failed tests. An error outside of the tests (an
    unhandled error, an interrupt) is a detail too, but is not counted in `failed`.
    """

    __test__ = False

    total: int
    passed: int
    failed: int
    skipped: int
    details: tuple[TestDetail, ...] = ()

    def all_passed(self) -> bool:
        """Return whether a test passed and nothing failed; without tests it is False."""
        return (
            self.passed > 0
            and self.failed == 0
            and not any(detail.status.is_bad for detail in self.details)
        )

    def success_rate(self) -> float:
        """Return the percentage of passed tests; 100 without tests."""
        return 100.0 * self.passed / self.total if self.total else 100.0


def may_have_results(output: bytes) -> bool:
    """Return whether the end of an output contains a word that test runners print.

    The check copies nothing, so a flood of other text costs neither memory nor parser time.
    """
    start = max(0, len(output) - LIMIT)
    known = any(output.find(word, start) != -1 for word in _WORDS)
    return known or _FAIL.search(output, start) is not None


# The records that the parsers produce: suites with their counts and details.


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
    `read.py` uses all three.
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
