"""JUnit XML, as an agent's test runner wrote it: bounded, and without doctypes or entities."""

import re
from xml.etree.ElementTree import ParseError, XMLParser

from rooda.iteration.types import TestDetail, TestResults, TestStatus
from rooda.testresults.parser import MOST_DETAILS, detail
from rooda.testresults.reports import Report
from rooda.testresults.suites import Counts, number

_LARGEST = 32 * 1024 * 1024
_PIECE = 64 * 1024
_LONGEST_MESSAGE = 2000
_BAD = {"failure": TestStatus.FAILED, "error": TestStatus.ERROR}
_UNRUN = {"notrun", "disabled", "skipped", "suppressed"}
_NODE_SUM = re.compile(r" *(?P<key>tests|pass|fail|cancelled|skipped|todo) (?P<amount>\d{1,9}) *")


def read_xml(data: bytes) -> TestResults | None:
    """The results in a JUnit XML file; None for anything else, or what is broken or too large."""
    report = xml_report(data)
    if report is None:
        return None
    counts = report.counts
    return TestResults(
        counts.total, counts.passed, counts.failed, counts.skipped, tuple(report.details)
    )


def xml_report(data: bytes) -> Report | None:
    """The same as a report, `runner` being the name of the first suite."""
    if len(data) > _LARGEST:
        return None
    collector = _Collector()
    parser = XMLParser(target=collector)  # noqa: S314 - doctypes, and so entities, are refused
    try:
        for start in range(0, len(data), _PIECE):
            parser.feed(data[start : start + _PIECE])
        parser.close()
    except (ParseError, ValueError, LookupError):
        return None
    if not collector.suites:
        return None
    return Report(collector.suites[0], collector.sums(), collector.details)


class _Collector:
    """Counts the test cases while the parser goes over them; keeps no tree."""

    def __init__(self) -> None:
        self.suites: list[str] = []
        self.details: list[TestDetail] = []
        self._counts = Counts()
        self._node: dict[str, int] = {}
        self._case: dict[str, str] | None = None
        self._status = TestStatus.PASSED
        self._message = ""
        self._reading = False

    def sums(self) -> Counts:
        """The counts; node doesn't write down parents as cases, but has the sums in comments."""
        node = self._node
        if not {"pass", "fail", "cancelled", "skipped", "todo"} <= node.keys():
            return self._counts
        return Counts(
            node["pass"], node["fail"] + node["cancelled"], node["skipped"] + node["todo"]
        )

    def doctype(self, name: str, *_: str | None) -> None:
        """No test runner writes one, and entities would come with it."""
        raise ValueError(f"a doctype: {name}")

    def comment(self, text: str) -> None:
        """Take node's sums."""
        match = _NODE_SUM.fullmatch(text)
        if match:
            self._node[match["key"]] = number(match["amount"])

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        name = tag.rpartition("}")[2]
        if name in {"testsuites", "testsuite"}:
            self.suites.append(attributes.get("name", ""))
        elif name == "testcase":
            self._case = attributes
            unrun = {attributes.get("status"), attributes.get("result")} & _UNRUN
            self._status = TestStatus.SKIPPED if unrun else TestStatus.PASSED
            self._message = ""
        elif self._case is not None and name == "skipped":
            self._status = TestStatus.SKIPPED
        elif self._case is not None and name in _BAD and self._status == TestStatus.PASSED:
            self._status = _BAD[name]
            self._message = attributes.get("message", "")
            self._reading = not self._message

    def data(self, text: str) -> None:
        """Take the text of a failure that has no message."""
        if self._reading and len(self._message) < _LONGEST_MESSAGE:
            self._message += text

    def end(self, tag: str) -> None:
        """An element ends."""
        name = tag.rpartition("}")[2]
        self._reading = False
        if name == "testcase" and self._case is not None:
            self._count(self._case)
            self._case = None

    def close(self) -> None:
        """The document ends."""

    def _count(self, case: dict[str, str]) -> None:
        passed, skipped = TestStatus.PASSED, TestStatus.SKIPPED
        failed = self._status not in {passed, skipped}
        self._counts += Counts(self._status == passed, failed, self._status == skipped)
        if failed and len(self.details) < MOST_DETAILS:
            name = _full_name(self.suites[-1] if self.suites else "", case)
            self.details.append(detail(name, self._status, self._message.strip()))


def _full_name(suite: str, case: dict[str, str]) -> str:
    """The name as the runner itself prints it, as far as the report tells."""
    name, place = case.get("name", ""), case.get("classname", "")
    if suite == "pytest":
        return _node_id(place, name)
    # Node says `test` of everything, and some repeat the class in the name.
    return name if place in {"", "test", suite} or name.startswith(place) else f"{place}.{name}"


def _node_id(place: str, name: str) -> str:
    """Pytest's name of a test, whose class is written with a capital."""
    parts = place.split(".") if place else []
    classes = [part for part in parts if part[:1].isupper()]
    path = "/".join(part for part in parts if part not in classes)
    return "::".join([f"{path}.py", *classes, name]) if path else name
