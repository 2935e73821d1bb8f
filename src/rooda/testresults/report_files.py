"""Finds and reads the JUnit XML files that a test runner wrote during an iteration.

The folder is under the agent's control, so rooda goes through the door (`files/beneath.py`). The
search and the sizes of files are limited.
"""

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from hashlib import sha256
from pathlib import Path, PurePath
from typing import NamedTuple

from rooda.files.beneath import Beneath
from rooda.testresults.census import MOST_NAMES, REPORTS, RunnerCount, TestCensus
from rooda.testresults.junit_xml import LARGEST, looks_like_report, xml_report
from rooda.testresults.results import TestDetail, TestResults, TestStatus
from rooda.testresults.suites import MOST_DETAILS, Counts, detail

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


# -- search --------------------------------------------------------------------------------------


def matching(patterns: Sequence[str], folder: Path, most: int = _MOST_NAMES) -> list[str]:
    """Return the regular files below the folder that match a pattern, sorted by name, each once.

    `**` matches any number of folders. As in a shell, a wildcard does not match a leading dot.
    Links are neither followed nor returned. A pattern that leaves the folder matches nothing. The
    search stops after `most` names.
    """
    walk = _Walk(Beneath(folder), most)
    return sorted({name for pattern in patterns for name in walk.files(_steps(pattern, folder))})


def _steps(pattern: str, folder: Path) -> _Steps:
    """Return the parts of the pattern relative to the folder, or () if it leaves the folder."""
    path = PurePath(pattern)
    if path.is_absolute():
        path = path.relative_to(folder) if path.is_relative_to(folder) else PurePath()
    return () if ".." in path.parts else path.parts


class _Entry(NamedTuple):
    """A name and its type; a link is neither a folder nor a file."""

    name: str
    is_folder: bool
    is_file: bool


class _Walk:
    """A search through folders that stops after a number of names."""

    def __init__(self, door: Beneath, most: int) -> None:
        self._door = door
        self._left = most

    def files(self, steps: _Steps) -> Iterator[str]:
        """Yield the regular files that the steps lead to."""
        ways = [("", steps)] if steps else []
        seen = set(ways)
        while ways:
            here, (step, *rest) = ways.pop()
            for name, onward in self._onward(here, step, tuple(rest)):
                if not onward:
                    yield name
                elif (name, onward) not in seen:  # `**/**` reaches each folder twice
                    seen.add((name, onward))
                    ways.append((name, onward))

    def _onward(self, here: str, step: str, rest: _Steps) -> Iterator[tuple[str, _Steps]]:
        """Yield the names that match one step, each with the remaining steps (none at a file)."""
        if step == _ANY_DEPTH:
            yield here, rest or ("*",)
        for entry in self._reached(here, step):
            if step == _ANY_DEPTH:
                if entry.is_folder:
                    yield entry.name, (step, *rest)
            elif entry.is_folder if rest else entry.is_file:
                yield entry.name, rest

    def _reached(self, here: str, step: str) -> Iterator[_Entry]:
        """Yield the entries of a folder that match one step."""
        if _WILD.isdisjoint(step):
            yield self._entry(_below(here, step))
            return
        fits = re.compile(translate(step)).fullmatch
        for entry in self._listing(here):
            name = entry.name
            hidden = name.startswith(".") and not step.startswith(".")
            if not hidden and name not in _IGNORED and fits(name):
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = entry.is_file(follow_symlinks=False)
                yield _Entry(_below(here, name), is_folder, is_file)

    def _listing(self, here: str) -> Iterator[os.DirEntry[str]]:
        try:
            for entry in self._door.scan(here):
                self._left -= 1
                if self._left < 0:
                    return
                yield entry
        except OSError:
            return  # deleted since the search started, or unreadable

    def _entry(self, name: str) -> _Entry:
        try:
            mode = self._door.status(name).st_mode
        except (OSError, ValueError):
            mode = 0
        return _Entry(name, stat.S_ISDIR(mode), stat.S_ISREG(mode))


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
