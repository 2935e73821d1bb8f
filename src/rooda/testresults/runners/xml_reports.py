"""JUnit XML among the lines: reporters that print it, and files that an agent shows."""

import re
from dataclasses import replace

from rooda.testresults.junit_xml import xml_report
from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser
from rooda.testresults.suites import XML_REPORT, Suite

# By the name of its first suite: what the same run may have printed to the console as well.
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
    """Reports of differently named suites add up; one of the same name is a later run."""

    runner = XML_REPORT
    marks = ("<testsuite",)

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._root = ""
        self._depth = 0
        self._last: Line | None = None

    def feed(self, line: Line) -> None:
        """Collect a report from its first tag to the last."""
        if line.quoted:
            return
        text = line.whole
        if not self._root:
            root = _ROOT.search(text)
            if root is None:
                return
            self.enter(line)
            self.started(line)
            self._root, text = root[1], text[root.start() :]
        self._lines.append(text)
        self._last = line
        self._depth += len(re.findall(rf"<{self._root}\b", text))
        self._depth -= text.count(f"</{self._root}>")
        if self._depth <= 0:
            self._read(line)

    def finish(self) -> list[Suite]:
        """The reports that were found."""
        if self._last is not None and self._root:
            self._read(self._last)
        return super().finish()

    def _read(self, line: Line) -> None:
        document = "\n".join(self._lines)
        end = document.rfind(">") + 1
        report = xml_report(document[:end].encode("utf-8", "replace"))
        self._lines, self._root, self._depth = [], "", 0
        if report is not None:
            for detail in report.details:
                self.fail(line, detail.name, detail.error or "", detail.status)
            self.close(line, report.counts, part=report.runner)
            if report.runner in _RUNNERS:
                runner, run = _RUNNERS[report.runner], -1 - line.number  # a number of no other run
                self._suites[-1] = replace(self._suites[-1], runner=runner, run=run)
