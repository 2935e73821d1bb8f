"""cucumber (Ruby, JavaScript, JVM, Rust): `4 scenarios (1 failed, 1 undefined, 2 passed)`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, Counts, counted, tally

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "undefined": FAILED,
    "ambiguous": FAILED,
    "unknown": FAILED,
    "skipped": SKIPPED,
    "pending": SKIPPED,
    "flaky": PASSED,
}


class Cucumber(RuleParser):
    """Scenarios are the tests; one with undefined steps fails the run."""

    runner = "cucumber"
    marks = ("scenario",)

    @on(r"cucumber (?:-p \S+ )?(?P<name>\S+\.feature:\d+) # .*")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match[0].partition(" # ")[2])

    @on(r"\d{1,9} scenarios? \((?P<counts>.*)\)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"0 scenarios")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())
