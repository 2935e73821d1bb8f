"""Finds and reads the JUnit XML files that a test runner wrote during an iteration.

The folder is under the agent's control, so rooda goes through the door (`world/files/beneath.py`).
The search (`world/files/matching.py`) and the sizes of files are limited.
"""

import math
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rooda.world.files.beneath import Beneath
from rooda.world.files.matching import matching
from rooda.world.testresults.census import MOST_NAMES, REPORTS, RunnerCount, TestCensus
from rooda.world.testresults.junit_xml import LARGEST, looks_like_report, xml_report
from rooda.world.testresults.results import TestDetail, TestResults, TestStatus
from rooda.world.testresults.suites import MOST_DETAILS, Counts, detail

_MOST_FILES = 5_000
_MOST_BYTES = 48 * 1024 * 1024  # of all files together
_HEAD = 64 * 1024
_TICK = 0.02  # seconds; the kernel's file clock lags by a few milliseconds


def read_reports(patterns: Sequence[str], folder: Path, since: float) -> TestResults | None:
    """Return the sum of the JUnit XML files below the folder that were written since `since`.

    Reports and console output cover the same tests, so only one of the two is the result. Reports
    are exact; the caller falls back to the console output if the result is None:

        results = read_reports(patterns, folder, since) or read_outputs(stdout, stderr, verify)

    A broken or too large report adds no tests. If other reports are readable, the broken report
    becomes an error in the details, so that the result is no success; if it is the only report, it
    is ignored. Identical copies of a report count once.
    """
    return _sum_of(patterns, folder, since).results()


def count_reports(patterns: Sequence[str], folder: Path, since: float) -> TestCensus | None:
    """Return which tests those reports have; None if there is none, or one can't be read."""
    return _sum_of(patterns, folder, since).census()


def _sum_of(patterns: Sequence[str], folder: Path, since: float) -> "_ReportSum":
    total = _ReportSum()
    left = _MOST_BYTES
    door = Beneath(folder)
    for number, file in enumerate(_fresh(door, matching(patterns, folder), since)):
        left -= len(file.data)
        if left < 0 or number == _MOST_FILES:
            total.miss(file.name)
            break
        total.add(file)
    return total


class _File(NamedTuple):
    """A file; `data` is only the beginning if the file is too large."""

    name: str
    data: bytes
    is_whole: bool


class _ReportSum:
    """Adds up the reports."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._details: list[TestDetail] = []
        self._missed: list[str] = []
        self._seen: set[bytes] = set()
        self._ran: list[str] = []
        self._skipped: list[str] = []

    def add(self, file: _File) -> None:
        """Add a report; ignore a file that is not a report."""
        report = xml_report(file.data) if file.is_whole else None
        if report is None:
            if looks_like_report(file.data):
                self.miss(file.name)
            return
        digest = sha256(file.data).digest()
        if digest not in self._seen:
            self._seen.add(digest)
            self._counts += report.counts
            self._details += report.details[: MOST_DETAILS - len(self._details)]
            self._ran += report.ran[: MOST_NAMES + 1 - len(self._ran)]
            self._skipped += report.skipped[: MOST_NAMES + 1 - len(self._skipped)]

    def miss(self, name: str) -> None:
        """Record the name of a report that cannot be read."""
        self._missed.append(name)

    def census(self) -> TestCensus | None:
        """Return which tests there are, or None if a report is missing."""
        if not self._seen or self._missed:
            return None
        runners = (RunnerCount(REPORTS, self._counts.total, self._counts.skipped),)
        if len(self._ran) + len(self._skipped) > MOST_NAMES:
            return TestCensus(runners)
        return TestCensus(runners, tuple(sorted(self._ran)), tuple(sorted(self._skipped)))

    def results(self) -> TestResults | None:
        """Return the sum, or None if no report could be read."""
        if not self._seen:
            return None
        missed = [
            detail(name, TestStatus.ERROR, "not read: broken, too large, or one too many")
            for name in self._missed[:MOST_DETAILS]
        ]
        counts = self._counts
        return TestResults(
            counts.total,
            counts.passed,
            counts.failed,
            counts.skipped,
            (*missed, *self._details)[:MOST_DETAILS],
        )


def _fresh(door: Beneath, names: Sequence[str], since: float) -> Iterator[_File]:
    """Yield the regular files that were written since `since` and can be read."""
    for name in names:
        try:
            if _written_since(door.status(name), since):
                yield _opened(door, name)
        except OSError:
            continue  # deleted or replaced by a link since the search, or unreadable


def _opened(door: Beneath, name: str) -> _File:
    with door.open(name) as stream:
        is_whole = os.fstat(stream.fileno()).st_size <= LARGEST
        return _File(name, stream.read(LARGEST if is_whole else _HEAD), is_whole)


def _written_since(state: os.stat_result, since: float) -> bool:
    """Return whether the file was written at or after `since`; some file systems keep seconds."""
    in_seconds = state.st_mtime_ns % 1_000_000_000 == 0
    return state.st_mtime >= (math.floor(since) if in_seconds else since - _TICK)
