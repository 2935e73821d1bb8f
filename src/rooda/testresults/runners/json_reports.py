"""JSON reports among the lines, of the runners that can print one."""

from collections.abc import Callable
from typing import Any

from rooda.testresults.lines import Line
from rooda.testresults.parser import MOST_DETAILS
from rooda.testresults.reports import Report, loaded
from rooda.testresults.runners import jest, mocha, playwright, rspec
from rooda.testresults.suites import Suite

# Each knows its own documents, and says None to the others.
_READERS: tuple[Callable[[Any], Report | None], ...] = (
    jest.report,
    mocha.report,
    rspec.report,
    playwright.report,
)


class JsonReports:
    """A report is one line, or begins with a lone `{` and ends with a `}` right below it."""

    marks = ('"numTotalTests"', '"passes"', '"example_count"', '"unexpected"')

    def __init__(self) -> None:
        self._suites: list[Suite] = []
        self._lines: list[str] = []
        self._begin: Line | None = None

    def feed(self, line: Line) -> None:
        """Collect what may be a report, and read it where it ends."""
        if line.quoted:
            return
        begin, text = self._begin, line.whole
        if text == "{" and (begin is None or line.indent <= begin.indent):
            self._begin, self._lines = line, [text]
        elif begin is not None:
            self._lines.append(text)
            if text == "}" and line.indent <= begin.indent:
                self._begin = None
                self._read("\n".join(self._lines), begin.number, line)
        elif text.startswith("{") and text.endswith("}"):
            self._read(text, line.number, line)

    def finish(self) -> list[Suite]:
        """The reports that were found."""
        return self._suites

    def _read(self, text: str, first: int, line: Line) -> None:
        if not any(mark in text for mark in self.marks):
            return
        document = loaded(text)
        reports = (read(document) for read in _READERS)
        report = next((report for report in reports if report is not None), None)
        if report is not None:
            suite = Suite(
                report.runner,
                report.counts,
                tuple(report.details[:MOST_DETAILS]),
                first,
                line.number,
                run=-1 - line.number,  # no run of a parser has such a number
                scope=line.scope,
                command=line.command,
            )
            self._suites.append(suite)
