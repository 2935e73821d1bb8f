"""bun test: `2 pass`, `1 skip`, `2 fail`, then `Ran 5 tests across 1 file.`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, PASSED, SKIPPED, Counts, counted, tally

_WORDS = {
    "pass": PASSED,
    "fail": FAILED,
    "skip": SKIPPED,
    "todo": SKIPPED,
    "filtered out": OTHER,
    "error": OTHER,
    "errors": OTHER,
}


class Bun(RuleParser):
    """Adds up the counts that stand above the last line."""

    runner = "bun test"
    marks = ("Ran ", "No tests found!", "error: 0 test files matching")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._counts: list[str] = []

    @on(r"bun test v.*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:\(fail\)|✗) (?P<name>.+?)(?: \[[\d.]+m?s\])?")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.hush()

    @on(r"\d{1,9} (?:pass|fail|skip|todo|filtered out)")
    def _counted(self, _: Line, match: re.Match[str]) -> None:
        self._counts.append(match[0])

    @on(r"\d{1,9} errors?")
    def _outside(self, line: Line, match: re.Match[str]) -> None:
        if self._counts:
            self.error(line, "outside of the tests", match[0])

    @on(r"Ran \d+ tests? across \d+ files?\..*")
    def _ends(self, line: Line, _: re.Match[str]) -> None:
        sums = tally(self._counts, _WORDS)
        if self._counts and sums is not None:
            self.close(line, counted(sums))
        self._counts = []

    @on(r"No tests found!|error: 0 test files matching .*")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        if self.is_running:
            self.close(line, Counts())
