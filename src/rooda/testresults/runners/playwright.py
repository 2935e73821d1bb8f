"""Playwright Test: `2 failed`, `1 flaky`, `1 skipped`, `2 passed (4.8s)`, and its JSON."""

import re
from typing import Any

from rooda.testresults.lines import Line
from rooda.testresults.parser import MOST_DETAILS, RuleParser, detail, on
from rooda.testresults.reports import Report, amount, at, members, words
from rooda.testresults.suites import FAILED, OTHER, PASSED, SKIPPED, Counts, Suite, counted, tally
from rooda.testresults.types import TestDetail, TestStatus

_WORDS = {
    "failed": FAILED,
    "interrupted": FAILED,
    "flaky": PASSED,
    "skipped": SKIPPED,
    "did not run": OTHER,
    "passed": PASSED,
}
_MOST_LINES = 8  # of a message


class Playwright(RuleParser):
    """Counts from the lines at the end, of which that of the passed has the duration."""

    runner = "playwright"
    marks = (" passed (", "Running ", "Error: No tests found")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._started = False
        self._counted: tuple[Line, Counts] | None = None
        self._listing = ""
        self._block_at = -1
        self._messages: dict[str, list[str]] = {}
        self._message: list[str] = []

    @on(r"Running \d+ tests? using \d+ workers?(?:, shard .*)?")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self._settle()
        self.begin(line)
        self._started = True

    @on(r"\d{1,9}\) (?P<name>\S.* › .+?)(?: [─=]+)?")
    def _heading(self, _: Line, match: re.Match[str]) -> None:
        self._message = []
        if len(self._messages) < MOST_DETAILS:
            self._messages[match["name"]] = self._message

    @on(r"(?P<count>\d{1,9} (?P<word>failed|flaky|interrupted|skipped|did not run))")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        self._add(line, match["count"])
        self._listing = match["word"]

    @on(r"(?P<name>(?:\[[^\]]+\] › )?\S+:\d+:\d+ › .+?)(?: [─=]+)?")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        if line.number != self._block_at + 1:
            return
        self._block_at = line.number
        if self._listing in {"failed", "interrupted"}:
            name = match["name"]
            self.fail(line, name, "\n".join(self._messages.get(name, [])))
            self.hush()

    @on(r"(?P<count>\d{1,9} passed) \([\d.]+(?:ms|s|m|h)\)")
    def _passes(self, line: Line, match: re.Match[str]) -> None:
        self._add(line, match["count"])
        self._settle(ended=True)

    @on(r"\d+ errors? (?:was|were) not a part of any test.*")
    def _outside(self, line: Line, match: re.Match[str]) -> None:
        self._settle()
        if self.held is not None:
            self.error(line, "outside of the tests", match[0])

    @on(r"Error: No tests found.*")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def other(self, line: Line) -> None:
        """Go on with the message of a failure."""
        if line.text and len(self._message) < _MOST_LINES:
            self._message.append(line.text)

    def finish(self) -> list[Suite]:
        """The runs, also one in which nothing passed."""
        self._settle()
        return super().finish()

    def _add(self, line: Line, count: str) -> None:
        """Add a count to those of the same block, which has no other lines than their names."""
        sums = tally([count], _WORDS)
        if sums is not None:
            goes_on = line.number == self._block_at + 1
            before = self._counted[1] if self._counted and goes_on else Counts()
            self._counted = line, before + counted(sums)
            self._block_at = line.number

    def _settle(self, *, ended: bool = False) -> None:
        """Take the counts for a run's, if it is certain that one was there."""
        if self._counted is not None and (self._started or ended):
            self.hold(*self._counted)
        if self._started or ended:
            self._counted, self._listing = None, ""


def report(document: Any) -> Report | None:
    """Read what the json reporter prints."""
    stats = at(document, "stats")
    if not isinstance(stats, dict) or not {"expected", "unexpected", "flaky"} <= stats.keys():
        return None
    passed = amount(stats, "expected") + amount(stats, "flaky")
    counts = Counts(passed, amount(stats, "unexpected"), amount(stats, "skipped"))
    return Report("playwright", counts, _failed(members(document, "suites")))


def _failed(suites: list[Any]) -> list[TestDetail]:
    """The specs that aren't ok, in the order in which they stand."""
    failed: list[TestDetail] = []
    rest = [(suite, "") for suite in reversed(suites)]
    while rest:
        suite, path = rest.pop()
        for spec in members(suite, "specs"):
            if at(spec, "ok") is False:
                place = f"{words(spec, 'file')}:{amount(spec, 'line')}:{amount(spec, 'column')}"
                name = f"{place}{path} › {words(spec, 'title')}"
                failed.append(detail(name, TestStatus.FAILED))
        inner = members(suite, "suites")
        rest += [(child, f"{path} › {words(child, 'title')}") for child in reversed(inner)]
    return failed
