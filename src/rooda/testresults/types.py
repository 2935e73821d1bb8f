"""What the test runners said, as records."""

from dataclasses import dataclass
from enum import StrEnum


class TestStatus(StrEnum):
    """How one test ended."""

    __test__ = False  # pytest would take the name for a class of tests

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TestDetail:
    """One test, or one thing that went wrong outside of the tests."""

    __test__ = False

    name: str
    status: TestStatus
    duration_ms: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TestResults:
    """What the test runners said: the last run of each, added up.

    `failed` includes errors. `total` is passed, failed and skipped tests and those whose failure
    was expected. `details` names what went wrong; a mishap outside of any test (an unhandled
    error, an interrupt) is in there as an error that `failed` does not count.
    """

    __test__ = False

    total: int
    passed: int
    failed: int
    skipped: int
    details: tuple[TestDetail, ...] = ()

    @property
    def all_passed(self) -> bool:
        """At least one test passed and nothing went wrong; no tests at all is no success."""
        wrong = (TestStatus.FAILED, TestStatus.ERROR)
        return (
            self.passed > 0
            and self.failed == 0
            and not any(detail.status in wrong for detail in self.details)
        )

    @property
    def success_rate(self) -> float:
        """The passed tests in percent of all; 100 when there were none."""
        return 100.0 * self.passed / self.total if self.total else 100.0
