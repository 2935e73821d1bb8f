"""bats --pretty: `4 tests, 1 failure, 1 skipped`; its TAP is read by `tap.py`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, SKIPPED, TOTAL, rest_passed, tally

_WORDS = {
    "test": TOTAL,
    "tests": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "skipped": SKIPPED,
    "not run": OTHER,
}


class Bats(RuleParser):
    """Counts from the last line, if as many ticks and crosses stand above it."""

    runner = "bats"
    marks = (" failure",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._marks = 0

    @on(r"✓ .*|- .* \(skipped.*\)(?: \[\d+\])?")
    def _ticks(self, _: Line, __: re.Match[str]) -> None:
        self._marks += 1
        self.hush()

    @on(r"✗ (?P<name>.*?)(?: \[\d+(?:ms)?\])?")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self._marks += 1

    @on(r"(?P<counts>\d+ tests?, \d+ failures?(?:, \d+ [a-z ]+?)*)(?: in \d.*)?")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _WORDS)
        if sums is not None and sums[TOTAL] == self._marks:
            self.close(line, rest_passed(sums))
        else:
            self.forget()
