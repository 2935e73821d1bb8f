"""ExUnit (mix test): `6 tests, 2 failures, 1 excluded, 1 skipped`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, SKIPPED, TOTAL, Counts, tally

_WORDS = {
    "doctest": TOTAL,
    "doctests": TOTAL,
    "property": TOTAL,
    "properties": TOTAL,
    "test": TOTAL,
    "tests": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "invalid": FAILED,
    "skipped": SKIPPED,
    "excluded": OTHER,
}


class ExUnit(RuleParser):
    """Counts from the line below `Finished in`; excluded tests are in its total, not in ours."""

    runner = "ExUnit"
    marks = (" failure",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._finished_at = -1

    @on(r"\d{1,9}\) (?P<kind>test|doctest|property) (?P<name>.+ \([\w.]+\))")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, f"{match['kind']} {match['name']}")

    @on(r"Finished in [\d.]+ seconds.*")
    def _finished(self, line: Line, _: re.Match[str]) -> None:
        self._finished_at = line.number

    @on(r"\d+ (?:doctest|propert|test).*, \d+ failures?.*")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _WORDS)
        if sums is not None and line.number == self._finished_at + 1:
            ran = sums[TOTAL] - sums[OTHER]
            self.close(line, Counts.out_of(ran, sums[FAILED], sums[SKIPPED]))
