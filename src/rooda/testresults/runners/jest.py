"""jest: `Tests:       2 failed, 1 skipped, 4 passed, 7 total`, and the report it shares."""

import re
from itertools import takewhile
from typing import Any

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, detail, on
from rooda.testresults.reports import Report, members, words
from rooda.testresults.suites import (
    FAILED,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    counted,
    failed_among,
    tally,
)
from rooda.testresults.types import TestDetail, TestStatus

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "pending": SKIPPED,
    "todo": SKIPPED,
    "total": TOTAL,
}


class Jest(RuleParser):
    """Counts from the summary. A suite that failed to run has no tests: it counts as an error."""

    runner = "jest"
    marks = (" total", "No tests found, exiting")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._file = ""
        self._broken: set[str] = set()
        self._failed_files = 0
        self._files_at = -1

    @on(r"(?:PASS|FAIL)\s+(?P<file>[\w@./\\-]+\.\w+)(?: \([\d.]+ m?s\))?")
    def _starts_file(self, line: Line, match: re.Match[str]) -> None:
        self.started(line)
        self.hush()
        self._file = match["file"]

    @on(r"● Console|● .*(?:Warning|Deprecation).*:")
    def _no_failure(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"● Test suite failed to run")
    def _breaks(self, line: Line, _: re.Match[str]) -> None:
        self._broken.add(self._file)
        self.error(line, self._file or "Test suite failed to run")

    @on(r"● (?P<name>.+)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Test Suites: +(?P<counts>\d.*)")
    def _files(self, line: Line, match: re.Match[str]) -> None:
        self._failed_files = failed_among(match["counts"])
        self._files_at = line.number

    @on(r"Tests: (?P<padding> {6}(?! ))?+ *(?P<counts>\d.* total)")
    def _tests(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _WORDS)
        # A test may log such a line; jest's own stands below another, or is padded.
        if sums is not None and (line.number == self._files_at + 1 or match["padding"]):
            broken = max(len(self._broken), 0 if sums[FAILED] else self._failed_files)
            self.close(line, counted(sums) + Counts(failed=broken))

    @on(r"No tests found, exiting with code \d")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())


def report(document: Any) -> Report | None:
    """Read `--json` of jest, or vitest's report of the same form."""
    if not isinstance(document, dict) or "numTotalTests" not in document:
        return None
    jest = "numRuntimeErrorTestSuites" in document
    files = members(document, "testResults")
    folder = _folder([words(file, "name") for file in files])
    # Counted anew: some versions of vitest print sums that are wrong.
    counts, details = Counts(), []
    for file in files:
        name, tests = words(file, "name")[len(folder) :], members(file, "assertionResults")
        if not tests and words(file, "status") == "failed":
            counts += Counts(failed=1)
            details.append(detail(name, TestStatus.ERROR, words(file, "message")))
        for test in tests:
            status = _WORDS.get(words(test, "status"), SKIPPED)
            counts += Counts(**{status: 1})
            if status == FAILED:
                details.append(_failed(test, [] if jest else [name], " › " if jest else " > "))
    return Report("jest" if jest else "vitest", counts, details)


def _folder(names: list[str]) -> str:
    """The folder that the files have in common, up to its slash."""
    levels = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "".join(f"{level[0]}/" for level in takewhile(lambda level: len({*level}) == 1, levels))


def _failed(test: Any, path: list[str], joint: str) -> TestDetail:
    titles = [*path, *map(str, members(test, "ancestorTitles")), words(test, "title")]
    messages = members(test, "failureMessages")
    return detail(joint.join(titles), TestStatus.FAILED, str(messages[0]) if messages else "")
