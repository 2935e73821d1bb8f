"""Reads JUnit XML from an untrusted agent: bounded in size, without doctypes or entities."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rooda.world.files.beneath import Beneath
from rooda.world.files.matching import matching
from rooda.world.testresults.census import MOST_NAMES, REPORTS, RunnerCount, TestCensus
from rooda.world.testresults.results import (
    EXPECTED,
    FAILED,
    LONGEST_NAME,
    MOST_DETAILS,
    PASSED,
    SKIPPED,
    Counts,
    RunnerReport,
    TestDetail,
    TestResults,
    TestStatus,
    detail,
    number,
)

LARGEST = 16 * 1024 * 1024
_MOST_ELEMENTS = 2_000_000
_LONGEST_MESSAGE = 2000
_BEGIN = re.compile(rb"<(?:\?xml\s|testsuites?[\s/>])")
_NOISE = 4096  # bytes of other output that may precede the document in a file
_ERROR, _FAILED_SOMEHOW = "error", "?"  # `?`: only an attribute marks the test as failed
_BAD = {"failure": FAILED, "error": _ERROR}
_BY_ATTRIBUTE = {
    **dict.fromkeys(("notrun", "disabled", "skipped", "suppressed"), SKIPPED),
    **dict.fromkeys(("fail", "failed"), _FAILED_SOMEHOW),
}
_CLAIMS = ("tests", "failures", "errors", "skipped", "disabled")
_NODE_SUM = re.compile(r" *(?P<key>tests|pass|fail|cancelled|skipped|todo) (?P<amount>\d{1,9}) *")


def read_xml(data: bytes) -> TestResults | None:
    """Return the results in a JUnit XML file; None for other, broken or too large files."""
    report = xml_report(data)
    if report is None:
        return None
    counts = report.counts
    return TestResults(
        counts.total, counts.passed, counts.failed, counts.skipped, tuple(report.details)
    )


def xml_report(data: bytes) -> RunnerReport | None:
    """Return the JUnit XML document as a report; `runner` is the name of its first suite."""
    if len(data) > LARGEST:
        return None
    from xml.etree.ElementTree import ParseError, XMLParser  # noqa: PLC0415 - slow to load

    collector = _Collector()
    parser = XMLParser(target=collector)  # noqa: S314 - the collector rejects doctypes, so no entities
    try:
        # Feed everything in one call: the parser rescans a long token for every chunk.
        parser.feed(_document(data))
        parser.close()
    except (ParseError, ValueError, LookupError):
        return None
    if collector.first_suite is None:
        return None
    names = (collector.ran, collector.skipped)
    return RunnerReport(collector.first_suite, collector.sums(), collector.details, *names)


def looks_like_report(data: bytes) -> bool:
    """Return whether the data starts like a JUnit report, even if the rest is broken."""
    return b"<testsuite" in data[:_NOISE]


def _document(data: bytes) -> bytes:
    """Return the XML document without other output before and after it."""
    begin = _BEGIN.search(data, 0, _NOISE)
    if begin is None or data.lstrip()[:1] == b"<":
        return data
    return data[begin.start() : data.rfind(b">") + 1]


class _Collector:
    """Counts the test cases during parsing, without building a tree."""

    def __init__(self) -> None:
        self.first_suite: str | None = None
        self.details: list[TestDetail] = []
        self.ran: list[str] = []  # names
        self.skipped: list[str] = []
        self._suite = ""
        self._claimed = Counts()
        self._ends: Counter[str] = Counter()
        self._node: dict[str, int] = {}
        self._elements = 0
        self._case: dict[str, str] | None = None
        self._end = PASSED
        self._message = ""
        self._reading = False

    def sums(self) -> Counts:
        """Return the sum of the test cases, or the totals of the first suite if it has no cases."""
        node, ends = self._node, self._ends
        if {"pass", "fail", "cancelled", "skipped", "todo"} <= node.keys():
            # Node writes no cases for tests with subtests, but writes the totals as comments.
            failed, skipped = node["fail"] + node["cancelled"], node["skipped"] + node["todo"]
            return Counts(node["pass"], failed, skipped)
        if not ends:
            return self._claimed
        return Counts(ends[PASSED], ends[FAILED] + ends[_ERROR], ends[SKIPPED], ends[EXPECTED])

    def doctype(self, name: str, *_: str | None) -> None:
        """Reject a doctype: it can define entities, and no test runner writes one."""
        raise ValueError(f"a doctype: {name}")

    def comment(self, text: str) -> None:
        """Store the totals that node writes as comments."""
        match = _NODE_SUM.fullmatch(text)
        if match:
            self._node[match["key"]] = number(match["amount"])

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise ValueError("more elements than any report has")
        name = tag.rpartition("}")[2]
        if name == "testcase":
            self._case, self._message = attributes, ""
            by_status = _BY_ATTRIBUTE.get(attributes.get("status", ""), PASSED)
            self._end = _BY_ATTRIBUTE.get(attributes.get("result", ""), by_status)
        elif name in {"testsuites", "testsuite"}:
            self._start_suite(attributes)
        elif name == "skipped":
            self._end = EXPECTED if attributes.get("type") == "pytest.xfail" else SKIPPED
        elif name in _BAD:
            self._start_failure(_BAD[name], attributes)

    def _start_suite(self, attributes: dict[str, str]) -> None:
        self._suite = attributes.get("name", "")
        if self.first_suite is None:
            self.first_suite = self._suite
            claim = {key: number(attributes.get(key, "")) for key in _CLAIMS}
            failed = claim["failures"] + claim["errors"]
            skipped = claim["skipped"] + claim["disabled"]
            self._claimed = Counts.out_of(claim["tests"], failed, skipped)

    def _start_failure(self, end: str, attributes: dict[str, str]) -> None:
        """Store the first failure of a case; a failure outside of a case is a suite error."""
        message = attributes.get("message", "")
        if self._case is None:
            self._message = message
            self._count({"name": self._suite}, _ERROR)
        elif self._end in {PASSED, _FAILED_SOMEHOW}:
            self._end, self._message, self._reading = end, message, not message

    def data(self, text: str) -> None:
        """Collect the text of a failure that has no message attribute."""
        if self._reading and len(self._message) < _LONGEST_MESSAGE:
            self._message += text

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        self._reading = False
        if self._case is not None and tag.rpartition("}")[2] == "testcase":
            self._count(self._case, self._end)
            self._case = None

    def close(self) -> None:
        """Handle the end of the document; the parser requires this method."""

    def _count(self, case: dict[str, str], end: str) -> None:
        end = FAILED if end == _FAILED_SOMEHOW else end
        self._ends[end] += 1
        names = self.skipped if end == SKIPPED else self.ran
        if len(names) <= MOST_NAMES:  # one too many shows that there are more
            names.append(_full_name(self._suite, case)[:LONGEST_NAME])
        if end in {FAILED, _ERROR} and len(self.details) < MOST_DETAILS:
            status = TestStatus.ERROR if end == _ERROR else TestStatus.FAILED
            self.details.append(
                detail(_full_name(self._suite, case), status, self._message.strip())
            )


def _full_name(suite: str, case: dict[str, str]) -> str:
    """Return the test name as the runner prints it, as far as the report has the parts."""
    name, place = case.get("name", ""), case.get("classname", "")
    if suite == "pytest":
        return _node_id(place, name)
    # Node writes `test` as the class of every test; some runners repeat the class in the name.
    return name if place in {"", "test", suite} or name.startswith(place) else f"{place}.{name}"


def _node_id(place: str, name: str) -> str:
    """Return the pytest node id; a capitalized part of the path is a class."""
    parts = place.split(".") if place else []
    classes = [part for part in parts if part[:1].isupper()]
    path = "/".join(part for part in parts if part not in classes)
    return "::".join([f"{path}.py", *classes, name]) if path else name


# Finds and reads the JUnit XML files that a test runner wrote during an iteration.
#
# The folder is under the agent's control, so rooda goes through the door
# (`world/files/beneath.py`). The search (`world/files/matching.py`) and the sizes of files are
# limited.


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
    for place, file in enumerate(_fresh(door, matching(patterns, folder), since)):
        left -= len(file.data)
        if left < 0 or place == _MOST_FILES:
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
