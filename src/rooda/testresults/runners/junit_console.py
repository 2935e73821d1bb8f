"""JUnit's own console runners: version 4's `OK (3 tests)`, and the launcher of version 5."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number

_NEAR = 2  # the verdict stands so many lines below the time


class JUnitConsole(RuleParser):
    """The launcher prints a table of counts in brackets, from containers to failed tests."""

    runner = "junit"
    marks = ("OK (", "Tests run: ", " tests failed ")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._sums: dict[str, int] = {}
        self._time_at = -_NEAR - 1

    @on(r"JUnit version \d.*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\d{1,9}\) (?P<name>\w+\([\w.$]+\))")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Time: [\d.,]+")
    def _timed(self, line: Line, _: re.Match[str]) -> None:
        self._time_at = line.number

    @on(r"OK \((?P<tests>\d{1,9}) tests?\)")
    def _passed(self, line: Line, match: re.Match[str]) -> None:
        if line.number - self._time_at <= _NEAR or line.place <= _NEAR:
            self.close(line, Counts(passed=number(match["tests"])))

    @on(r"Tests run: (?P<tests>\d{1,9}),  Failures: (?P<failed>\d{1,9})")
    def _failed(self, line: Line, match: re.Match[str]) -> None:
        self.close(line, Counts.out_of(number(match["tests"]), number(match["failed"])))

    @on(r"JUnit (?:Jupiter|Vintage|Platform.*?):(?P<name>.+)")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"].replace(":", " > "))

    @on(r"\[ +(?P<amount>\d{1,9}) tests (?P<what>skipped|aborted|successful|failed) +\]")
    def _row(self, line: Line, match: re.Match[str]) -> None:
        self._sums[match["what"]] = number(match["amount"])
        if match["what"] == "failed":
            get = self._sums.get
            skipped = get("skipped", 0) + get("aborted", 0)
            self.close(line, Counts(get("successful", 0), get("failed", 0), skipped))
