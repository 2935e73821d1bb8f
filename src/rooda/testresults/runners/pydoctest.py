"""python -m doctest: `***Test Failed*** 1 failures.`; with `-v` also what passed."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class PyDoctest(RuleParser):
    """Counts examples; without `-v` only those of the items that failed are known."""

    runner = "python doctest"
    marks = ("***Test Failed***", "***Test passed", "Test passed.")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._failed = self._total = 0
        self._sum: tuple[Line, Counts] | None = None

    @on(r"File \"(?P<file>[^\"]+)\", line (?P<number>\d+), in (?P<name>\S+)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        name = f"{match['name']} ({match['file']}, line {match['number']})"
        self.fail(line, name)
        self.hush()

    @on(r"(?P<failed>\d{1,9}) of +(?P<total>\d{1,9}) in \S+")
    def _item(self, _: Line, match: re.Match[str]) -> None:
        self._failed += number(match["failed"])
        self._total += number(match["total"])

    @on(r"(?P<passed>\d{1,9}) passed(?: and (?P<failed>\d{1,9}) failed)?\.")
    def _verbose(self, line: Line, match: re.Match[str]) -> None:
        self._sum = line, Counts(number(match["passed"]), number(match["failed"] or ""))

    @on(r"\*\*\*Test Failed\*\*\* \d+ failures?\.?|Test passed\.")
    def _ends(self, line: Line, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(line, self._sum[1])
        elif self._total:
            self.close(line, Counts.out_of(self._total, self._failed))
        self.forget()
