"""JUnit XML, as an agent's test runner wrote it: bounded, and without doctypes or entities."""

import re
from collections import Counter

from rooda.testresults.parser import MOST_DETAILS, detail
from rooda.testresults.reports import Report
from rooda.testresults.suites import EXPECTED, FAILED, PASSED, SKIPPED, Counts, number
from rooda.testresults.types import TestDetail, TestResults, TestStatus

LARGEST = 16 * 1024 * 1024
_MOST_ELEMENTS = 2_000_000
_LONGEST_MESSAGE = 2000
_BEGIN = re.compile(rb"<(?:\?xml\s|testsuites?[\s/>])")
_NOISE = 4096  # bytes that may stand above, where a reporter's output was sent to a file
_ERROR, _FAILED_SOMEHOW = "error", "?"  # the latter by an attribute, which says no more
_BAD = {"failure": FAILED, "error": _ERROR}
_BY_ATTRIBUTE = {
    **dict.fromkeys(("notrun", "disabled", "skipped", "suppressed"), SKIPPED),
    **dict.fromkeys(("fail", "failed"), _FAILED_SOMEHOW),
}
_CLAIMS = ("tests", "failures", "errors", "skipped", "disabled")
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
    if len(data) > LARGEST:
        return None
    from xml.etree.ElementTree import ParseError, XMLParser  # noqa: PLC0415 - slow to load

    collector = _Collector()
    parser = XMLParser(target=collector)  # noqa: S314 - doctypes, and so entities, are refused
    try:
        # All at once: pieces of a long token would be looked at again and again.
        parser.feed(_document(data))
        parser.close()
    except (ParseError, ValueError, LookupError):
        return None
    if collector.first_suite is None:
        return None
    return Report(collector.first_suite, collector.sums(), collector.details)


def looks_like_report(data: bytes) -> bool:
    """Whether it begins as a report does, whatever follows."""
    return b"<testsuite" in data[:_NOISE]


def _document(data: bytes) -> bytes:
    """The document without what a program said before and after it."""
    begin = _BEGIN.search(data, 0, _NOISE)
    if begin is None or data.lstrip()[:1] == b"<":
        return data
    return data[begin.start() : data.rfind(b">") + 1]


class _Collector:
    """Counts the test cases while the parser goes over them; keeps no tree."""

    def __init__(self) -> None:
        self.first_suite: str | None = None
        self.details: list[TestDetail] = []
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
        """The cases; where there are none, what the report claims."""
        node, ends = self._node, self._ends
        if {"pass", "fail", "cancelled", "skipped", "todo"} <= node.keys():
            # Node doesn't write down parents as cases, but has the sums in comments.
            failed, skipped = node["fail"] + node["cancelled"], node["skipped"] + node["todo"]
            return Counts(node["pass"], failed, skipped)
        if not ends:
            return self._claimed
        return Counts(ends[PASSED], ends[FAILED] + ends[_ERROR], ends[SKIPPED], ends[EXPECTED])

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
            self._start_mishap(_BAD[name], attributes)

    def _start_suite(self, attributes: dict[str, str]) -> None:
        self._suite = attributes.get("name", "")
        if self.first_suite is None:
            self.first_suite = self._suite
            claim = {key: number(attributes.get(key, "")) for key in _CLAIMS}
            failed = claim["failures"] + claim["errors"]
            skipped = claim["skipped"] + claim["disabled"]
            self._claimed = Counts.out_of(claim["tests"], failed, skipped)

    def _start_mishap(self, end: str, attributes: dict[str, str]) -> None:
        """Take what went wrong first; outside of a case it is an error of the suite."""
        message = attributes.get("message", "")
        if self._case is None:
            self._message = message
            self._count({"name": self._suite}, _ERROR)
        elif self._end in {PASSED, _FAILED_SOMEHOW}:
            self._end, self._message, self._reading = end, message, not message

    def data(self, text: str) -> None:
        """Take the text of a failure that has no message."""
        if self._reading and len(self._message) < _LONGEST_MESSAGE:
            self._message += text

    def end(self, tag: str) -> None:
        """An element ends."""
        self._reading = False
        if self._case is not None and tag.rpartition("}")[2] == "testcase":
            self._count(self._case, self._end)
            self._case = None

    def close(self) -> None:
        """The document ends."""

    def _count(self, case: dict[str, str], end: str) -> None:
        end = FAILED if end == _FAILED_SOMEHOW else end
        self._ends[end] += 1
        if end in {FAILED, _ERROR} and len(self.details) < MOST_DETAILS:
            status = TestStatus.ERROR if end == _ERROR else TestStatus.FAILED
            self.details.append(
                detail(_full_name(self._suite, case), status, self._message.strip())
            )


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
