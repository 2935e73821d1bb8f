"""C# and F#: `dotnet test` in its various output formats."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.suites import FAILED, PASSED, SKIPPED, TOTAL, Counts, counted, tally

_WORDS = {
    "total": TOTAL,
    "total tests": TOTAL,
    "passed": PASSED,
    "succeeded": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "inconclusive": SKIPPED,
}


class DotNet(RuleParser):
    """`dotnet test`: `Failed!  - Failed:     1, Passed:     2, Skipped: ...`, and other formats.

    The projects of one command add up; newer versions print one summary for all projects.
    """

    runner = "dotnet test"
    marks = ("Passed:", "succeeded:")

    def _reset(self) -> None:
        self._project = ""
        self._ended_at = -1
        self._old_sums: tuple[OutputLine, list[str]] | None = None

    @on(r"Test run for (?P<project>.+)")
    def _starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._project = match["project"]

    @on(r"Failed (?P<name>\S.*?) \[[\d<].*\]|failed (?P<test>\S.*?) \([\d.]+m?s.*\)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"] or match["test"])

    @on(r"Error Message:")
    def _message_follows(self, _: OutputLine, __: re.Match[str]) -> None:
        pass

    @on(r"Stack Trace:|Passed \S.* \[[\d<].*\]")
    def _message_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"Test Run (?:Failed|Successful|Aborted)\.")
    def _ends(self, line: OutputLine, _: re.Match[str]) -> None:
        self.end_message()
        self._ended_at = line.number
        if self._old_sums is not None and line.number <= self._old_sums[0].number + 2:
            self._sum_up(*self._old_sums, self._project)

    @on(r"(?:Passed|Failed|Skipped)! +- +(?P<counts>Failed: .*?), Duration: .*? - (?P<project>.*)")
    def _project_ends(self, line: OutputLine, match: re.Match[str]) -> None:
        is_same = _library(match["project"]) == _library(self._project)
        if self.held is not None and is_same:
            self.drop_held()  # the list above has the same counts
        self._sum_up(line, match["counts"].split(", "), match["project"])

    @on(r"Test summary: (?P<counts>total: .*?), duration: .*")
    def _all_end(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sum_up(line, match["counts"].split(", "), None)

    @on(r"(?P<counts>Total tests: \d+\. Passed: .*)")
    def _old_project_ends(self, line: OutputLine, match: re.Match[str]) -> None:
        self._old_sums = line, match["counts"].rstrip(".").split(". ")

    @on(
        r"(?:.* error TESTERROR: *)?(?P<name>[\w.]+\S.*) \([\d.]+m?s\): "
        r"Error Message: (?P<message>.*)"
    )
    def _logged(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"Total tests: \d+")
    def _list_follows(self, line: OutputLine, _: re.Match[str]) -> None:
        if line.number == self._ended_at + 1:
            self.hold(line, Counts(), self._project)

    @on(r"Test run summary: \w+!.*")
    def _platform_list_follows(self, line: OutputLine, _: re.Match[str]) -> None:
        self.end_message()
        self.hold(line, Counts())

    @on(r"(?P<count>(?:Passed|Failed|Skipped|failed|succeeded|skipped) *: +\d{1,9})")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = _sums([match["count"]])
        if self.held is not None and sums is not None:
            self.amend(line, self.held + counted(sums))

    def _sum_up(self, line: OutputLine, pieces: list[str], project: str | None) -> None:
        sums = _sums(pieces)
        if sums is not None:
            self.close(line, counted(sums), project)


def _library(project: str) -> str:
    """Return the name of a project's library, without its folder and framework."""
    return project.partition(" (")[0].replace("\\", "/").rpartition("/")[2]


def _sums(pieces: list[str]) -> dict[str, int] | None:
    pairs = (piece.partition(":")[::2] for piece in pieces)
    return tally((f"{amount.strip()} {word.strip().lower()}" for word, amount in pairs), _WORDS)
