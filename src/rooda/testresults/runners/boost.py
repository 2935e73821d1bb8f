"""Boost.Test: `Running 2 test cases...`, then `*** 1 failure is detected in the test module`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class Boost(RuleParser):
    """Counts the cases that have an error; the summary counts failed assertions."""

    runner = "boost.test"
    marks = ("*** No errors detected", "detected in the test module", "Test module ")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._running = 0

    @on(r"Running (?P<amount>\d{1,9}) test cases?\.\.\.")
    def _starts(self, line: Line, match: re.Match[str]) -> None:
        self.begin(line)
        self._running = number(match["amount"])

    @on(r".*?: (?:fatal )?error: in \"(?P<name>[^\"]+)\": (?P<message>.*)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"\*\*\* (?:\d+ failures? (?:is|are) detected.*|No errors detected)")
    def _verdict(self, line: Line, match: re.Match[str]) -> None:
        failed = 0 if match[0].endswith("No errors detected") else max(1, self.failures)
        self.close(line, Counts.out_of(max(self._running, 1), failed))

    @on(r"Test module \".*\" (?:has|was) .*with:")
    def _report(self, line: Line, _: re.Match[str]) -> None:
        self.hold(line, Counts())

    @on(r"(?P<amount>\d{1,9}) test cases? out of \d+ (?P<field>passed|failed|skipped)")
    def _reported(self, line: Line, match: re.Match[str]) -> None:
        if self.held is not None:
            self.amend(line, self.held + Counts(**{match["field"]: number(match["amount"])}))

    @on(r"Test (?:suite|case) \".*\" .*")
    def _report_ends(self, _: Line, __: re.Match[str]) -> None:
        self.flush()
