"""Test result records, and a fast check whether an output can contain results.

Every run imports this module, so it stays small; `read.py` and the parsers are loaded on demand.
"""

import re
from enum import StrEnum

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
