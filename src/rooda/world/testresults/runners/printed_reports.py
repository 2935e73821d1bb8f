"""Reports in the output, printed by a runner or shown by an agent: JSON and JUnit XML."""

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from rooda.base.formats import parse_json
from rooda.world.testresults.junit_xml import xml_report
from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser
from rooda.world.testresults.results import MOST_DETAILS, XML_REPORT, RunnerReport, Suite
from rooda.world.testresults.runners.browsers import playwright_report
from rooda.world.testresults.runners.javascript import jest_report, mocha_report
from rooda.world.testresults.runners.ruby import rspec_report

# -- json reports ------------------------------------------------------------------------------

# Each function returns None for the documents of other runners.
_READERS: tuple[Callable[[Any], RunnerReport | None], ...] = (
    jest_report,
    mocha_report,
    rspec_report,
    playwright_report,
)


class JsonReports:
    """JSON reports of the runners that can print one.

    A report is one line, or the lines from a lone `{` to a lone `}` in the same column or farther
    left.
    """

    marks = ('"numTotalTests"', '"passes"', '"example_count"', '"unexpected"')

    def __init__(self) -> None:
        self._suites: list[Suite] = []
        self._lines: list[str] = []
        self._begin: OutputLine | None = None

    def feed(self, line: OutputLine) -> None:
        """Collect lines that may be a report, and parse the report at its end."""
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
        """Return the suites of the reports that were found."""
        return self._suites

    def _read(self, text: str, first: int, line: OutputLine) -> None:
        if not any(mark in text for mark in self.marks):
            return
        document = parse_json(text)
        reports = (read(document) for read in _READERS)
        report = next((report for report in reports if report is not None), None)
        if report is not None:
            suite = Suite(
                report.runner,
                report.counts,
                tuple(report.details[:MOST_DETAILS]),
                first,
                line.number,
                run=-1 - line.number,  # the runs of parsers have no negative numbers
                scope=line.scope,
                command=line.command,
            )
            self._suites.append(suite)


# -- xml reports -------------------------------------------------------------------------------

# The name of the first suite, and the runner that may also have printed to the console.
_RUNNERS = {
    "pytest": "pytest",
    "jest tests": "jest",
    "vitest tests": "vitest",
    "Mocha Tests": "mocha",
    "bun test": "bun test",
    "deno test": "deno test",
    "nextest-run": "cargo nextest",
    "rspec": "rspec",
}
_ROOT = re.compile(r"<(testsuites?)\b")


class XmlReports(RuleParser):
    """JUnit XML, printed by a reporter or shown from a file by an agent.

    Reports with different suite names add up; a report with the same name is a later run.
    """

    runner = XML_REPORT
    marks = ("<testsuite",)

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._root = ""
        self._depth = 0
        self._last: OutputLine | None = None

    def feed(self, line: OutputLine) -> None:
        """Collect a report from its first tag to its last."""
        if line.quoted:
            return
        text = line.whole
        if not self._root:
            root = _ROOT.search(text)
            if root is None:
                return
            self.enter_command(line)
            self.ensure_begun(line)
            self._root, text = root[1], text[root.start() :]
        self._lines.append(text)
        self._last = line
        self._depth += len(re.findall(rf"<{self._root}\b", text))
        self._depth -= text.count(f"</{self._root}>")
        if self._depth <= 0:
            self._read(line)

    def finish(self) -> list[Suite]:
        """Return the suites of the reports that were found."""
        if self._last is not None and self._root:
            self._read(self._last)
        return super().finish()

    def _read(self, line: OutputLine) -> None:
        document = "\n".join(self._lines)
        end = document.rfind(">") + 1
        report = xml_report(document[:end].encode("utf-8", "replace"))
        self._lines, self._root, self._depth = [], "", 0
        if report is not None:
            for detail in report.details:
                self.fail(line, detail.name, detail.error or "", detail.status)
            self.close(line, report.counts, part=report.runner)
            if report.runner in _RUNNERS:
                runner, run = _RUNNERS[report.runner], -1 - line.number  # unique to this report
                self._suites[-1] = replace(self._suites[-1], runner=runner, run=run)
