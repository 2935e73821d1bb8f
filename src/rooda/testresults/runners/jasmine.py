"""jasmine: `3 specs, 1 failure, 1 pending spec`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, SKIPPED, TOTAL, Counts, rest_passed, tally

_WORDS = {
    "spec": TOTAL,
    "specs": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "pending spec": SKIPPED,
    "pending specs": SKIPPED,
}


class Jasmine(RuleParser):
    """Counts from the last line; the failures are listed above, before the pending ones."""

    runner = "jasmine"
    marks = (" spec", "No specs found")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._listing = False
        self._sum: tuple[Line, Counts] | None = None

    @on(r"Started")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"Failures:|Pending:")
    def _list(self, _: Line, match: re.Match[str]) -> None:
        self.hush()
        self._listing = match[0] == "Failures:"

    @on(r"\d{1,9}\) (?P<name>.+)")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        if self._listing:
            self.fail(line, match["name"])

    @on(r"Message:")
    def _message(self, _: Line, __: re.Match[str]) -> None:
        pass

    @on(r"Stack:")
    def _stack(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"\d+ specs?, \d+ failures?(?:, \d+ pending specs?)?")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _WORDS)
        if sums is not None and self.is_running:
            self.close(line, rest_passed(sums))
        elif sums is not None:
            self._sum = line, rest_passed(sums)

    @on(r"Finished in [\d.]+ seconds?")
    def _finishes(self, line: Line, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(*self._sum)

    @on(r"No specs found")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())
