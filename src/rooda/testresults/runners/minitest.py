"""minitest, Rails and test-unit: `4 runs, 2 assertions, 1 failures, 1 errors, 1 skips`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, SKIPPED, TOTAL, rest_passed, tally
from rooda.testresults.types import TestStatus

_WORDS = {
    "runs": TOTAL,
    "tests": TOTAL,
    "assertions": OTHER,
    "failures": FAILED,
    "errors": FAILED,
    "skips": SKIPPED,
    "pendings": SKIPPED,
    "omissions": SKIPPED,
    "notifications": OTHER,
}


class Minitest(RuleParser):
    """Counts from the last line, which both libraries print in nearly the same words."""

    runner = "minitest"
    marks = (" assertions, ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._kind = ""

    @on(r"# Running(?: tests with run options .*)?:|Loaded suite .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:\d{1,9}\) )?(?P<kind>Failure|Error|Skipped):")
    def _kind_follows(self, _: Line, match: re.Match[str]) -> None:
        self.hush()
        self._kind = match["kind"]

    @on(r"(?P<name>[\w:]+#\S.*?)(?: \[[^\]]*\])?:")
    def _named(self, line: Line, match: re.Match[str]) -> None:
        if self._kind in {"Failure", "Error"}:
            self.fail(line, match["name"], status=_STATUSES[self._kind])
        self._kind = ""

    @on(r"(?P<kind>Failure|Error): (?P<name>test[^\s(]*\([^\s)]+\))(?:: (?P<message>.*))?")
    def _test_unit(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "", _STATUSES[match["kind"]])

    @on(r"={50,}|bin/rails test .*|rails test .*")
    def _rule(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"\d+ (?:runs|tests), \d+ assertions, .*")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _WORDS)
        if sums is not None:
            self.close(line, rest_passed(sums))


_STATUSES = {"Failure": TestStatus.FAILED, "Error": TestStatus.ERROR}
