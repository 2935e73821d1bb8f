"""JUnit XML files that a test runner wrote during an iteration."""

import math
import os
from collections.abc import Iterator, Sequence
from errno import EINVAL
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from rooda.testresults.globs import matching
from rooda.testresults.junit_xml import LARGEST, looks_like_report, xml_report
from rooda.testresults.parser import MOST_DETAILS, detail
from rooda.testresults.suites import Counts
from rooda.testresults.types import TestDetail, TestResults, TestStatus

_MOST_FILES = 5_000
_MOST_BYTES = 48 * 1024 * 1024  # of all files together
_HEAD = 64 * 1024
_TICK = 0.02  # the kernel's clock for files lags behind by a few milliseconds
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not hold us up


def read_reports(patterns: Sequence[str], folder: Path, since: float) -> TestResults | None:
    """The sum of the JUnit XML files below the folder that were written at `since` or later.

    Reports and console output tell of the same tests, so only one of them can be the result. It
    is the reports, which are exact; what was printed counts where there are none:

        results = read_reports(patterns, folder, since) or read_outputs(stdout, stderr, verify)

    A report that is broken or too large counts nothing. Next to others it is named as an error,
    so that the rest alone isn't taken for a success; alone it is as if it weren't there. Copies
    of a report count once.
    """
    total = _Sum()
    left = _MOST_BYTES
    for number, file in enumerate(_fresh(matching(patterns, folder), since)):
        name = str(file.path.relative_to(folder))
        left -= len(file.data)
        if left < 0 or number == _MOST_FILES:
            total.miss(name)
            break
        total.add(name, file)
    return total.results()


class _File(NamedTuple):
    """A file, or the beginning of one that is too large."""

    path: Path
    data: bytes
    is_whole: bool


class _Sum:
    """What the reports come to."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._details: list[TestDetail] = []
        self._missed: list[str] = []
        self._seen: set[bytes] = set()

    def add(self, name: str, file: _File) -> None:
        """Add a report; what is none is left out."""
        report = xml_report(file.data) if file.is_whole else None
        if report is None:
            if looks_like_report(file.data):
                self.miss(name)
            return
        digest = sha256(file.data).digest()
        if digest not in self._seen:
            self._seen.add(digest)
            self._counts += report.counts
            self._details += report.details[: MOST_DETAILS - len(self._details)]

    def miss(self, name: str) -> None:
        """Take note of a report that can't be read."""
        self._missed.append(name)

    def results(self) -> TestResults | None:
        """The sum, if anything could be read."""
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


def _fresh(paths: Sequence[Path], since: float) -> Iterator[_File]:
    """The files that were written since, as far as they are regular ones and can be read."""
    for path in paths:
        try:
            if _written_since(path.lstat(), since):
                yield _opened(path)
        except OSError:
            continue  # gone, a link by now, or closed to us


def _opened(path: Path) -> _File:
    with os.fdopen(os.open(path, _FLAGS), "rb") as stream:
        state = os.fstat(stream.fileno())
        if not S_ISREG(state.st_mode):
            raise OSError(EINVAL, "no regular file any more")
        is_whole = state.st_size <= LARGEST
        return _File(path, stream.read(LARGEST if is_whole else _HEAD), is_whole)


def _written_since(state: os.stat_result, since: float) -> bool:
    """By the file's own time, which on some file systems has no fraction of a second."""
    in_seconds = state.st_mtime_ns % 1_000_000_000 == 0
    return state.st_mtime >= (math.floor(since) if in_seconds else since - _TICK)
