"""Catch2: `test cases: 5 | 1 passed | 3 failed`, `All tests passed (3 assertions in 2 ...)`."""

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
    number,
    tally,
)

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "failed as expected": EXPECTED,
}


class Catch2(RuleParser):
    """Counts test cases, not assertions; a failed case is headed by its name between two rules."""

    runner = "catch2"
    marks = ("test case", "No tests ran")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._rule_at = self._double_rule_at = -1
        self._name = ""

    @on(r"\S+ is a Catch2? v\S+ host application\.")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"-{79}")
    def _rule(self, line: Line, _: re.Match[str]) -> None:
        self._rule_at = line.number
        self.hush()

    @on(r"\S.*: FAILED:")
    def _fails(self, line: Line, _: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name)

    @on(r"test cases: +\d+ \| (?P<counts>.*)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|"), _WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"All tests passed \(.* in (?P<passed>\d{1,9}) test cases?\)")
    def _all_passed(self, line: Line, match: re.Match[str]) -> None:
        self.close(line, Counts(passed=number(match["passed"])))

    @on(
        r"(?P<verdict>Passed|Failed)(?: all| both)? (?P<amount>\d{1,9}) test cases?"
        r"(?: with \d+ assertions?|, failed (?:all |both )?\d+ assertions?| \(no assertions\))\.?"
    )
    def _compact(self, line: Line, match: re.Match[str]) -> None:
        field = "passed" if match["verdict"] == "Passed" else "failed"
        self.close(line, Counts(**{field: number(match["amount"])}))

    @on(r"={79}")
    def _double_rule(self, line: Line, _: re.Match[str]) -> None:
        self._double_rule_at = line.number

    @on(r"No tests ran")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        if line.number == self._double_rule_at + 1:
            self.close(line, Counts())

    def other(self, line: Line) -> None:
        """Take the line below a rule for the name of a case."""
        if line.number == self._rule_at + 1:
            self._name = line.text
        else:
            super().other(line)
