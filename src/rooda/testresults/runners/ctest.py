"""ctest: `43% tests passed, 4 tests failed out of 7`, and what did not run below it."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class CTest(RuleParser):
    """Counts from the summary, which takes skipped tests for passed and leaves disabled ones out.

    The list below it, or else the line of each test, tells which they are.
    """

    runner = "ctest"
    marks = ("tests passed, ", "No tests were found!!!")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._unrun: set[str] = set()
        self._disabled = self._total = self._failed = 0

    @on(r"Test project .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"Start +\d+: .*")
    def _starts_test(self, line: Line, _: re.Match[str]) -> None:
        if self.held is not None:
            self.flush()
        self.started(line)

    @on(
        r"(?:\d+/\d+ )?Test +#\d+: (?P<name>.+?) \.+\*{3}"
        r"(?:Not Run \()?(?P<status>Skipped|Disabled).*"
    )
    def _unrun_test(self, line: Line, match: re.Match[str]) -> None:
        self._note_unrun(line, match["name"], match["status"])

    @on(r"\d+ - (?P<name>.+) \((?P<status>[^()]+)\).*")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        if self.held is None:
            return
        if match["status"] in {"Skipped", "Disabled"}:
            self._note_unrun(line, match["name"], match["status"])
        else:
            self.fail(line, match["name"], match["status"])

    @on(r"\d+% tests passed, (?P<failed>\d{1,9}) tests? failed out of (?P<total>\d{1,9})")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        self._total, self._failed = number(match["total"]), number(match["failed"])
        self.hold(line, self._sums())

    @on(r"No tests were found!!!")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def _note_unrun(self, line: Line, name: str, status: str) -> None:
        if name not in self._unrun:
            self._unrun.add(name)
            self._disabled += status == "Disabled"
        if self.held is not None:
            self.amend(line, self._sums())

    def _sums(self) -> Counts:
        return Counts.out_of(self._total + self._disabled, self._failed, len(self._unrun))
