"""Maven's Surefire and Failsafe: `Tests run: 7, Failures: 1, Errors: 1, Skipped: 1`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, Suite, number
from rooda.testresults.types import TestStatus

_LEVEL = r"(?:\[(?:INFO|WARNING|ERROR)\] *)?"
_COUNTS = r"Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9})"
_LISTED = re.compile(r"(?P<name>[\w$]+[.(>-][^\s:]+):(?P<rest>.*)")
_LISTS = {
    "Failures": TestStatus.FAILED,
    "Failed tests": TestStatus.FAILED,
    "Errors": TestStatus.ERROR,
    "Tests in error": TestStatus.ERROR,
}


class Maven(RuleParser):
    """Adds up the modules of one build, each by its total; classes count only without totals."""

    runner = "maven"
    marks = ("Tests run: ", "No tests to run.")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._status: TestStatus | None = None
        self._classes: dict[str, tuple[Line, Counts]] = {}

    @on(_LEVEL + r"Scanning for projects\.\.\.")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)
        self.next_run()

    @on(_LEVEL + r"T E S T S")
    def _tests_start(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)
        self._classes.clear()

    @on(_LEVEL + _COUNTS + r", Time elapsed: .*?(?: (?:--|-) in (?P<name>\S+))?")
    def _class(self, line: Line, match: re.Match[str]) -> None:
        self.started(line)
        self._classes[match["name"] or f"line {line.number}"] = line, _counts(match)

    @on(_LEVEL + r"(?P<kind>Failures|Errors|Failed tests|Tests in error|Flakes): *(?P<first>.*)")
    def _list_follows(self, line: Line, match: re.Match[str]) -> None:
        self._status = _LISTS.get(match["kind"])
        listed = _LISTED.fullmatch(match["first"])
        if listed is not None:
            self._failed(line, listed)

    @on(_LEVEL + _LISTED.pattern)
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        self._failed(line, match)

    def _failed(self, line: Line, listed: re.Match[str]) -> None:
        if self._status is not None:
            message = listed["rest"].lstrip("0123456789").strip()
            self.fail(line, listed["name"], message, self._status)
            self.hush()

    @on(_LEVEL + _COUNTS + r"(?:, Flakes: \d+)?")
    def _total(self, line: Line, match: re.Match[str]) -> None:
        self._status = None
        self._classes.clear()
        self.close(line, _counts(match), part=f"line {line.number}")

    @on(_LEVEL + r"(?:There are )?[Nn]o tests to run\.")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts(), part=f"line {line.number}")

    @on(_LEVEL + r"BUILD (?:SUCCESS|FAILURE)")
    def _ends(self, _: Line, __: re.Match[str]) -> None:
        self.next_run()

    def finish(self) -> list[Suite]:
        """The totals; or the classes, where the output was cut before a total."""
        if not self._suites:
            for name, (line, counts) in self._classes.items():
                self.close(line, counts, part=name)
        return super().finish()


def _counts(match: re.Match[str]) -> Counts:
    run, failures, errors, skipped = (number(match[group]) for group in range(1, 5))
    return Counts.out_of(run, failures + errors, skipped)
