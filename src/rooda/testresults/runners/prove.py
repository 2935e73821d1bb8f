"""prove: `Files=2, Tests=6,  0 wallclock secs`, and a report of what failed above it."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class Prove(RuleParser):
    """Counts from the last lines and the report; only `-v` shows which tests were skipped."""

    runner = "prove"
    marks = ("Files=",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._failed = self._skipped = 0
        self._file = ""

    @on(r"\S+\.t \.{2,}(?: .*)?")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"(?P<file>\S+) +\(Wstat: .* Tests: \d+ Failed: (?P<failed>\d{1,9})\)")
    def _file_failed(self, line: Line, match: re.Match[str]) -> None:
        self._file = match["file"]
        self._failed += number(match["failed"])
        if not number(match["failed"]):
            self.error(line, self._file)

    @on(r"(?:not )?ok \d+ .*# ?(?:skip|SKIP|todo|TODO)\b.*")
    def _skips(self, _: Line, __: re.Match[str]) -> None:
        self._skipped += self.is_running

    @on(r"Failed tests?: (?P<tests>[\d, -]+)")
    def _tests_failed(self, line: Line, match: re.Match[str]) -> None:
        for test in match["tests"].split(","):
            self.fail(line, f"{self._file} test {test.strip()}")
        self.hush()

    @on(r"Files=\d+, Tests=(?P<tests>\d{1,9}), .*")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        self.close(line, Counts.out_of(number(match["tests"]), self._failed, self._skipped))
