"""GoogleTest: `[==========] 8 tests from 3 test suites ran.` and the lines after it."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number

_MOST_SAID = 8  # lines of a message


class GoogleTest(RuleParser):
    """What ran and neither passed nor was skipped has failed; disabled tests count as skipped."""

    runner = "googletest"
    marks = (" ran.", "[  PASSED  ]")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._sums: dict[str, int] = {}
        self._said: list[str] = []

    @on(r"\[=+\] Running \d+ tests? from .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\[ RUN      \] .*|\[       OK \] .*")
    def _runs(self, _: Line, __: re.Match[str]) -> None:
        self._said = []

    @on(r"\[  FAILED  \] (?P<name>[^\s,]+)(?:, where .*?)?(?: \(\d+ ms\))?")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], "\n".join(self._said))
        self.hush()
        self._said = []

    @on(r"\[=+\] (?P<amount>\d{1,9}) tests? from \d+ test (?:suites?|cases?) (?P<what>ran)\..*")
    def _ran(self, line: Line, match: re.Match[str]) -> None:
        self._sums = {}
        self.hold(line, Counts())
        self._sum_up(line, match)

    @on(r"\[  (?P<what>PASSED|SKIPPED|FAILED) +\] (?P<amount>\d{1,9}) tests?[.,].*")
    def _some(self, line: Line, match: re.Match[str]) -> None:
        if self.held is None:
            self.hold(line, Counts())
        self._sum_up(line, match)

    @on(r"YOU HAVE (?P<amount>\d{1,9}) (?P<what>DISABLED) TESTS?")
    def _disabled(self, line: Line, match: re.Match[str]) -> None:
        if self.held is not None:
            self._sum_up(line, match)

    def other(self, line: Line) -> None:
        """Keep what a test says: its verdict comes after."""
        if line.text and len(self._said) < _MOST_SAID:
            self._said.append(line.text)

    def _sum_up(self, line: Line, match: re.Match[str]) -> None:
        self._sums[match["what"]] = number(match["amount"])
        passed, skipped = self._sums.get("PASSED", 0), self._sums.get("SKIPPED", 0)
        # The brief output doesn't say how many failed.
        failed = self._sums.get("FAILED", self._sums.get("ran", 0) - passed - skipped)
        disabled = self._sums.get("DISABLED", 0)
        self.amend(line, Counts(passed, max(0, failed), skipped + disabled))
