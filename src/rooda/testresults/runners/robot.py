"""Robot Framework: `4 tests, 2 passed, 1 failed, 1 skipped` below each suite; the last is all."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, TOTAL, counted, tally

_WORDS = {
    "test": TOTAL,
    "tests": TOTAL,
    "task": TOTAL,
    "tasks": TOTAL,
    "tests total": TOTAL,
    "test total": TOTAL,
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
}


class Robot(RuleParser):
    """Counts from the line below a suite's verdict; tests and suites have the same mark."""

    runner = "robot"
    marks = (" passed, ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._verdict_at = -1
        self._may_be_suite = False
        self._dotted = False

    @on(r"(?P<name>\S.*) \| (?P<verdict>PASS|FAIL|SKIP) \|")
    def _ends(self, line: Line, match: re.Match[str]) -> None:
        self.started(line)
        self.hush()
        self._verdict_at = line.number
        self._may_be_suite = match["verdict"] == "FAIL"
        if self._may_be_suite:
            self.fail(line, match["name"].rstrip())

    @on(r"Running suite '.*' with \d+ (?:test|task)s?\.")
    def _starts_dots(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)
        self._dotted = True

    @on(r"FAIL: (?P<name>\S.*)")
    def _fails_in_dots(self, line: Line, match: re.Match[str]) -> None:
        if self._dotted:
            self.fail(line, match["name"])

    @on(r"[=-]{50,}")
    def _rule(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"PASSED|FAILED|SKIPPED|\d+ critical tests?, .*")
    def _verdict(self, line: Line, _: re.Match[str]) -> None:
        self._verdict_at = line.number
        self._may_be_suite = False
        self._dotted = False

    @on(r"\d+ (?:test|task)s?(?: total)?, \d+ passed, \d+ failed.*")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _WORDS)
        if sums is None or line.number != self._verdict_at + 1:
            return
        if self._may_be_suite:
            self.retract()
            self._may_be_suite = False
        # The counts of the outer suites come after those of the inner ones, which they include.
        self.revise(line, counted(sums))

    @on(r"Output: .*")
    def _all_ended(self, _: Line, __: re.Match[str]) -> None:
        self.flush()
