"""deno test: `FAILED | 2 passed (2 steps) | 1 failed | 1 ignored (85ms)`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, PASSED, SKIPPED, Counts, counted, tally

_WORDS = {
    "passed": PASSED,
    "measured": PASSED,
    "failed": FAILED,
    "ignored": SKIPPED,
    "filtered out": OTHER,
}


class Deno(RuleParser):
    """Counts tests, not their steps."""

    runner = "deno test"
    marks = ("ok | ", "FAILED | ", "error: No test modules found")

    @on(r"running \d+ tests? from .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"(?P<name>\S.*) => \S+:\d+:\d+")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"FAILURES|ERRORS")
    def _no_message(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"(?:ok|FAILED) \| (?P<counts>\d+ passed .* failed\b.*)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|"), _WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"error: No test modules found")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())
