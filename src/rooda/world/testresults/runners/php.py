"""PHP: PHPUnit and Pest."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import TestStatus
from rooda.world.testresults.suites import (
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
    """PHPUnit and Pest: `OK (2 tests, 2 assertions)`, `Tests: 9, Assertions: 5, Errors: 1.`.

    The counts are in the last line. Risky tests and tests with warnings count as passed.
    """

    runner = "phpunit"
    marks = ("assertion", "Assertions: ", "No tests executed!", "Time: ")

    def _reset(self) -> None:
        self._status: TestStatus | None = None
        self._sum: tuple[OutputLine, Counts] | None = None

    @on(r"PHPUnit \d\S* by Sebastian Bergmann.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"There (?:was|were) \d+ (?:PHPUnit (?:test runner )?)?(?P<kind>\w+)(?: tests?)?:")
    def _list_follows(self, _: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._status = _LISTS.get(match["kind"].removesuffix("s"))

    @on(r"\d{1,9}\) (?P<name>[\w\\]+::.+)")
    def _named(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._status is not None:
            without_data = match["name"].partition(" (")[0]
            self.fail(line, without_data, status=self._status)

    @on(r"FAILED +(?P<name>\S.* > .+)")
    def _pest_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"--")
    def _list_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()
        self._status = None

    @on(r"OK \((?P<tests>\d{1,9}) tests?, \d+ assertions?\)")
    def _passed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.close(line, Counts(passed=number(match["tests"])))

    @on(r"(?P<counts>Tests: \d+, Assertions: \d+.*?)\.?")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = (piece.partition(": ")[::2] for piece in match["counts"].split(", "))
        sums = tally((f"{amount} {word}" for word, amount in pieces if word in _WORDS), _WORDS)
        if sums is not None:
            self.close(line, rest_passed(sums))

    @on(r"Tests: +(?P<counts>\d.*?)(?P<whole> \(\d+ assertions?\))?")
    def _pest_counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _PEST)
        if sums is not None and match["whole"]:
            self.close(line, counted(sums))
        elif sums is not None:
            self._sum = line, counted(sums)

    @on(r"Time: +[\d.]+s")
    def _old_pest_ends(self, line: OutputLine, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(*self._sum)

    @on(r"No tests executed!")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())
