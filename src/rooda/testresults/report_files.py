"""Finds and reads the JUnit XML files that a test runner wrote during an iteration.

The folder is under the agent's control, so the search and the file sizes are limited, and links
are not followed.
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from hashlib import sha256
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from rooda.testresults.census import MOST_NAMES, REPORTS, RunnerCount, TestCensus
from rooda.testresults.junit_xml import LARGEST, looks_like_report, xml_report
from rooda.testresults.results import TestDetail, TestResults, TestStatus
from rooda.testresults.suites import MOST_DETAILS, Counts, detail
from rooda.text.plain_files import open_plain_file

_MOST_FILES = 5_000
_MOST_BYTES = 48 * 1024 * 1024  # of all files together
_HEAD = 64 * 1024
_TICK = 0.02  # seconds; the kernel's file clock lags by a few milliseconds

_WILD = frozenset("*?[")
_ANY_DEPTH = "**"
# Folders with thousands of files of other projects, among them reports of their tests.
_IGNORED = {"node_modules", "__pycache__"}
_MOST_NAMES = 1_000_000  # directory entries that one search reads

_Steps = tuple[str, ...]


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
    for number, file in enumerate(_fresh(matching(patterns, folder), since)):
        name = str(file.path.relative_to(folder))
        left -= len(file.data)
        if left < 0 or number == _MOST_FILES:
            total.miss(name)
            break
        total.add(name, file)
    return total


class _File(NamedTuple):
    """A file; `data` is only the beginning if the file is too large."""

    path: Path
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

    def add(self, name: str, file: _File) -> None:
        """Add a report; ignore a file that is not a report."""
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


def _fresh(paths: Sequence[Path], since: float) -> Iterator[_File]:
    """Yield the regular files that were written since `since` and can be read."""
    for path in paths:
        try:
            if _written_since(path.lstat(), since):
                yield _opened(path)
        except OSError:
            continue  # deleted or replaced by a link since the search, or unreadable


def _opened(path: Path) -> _File:
    with os.fdopen(open_plain_file(path), "rb") as stream:
        is_whole = os.fstat(stream.fileno()).st_size <= LARGEST
        return _File(path, stream.read(LARGEST if is_whole else _HEAD), is_whole)


def _written_since(state: os.stat_result, since: float) -> bool:
    """Return whether the file was written at or after `since`; some file systems keep seconds."""
    in_seconds = state.st_mtime_ns % 1_000_000_000 == 0
    return state.st_mtime >= (math.floor(since) if in_seconds else since - _TICK)


# -- search --------------------------------------------------------------------------------------


def matching(patterns: Sequence[str], folder: Path, most: int = _MOST_NAMES) -> list[Path]:
    """Return the regular files below the folder that match a pattern, sorted by path, each once.

    `**` matches any number of folders. As in a shell, a wildcard does not match a leading dot.
    Links are neither followed nor returned. A pattern that leaves the folder matches nothing. The
    search stops after `most` names.
    """
    walk = _Walk(most)
    found = {path for pattern in patterns for path in walk.files(folder, _steps(pattern, folder))}
    return [Path(path) for path in sorted(found)]


def _steps(pattern: str, folder: Path) -> _Steps:
    """Return the parts of the pattern relative to the folder, or () if it leaves the folder."""
    path = PurePath(pattern)
    if path.is_absolute():
        path = path.relative_to(folder) if path.is_relative_to(folder) else PurePath()
    return () if ".." in path.parts else path.parts


class _Entry(NamedTuple):
    """A path and its type; a link is neither a folder nor a file."""

    path: str
    is_folder: bool
    is_file: bool


class _Walk:
    """A search through folders that stops after a number of names."""

    def __init__(self, most: int) -> None:
        self._left = most

    def files(self, folder: Path, steps: _Steps) -> Iterator[str]:
        """Yield the regular files that the steps lead to."""
        ways = [(str(folder), steps)] if steps else []
        seen = set(ways)
        while ways:
            here, (step, *rest) = ways.pop()
            for path, onward in self._onward(here, step, tuple(rest)):
                if not onward:
                    yield path
                elif (path, onward) not in seen:  # `**/**` reaches each folder twice
                    seen.add((path, onward))
                    ways.append((path, onward))

    def _onward(self, here: str, step: str, rest: _Steps) -> Iterator[tuple[str, _Steps]]:
        """Yield the paths that match one step, each with the remaining steps (none at a file)."""
        if step == _ANY_DEPTH:
            yield here, rest or ("*",)
        for entry in self._reached(here, step):
            if step == _ANY_DEPTH:
                if entry.is_folder:
                    yield entry.path, (step, *rest)
            elif entry.is_folder if rest else entry.is_file:
                yield entry.path, rest

    def _reached(self, here: str, step: str) -> Iterator[_Entry]:
        """Yield the entries of a folder that match one step."""
        if _WILD.isdisjoint(step):
            yield _entry(f"{here}{os.sep}{step}")
            return
        fits = re.compile(translate(step)).fullmatch
        for entry in self._listing(here):
            name = entry.name
            hidden = name.startswith(".") and not step.startswith(".")
            if not hidden and name not in _IGNORED and fits(name):
                is_folder = entry.is_dir(follow_symlinks=False)
                yield _Entry(entry.path, is_folder, entry.is_file(follow_symlinks=False))

    def _listing(self, here: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        return
                    yield entry
        except OSError:
            return  # deleted since the search started, or unreadable


def _entry(path: str) -> _Entry:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    return _Entry(path, S_ISDIR(mode), S_ISREG(mode))
