"""uvu: `Total: 3`, `Passed: 2`, `Skipped: 1` and `Duration: 1.17ms`, one below the other."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number

_ORDER = ("Total", "Passed", "Skipped")


class Uvu(RuleParser):
    """The skipped tests aren't in its total."""

    runner = "uvu"
    marks = ("Skipped:  ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._sums: list[int] = []
        self._sum_at = -1

    @on(r"FAIL  ?\"?(?P<name>[^\"]+)\"")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"(?P<what>Total|Passed|Skipped): {2,}(?P<amount>\d{1,9})")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        self.hush()
        if match["what"] == "Total" or line.number != self._sum_at + 1:
            self._sums = []
        expected = _ORDER[len(self._sums) : len(self._sums) + 1] == (match["what"],)
        self._sums = [*self._sums, number(match["amount"])] if expected else []
        self._sum_at = line.number

    @on(r"Duration: {2,}[\d.]+m?s")
    def _ends(self, line: Line, _: re.Match[str]) -> None:
        if len(self._sums) == len(_ORDER) and line.number == self._sum_at + 1:
            total, passed, skipped = self._sums
            self.close(line, Counts(passed, max(0, total - passed), skipped))
