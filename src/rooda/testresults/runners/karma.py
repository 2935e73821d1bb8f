"""Karma: `Chrome 120 (Linux): Executed 3 of 3 (1 FAILED) (skipped 1)`, and its mocha reporter."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, Suite, number

_NEAR = 4  # the mocha reporter's counts stand so many lines below `Finished in` at most


class Karma(RuleParser):
    """Adds up the browsers, each by its last line: the others are progress."""

    runner = "karma"
    marks = (": Executed ", " secs / ")

    def __init__(self) -> None:
        super().__init__()
        self._browsers: dict[str, tuple[Line, Counts]] = {}
        self._finished_at = -_NEAR - 1

    @on(r".*Karma v\S+ server started at .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self._end()
        self.next_run()
        self.begin(line)

    @on(
        r"(?P<browser>\S.*?): Executed (?P<ran>\d{1,9}) of \d+"
        r"(?: \((?P<failed>\d{1,9}) FAILED\))?(?: \(skipped (?P<skipped>\d{1,9})\))?.*"
    )
    def _progress(self, line: Line, match: re.Match[str]) -> None:
        self.hush()
        failed, skipped = number(match["failed"] or ""), number(match["skipped"] or "")
        counts = Counts(max(0, number(match["ran"]) - failed), failed, skipped)
        self._browsers[match["browser"]] = line, counts

    @on(r"(?P<browser>[A-Z]\w* [\d.]+ \([^()]*\)) (?P<name>\S.*) FAILED")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Finished in .* secs? / .* secs?.*")
    def _finished(self, line: Line, _: re.Match[str]) -> None:
        self._finished_at = line.number

    @on(r"\S (?P<amount>\d{1,9}) tests? (?P<word>completed|skipped|failed)")
    def _summed(self, line: Line, match: re.Match[str]) -> None:
        field = "passed" if match["word"] == "completed" else match["word"]
        counts = Counts(**{field: number(match["amount"])})
        if self.held is not None:
            self.amend(line, self.held + counts)
        elif line.number - self._finished_at <= _NEAR:
            self.hold(line, counts)

    def finish(self) -> list[Suite]:
        """What every browser came to."""
        self._end()
        return super().finish()

    def _end(self) -> None:
        for browser, (line, counts) in self._browsers.items():
            self.close(line, counts, part=browser)
        self._browsers = {}
