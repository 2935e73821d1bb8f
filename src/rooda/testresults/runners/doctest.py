"""doctest (C++): `[doctest] test cases: 3 | 1 passed | 1 failed | 1 skipped`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, counted, tally

_WORDS = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}


class Doctest(RuleParser):
    """Counts test cases, not assertions."""

    runner = "doctest"
    marks = ("[doctest] test cases:",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._name = ""

    @on(r"\[doctest\] doctest version is .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"TEST CASE: +(?P<name>.+)")
    def _named(self, _: Line, match: re.Match[str]) -> None:
        self._name = match["name"]

    @on(r"\S.*: (?:FATAL )?ERROR: (?P<message>.*)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name, match["message"])

    @on(r"\[doctest\] test cases: +\d+ \| (?P<counts>.*)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].rstrip("| ").split("|"), _WORDS)
        if sums is not None:
            self.close(line, counted(sums))
