"""meson test: a list of counts, `Ok: 2` to `Timeout: 1`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import (
    EXPECTED,
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    counted,
    tally,
)

_WORDS = {
    "Ok": PASSED,
    "Expected Fail": EXPECTED,
    "Fail": FAILED,
    "Unexpected Pass": FAILED,
    "Skipped": SKIPPED,
    "Ignored": OTHER,
    "Timeout": FAILED,
}


class Meson(RuleParser):
    """Newer versions leave out what is zero, but never `Ok`, which comes first."""

    runner = "meson"
    marks = ("Ok:  ",)

    @on(r"1/\d+ .*? (?:OK|SKIP|EXPECTEDFAIL) +[\d.]+ ?s.*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\d+/\d+ (?P<name>\S.*) (?:FAIL|ERROR|TIMEOUT|UNEXPECTEDPASS|INTERRUPT) +[\d.]+ ?s.*")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        if self.held is None:
            self.fail(line, match["name"].rstrip())
            self.hush()

    @on(r"(?P<what>[A-Z][A-Za-z ]{1,20}): {2,}(?P<amount>\d{1,9})")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally([f"{match['amount']} {match['what']}"], _WORDS)
        if sums is None:
            return
        if match["what"] == "Ok":
            self.hold(line, counted(sums))
        elif self.held is not None:
            self.amend(line, self.held + counted(sums))
