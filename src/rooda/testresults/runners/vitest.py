"""vitest: `Tests  2 failed | 4 passed | 1 skipped (7)`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import (
    EXPECTED,
    FAILED,
    PASSED,
    SKIPPED,
    Counts,
    counted,
    failed_among,
    tally,
)

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "todo": SKIPPED,
    "expected fail": EXPECTED,
}


class Vitest(RuleParser):
    """Counts from the summary. A file that failed to load has no tests: it counts as an error."""

    runner = "vitest"
    marks = ("Tests ", "No test files found")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._broken: set[str] = set()
        self._failed_files = 0

    @on(r"(?:RUN|DEV)\s+v\d\S* .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"FAIL\s+(?P<file>\S.*?) \[ .* \]")
    def _breaks(self, line: Line, match: re.Match[str]) -> None:
        self._broken.add(match["file"])
        self.error(line, match["file"])

    @on(r"FAIL\s+(?P<name>\S.* > .*)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"[❯⎯].*")
    def _place(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"Test Files  +(?P<counts>\d.*)")
    def _files(self, _: Line, match: re.Match[str]) -> None:
        self._failed_files = failed_among(match["counts"])

    @on(r"Tests  +(?:(?P<counts>\d.*) \(\d+\)|no tests)")
    def _tests(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|") if match["counts"] else [], _WORDS)
        if sums is not None:
            broken = max(len(self._broken), 0 if sums[FAILED] else self._failed_files)
            self.hold(line, counted(sums) + Counts(failed=broken))

    @on(r"(?P<what>(?:Type )?Errors  +\d+ errors?)")
    def _outside(self, line: Line, match: re.Match[str]) -> None:
        if self.held is not None:
            self.error(line, "Unhandled errors", match["what"])

    @on(r"No test files found, exiting with code \d")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())
