"""behave: `1 scenario passed, 1 failed, 1 error, 1 skipped`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, counted, tally
from rooda.testresults.types import TestStatus

_WORDS = {
    "scenario passed": PASSED,
    "scenarios passed": PASSED,
    "passed": PASSED,
    "failed": FAILED,
    "error": FAILED,
    "hook_error": FAILED,
    "cleanup_error": FAILED,
    "undefined": FAILED,
    "skipped": SKIPPED,
    "untested": SKIPPED,
    "pending": SKIPPED,
    "pending_warn": SKIPPED,
}


class Behave(RuleParser):
    """Scenarios are the tests."""

    runner = "behave"
    marks = (" scenario passed", " scenarios passed")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._status: TestStatus | None = None

    @on(r"USING RUNNER: .*|Feature: .* # \S+:\d+")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"(?P<kind>Failing|Errored) scenarios:")
    def _list_follows(self, _: Line, match: re.Match[str]) -> None:
        failing = match["kind"] == "Failing"
        self._status = TestStatus.FAILED if failing else TestStatus.ERROR

    @on(r"\S+\.feature:\d+  .*")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        if self._status is not None:
            self.fail(line, match[0], status=self._status)
            self.hush()

    @on(r"\d+ scenarios? passed, .*")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _WORDS)
        if sums is not None:
            self.close(line, counted(sums))
