"""PHPUnit and Pest: `OK (2 tests, 2 assertions)`, `Tests: 9, Assertions: 5, Errors: 1.`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import (
    FAILED,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    counted,
    number,
    rest_passed,
    tally,
)
from rooda.testresults.types import TestStatus

_WORDS = {
    "Tests": TOTAL,
    "Errors": FAILED,
    "Failures": FAILED,
    "Skipped": SKIPPED,
    "Incomplete": SKIPPED,
}
_PEST = {
    "failed": FAILED,
    "passed": PASSED,
    "skipped": SKIPPED,
    "todo": SKIPPED,
    "todos": SKIPPED,
    "incomplete": SKIPPED,
    "risky": PASSED,
    "warning": PASSED,
    "warnings": PASSED,
    "deprecated": PASSED,
    "notice": PASSED,
}
_LISTS = {"failure": TestStatus.FAILED, "error": TestStatus.ERROR}


class PhpUnit(RuleParser):
    """Counts from the last line; risky tests and those with warnings passed."""

    runner = "phpunit"
    marks = ("assertion", "Assertions: ", "No tests executed!", "Time: ")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._status: TestStatus | None = None
        self._sum: tuple[Line, Counts] | None = None

    @on(r"PHPUnit \d\S* by Sebastian Bergmann.*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"There (?:was|were) \d+ (?:PHPUnit (?:test runner )?)?(?P<kind>\w+)(?: tests?)?:")
    def _list_follows(self, _: Line, match: re.Match[str]) -> None:
        self.hush()
        self._status = _LISTS.get(match["kind"].removesuffix("s"))

    @on(r"\d{1,9}\) (?P<name>[\w\\]+::.+)")
    def _named(self, line: Line, match: re.Match[str]) -> None:
        if self._status is not None:
            without_data = match["name"].partition(" (")[0]
            self.fail(line, without_data, status=self._status)

    @on(r"FAILED +(?P<name>\S.* > .+)")
    def _pest_failed(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"--")
    def _list_ends(self, _: Line, __: re.Match[str]) -> None:
        self.hush()
        self._status = None

    @on(r"OK \((?P<tests>\d{1,9}) tests?, \d+ assertions?\)")
    def _passed(self, line: Line, match: re.Match[str]) -> None:
        self.close(line, Counts(passed=number(match["tests"])))

    @on(r"(?P<counts>Tests: \d+, Assertions: \d+.*?)\.?")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        pieces = (piece.partition(": ")[::2] for piece in match["counts"].split(", "))
        sums = tally((f"{amount} {word}" for word, amount in pieces if word in _WORDS), _WORDS)
        if sums is not None:
            self.close(line, rest_passed(sums))

    @on(r"Tests: +(?P<counts>\d.*?)(?P<whole> \(\d+ assertions?\))?")
    def _pest_counts(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _PEST)
        if sums is not None and match["whole"]:
            self.close(line, counted(sums))
        elif sums is not None:
            self._sum = line, counted(sums)

    @on(r"Time: +[\d.]+s")
    def _old_pest_ends(self, line: Line, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(*self._sum)

    @on(r"No tests executed!")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())
