"""ScalaTest, and sbt's own sum for every framework: `Failed: Total 5, Failed 1, Errors 0, ...`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number

_LEVEL = r"(?:\[(?:info|warn|error|success)\] *)?"


class Scala(RuleParser):
    """Adds up the projects of one command; sbt's sum comes right below that of ScalaTest."""

    runner = "scala"
    marks = (": Total ", "Tests: succeeded ")

    @on(_LEVEL + r"- (?P<name>\S.*) \*\*\* FAILED \*\*\*.*")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(_LEVEL + r"==> X (?P<name>\S.*?)  [\d.]+s(?: (?P<message>.*))?")
    def _munit_fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "")

    @on(
        _LEVEL + r"Tests: succeeded (\d+), failed (\d+), "
        r"canceled (\d+), ignored (\d+), pending (\d+)"
    )
    def _scalatest(self, line: Line, match: re.Match[str]) -> None:
        passed, failed, *skipped = (number(amount) for amount in match.groups())
        self.hold(line, Counts(passed, failed, sum(skipped)), part=f"line {line.number}")

    @on(
        _LEVEL + r"(?:Passed|Failed|Error|Canceled): Total \d+, "
        r"Failed (?P<failed>\d+), Errors (?P<errors>\d+), Passed (?P<passed>\d+)"
        r"(?P<more>(?:, [A-Z][a-z]+ \d+)*)"
    )
    def _sbt(self, line: Line, match: re.Match[str]) -> None:
        self.release()
        skipped = sum(number(piece.split(" ")[-1]) for piece in match["more"].split(","))
        failed = number(match["failed"]) + number(match["errors"])
        counts = Counts(number(match["passed"]), failed, skipped)
        self.close(line, counts, part=f"line {line.number}")

    @on(_LEVEL + r"Total time: .*")
    def _ends(self, _: Line, __: re.Match[str]) -> None:
        self.flush()
        self.next_run()
