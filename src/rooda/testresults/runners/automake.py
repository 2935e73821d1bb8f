"""automake's `make check`: a list of counts, `# TOTAL: 6` to `# ERROR: 1`, for each folder."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number
from rooda.testresults.types import TestStatus


class Automake(RuleParser):
    """A test that passes unexpectedly fails the run, so it counts as failed."""

    runner = "automake"
    marks = ("# TOTAL:",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._sums: dict[str, int] = {}

    @on(r"make(?:\[\d+\])?: Entering directory .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?P<status>FAIL|ERROR|XPASS): (?P<name>\S.*)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        errs = match["status"] == "ERROR"
        self.fail(line, match["name"], status=TestStatus.ERROR if errs else TestStatus.FAILED)
        self.hush()

    @on(r"# (?P<key>TOTAL|PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): +(?P<amount>\d{1,9})")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        self._sums[match["key"]] = number(match["amount"])
        if match["key"] == "ERROR" and "TOTAL" in self._sums:
            get = self._sums.get
            failed = get("FAIL", 0) + get("XPASS", 0) + get("ERROR", 0)
            skipped, expected = get("SKIP", 0), get("XFAIL", 0)
            self.close(line, Counts.out_of(get("TOTAL", 0), failed, skipped, expected))
