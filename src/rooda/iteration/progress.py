"""Whether an iteration got anywhere. Pure."""

from rooda.testresults.types import TestResults

_NONE_YET = TestResults(total=0, passed=0, failed=0, skipped=0)


def detect_progress(
    *,
    files_changed: bool,
    commits_made: int = 0,
    tests: TestResults | None = None,
    tests_before: TestResults | None = None,
) -> bool:
    """Files changed, commits made, or tests better than in the iteration before."""
    return files_changed or commits_made > 0 or are_better(tests, tests_before)


def are_better(tests: TestResults | None, before: TestResults | None) -> bool:
    """More passed or fewer failed. That nothing failed where nothing ran is no progress."""
    if tests is None or tests.total == 0:
        return False
    before = before or _NONE_YET
    return tests.passed > before.passed or tests.failed < before.failed
