"""gradle test: `5 tests completed, 2 failed, 1 skipped`; with nothing failed it prints no count."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, SKIPPED, TOTAL, Counts, rest_passed, tally

_WORDS = {"test": TOTAL, "tests": TOTAL, "failed": FAILED, "skipped": SKIPPED}
_NOT_RUN = " UP-TO-DATE| NO-SOURCE| SKIPPED| FROM-CACHE"


class Gradle(RuleParser):
    """Adds up the test tasks of one build.

    A task that failed prints counts. One that passed prints none: it counts the tests that it
    names (with `testLogging`), or else as one.
    """

    runner = "gradle"
    marks = (" completed", ": Executed ", "BUILD SUCCESSFUL", "No tests found for given includes")

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[str, Counts] = {}
        self._task = ""

    @on(rf"(?:Task )?:(?:[\w.-]+:)*(?:test|\w*Test)(?:{_NOT_RUN})")
    def _runs_not(self, _: Line, __: re.Match[str]) -> None:
        self._task = ""

    @on(r"(?:Task )?:(?P<task>(?:[\w.-]+:)*(?:test|\w*Test))(?: FAILED|WARNING: .*)?")
    def _runs(self, line: Line, match: re.Match[str]) -> None:
        self.started(line)
        self._task = match["task"]
        self._tasks.setdefault(self._task, Counts())

    @on(r"(?P<name>\S.*) (?P<status>PASSED|FAILED|SKIPPED)")
    def _names(self, line: Line, match: re.Match[str]) -> None:
        if " > " not in match["name"]:
            return
        self.hush()
        field = match["status"].lower()
        self._tasks[self._task] = self._tasks.get(self._task, Counts()) + Counts(**{field: 1})
        if field == FAILED:
            self.fail(line, match["name"])

    @on(r"(?P<counts>\d+ tests?) completed(?P<more>, \d+ failed)(?P<rest>, \d+ skipped)?")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        pieces = (match["counts"], *(match[more][2:] for more in ("more", "rest") if match[more]))
        sums = tally(pieces, _WORDS)
        if sums is not None:
            self._tasks.pop(self._task, None)
            self.close(line, rest_passed(sums), part=self._task or f"line {line.number}")

    @on(
        r"(?:SUCCESS|FAILURE): Executed (?P<tests>\d+ tests?) in \d[^()]*"
        r"(?:\((?P<more>.*)\))?"
    )
    def _test_logger(self, line: Line, match: re.Match[str]) -> None:
        more = match["more"].split(", ") if match["more"] else []
        sums = tally([match["tests"], *more], _WORDS)
        if sums is not None:
            self._tasks.pop(self._task, None)
            self.close(line, rest_passed(sums), part=self._task or f"line {line.number}")

    @on(r"No tests found for given includes: .*")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self._tasks = {}
        self.close(line, Counts(), part=self._task or f"line {line.number}")

    @on(r"BUILD (?P<verdict>SUCCESSFUL|FAILED).*")
    def _builds(self, line: Line, match: re.Match[str]) -> None:
        for task, named in self._tasks.items():
            if named.total or match["verdict"] == "SUCCESSFUL":
                self.close(line, named if named.total else Counts(passed=1), part=task)
        self._tasks, self._task = {}, ""
        self.next_run()
