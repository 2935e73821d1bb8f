"""The result of an iteration: changed files, tests, progress, the agent's own summary."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.base.controls import clean
from rooda.loop.result import IterationResult
from rooda.loop.session import Response
from rooda.world.git.snapshots.tree_changes import TreeScan
from rooda.world.testresults.census import TestCensus
from rooda.world.testresults.results import TestResults, may_have_results

_NONE_YET = TestResults(total=0, passed=0, failed=0, skipped=0)
_MARKERS = (b"## Summary", b"### Summary", b"Summary:")
_LINES = 5
_LONGEST = 16 * 1024
_SIGNAL = re.compile(r"<promise>\s*[\w.-]+\s*</promise>")


def result_of(
    response: Response, seen: TreeScan, duration_ms: int, context_usage: int | None
) -> IterationResult:
    """Return the result of an agent that has ended, without its output and its tests."""
    changes = seen.changes
    spoken = response.printed.stdout if response.spoken is None else response.spoken
    return IterationResult(
        exit_code=response.exit_code,
        files_modified=changes.modified if changes else (),
        files_created=changes.created if changes else (),
        files_deleted=changes.deleted if changes else (),
        context_usage_percent=context_usage,
        summary=extract_summary(spoken),
        duration_ms=duration_ms,
    )


def with_tests(
    result: IterationResult, tests: TestResults | None, before: TestResults | None, commits: int
) -> IterationResult:
    """The result with its tests, and with whether they, the files or commits are progress."""
    progress = detect_progress(
        files_changed=result.files_changed,
        commits_made=commits,
        tests=tests,
        tests_before=before,
    )
    return replace(
        result, tests_run=tests is not None, test_results=tests, progress_detected=progress
    )


def read_tests(
    outputs: Sequence[bytes], reports: tuple[str, ...], folder: Path, since: float
) -> TestResults | None:
    """The tests in report files written since a moment, else in what programs printed."""
    # The parsers are imported only where there is something to parse: they are large.
    if reports:
        from rooda.world.testresults.junit_xml import read_reports  # noqa: PLC0415

        found = read_reports(reports, folder, since)
        if found is not None:
            return found
    if not any(map(may_have_results, outputs)):
        return None
    from rooda.world.testresults.read import read_outputs  # noqa: PLC0415

    return read_outputs(*outputs)


def count_tests(
    output: bytes, reports: tuple[str, ...], folder: Path, since: float
) -> TestCensus | None:
    """The tests of a check: from reports written since its start, else from what it printed."""
    if reports:
        from rooda.world.testresults.junit_xml import count_reports  # noqa: PLC0415

        found = count_reports(reports, folder, since)
        if found is not None:
            return found
    if not may_have_results(output):
        return None
    from rooda.world.testresults.read import count_tests as counted  # noqa: PLC0415

    return counted(output)


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


def without_signals(summary: str) -> str:
    """Return a summary for people: without `<promise>` tags, and without lines that have only one.

    The record keeps the summary as the agent wrote it.
    """
    lines = [(_SIGNAL.sub("", line).rstrip(), line) for line in summary.splitlines()]
    return "\n".join(text for text, line in lines if text or not line.strip()).strip()


def extract_summary(text: bytes) -> str | None:
    """What follows the first marker: five lines, the rest of the marker's own among them.

    A marker with nothing behind it is none.
    """
    found = ((text.find(marker), len(marker)) for marker in _MARKERS)
    for place, length in sorted(pair for pair in found if pair[0] != -1):
        rest = text[place + length : place + length + _LONGEST].decode("utf-8", "ignore")
        lines = clean(rest).split("\n")[:_LINES]
        summary = "\n".join(lines).removeprefix(":").strip()
        if summary:
            return summary
    return None
