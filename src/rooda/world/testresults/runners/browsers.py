"""Tests in browsers: Playwright, Cypress, Karma."""

import re
from typing import Any

from rooda.base.formats import json_at, json_list, json_number, json_text
from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    MOST_DETAILS,
    OTHER,
    PASSED,
    SKIPPED,
    Counts,
    RunnerReport,
    Suite,
    TestDetail,
    TestStatus,
    counted,
    detail,
    number,
    tally,
)

# -- playwright --------------------------------------------------------------------------------

_PLAYWRIGHT_WORDS = {
    "failed": FAILED,
    "interrupted": FAILED,
    "flaky": PASSED,
    "skipped": SKIPPED,
    "did not run": OTHER,
    "passed": PASSED,
}
_PLAYWRIGHT_MOST_LINES = 8  # lines of a message


class Playwright(RuleParser):
    """Playwright Test: `2 failed`, `1 flaky`, `1 skipped`, `2 passed (4.8s)`.

    The counts are in the last lines; the line with the passed tests also has the duration.
    """

    runner = "playwright"
    marks = (" passed (", "Running ", "Error: No tests found")

    def _reset(self) -> None:
        self._started = False
        self._counted: tuple[OutputLine, Counts] | None = None
        self._listing = ""
        self._block_at = -1
        self._messages: dict[str, list[str]] = {}
        self._message: list[str] = []

    @on(r"Running \d+ tests? using \d+ workers?(?:, shard .*)?")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self._settle()
        self.begin(line)
        self._started = True

    @on(r"\d{1,9}\) (?P<name>\S.* › .+?)(?: [─=]+)?")
    def _heading(self, _: OutputLine, match: re.Match[str]) -> None:
        self._message = []
        if len(self._messages) < MOST_DETAILS:
            self._messages[match["name"]] = self._message

    @on(r"(?P<count>\d{1,9} (?P<word>failed|flaky|interrupted|skipped|did not run))")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        self._add(line, match["count"])
        self._listing = match["word"]

    @on(r"(?P<name>(?:\[[^\]]+\] › )?\S+:\d+:\d+ › .+?)(?: [─=]+)?")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        if line.number != self._block_at + 1:
            return
        self._block_at = line.number
        if self._listing in {"failed", "interrupted"}:
            name = match["name"]
            self.fail(line, name, "\n".join(self._messages.get(name, [])))
            self.end_message()

    @on(r"(?P<count>\d{1,9} passed) \([\d.]+(?:ms|s|m|h)\)")
    def _passes(self, line: OutputLine, match: re.Match[str]) -> None:
        self._add(line, match["count"])
        self._settle(ended=True)

    @on(r"\d+ errors? (?:was|were) not a part of any test.*")
    def _outside(self, line: OutputLine, match: re.Match[str]) -> None:
        self._settle()
        if self.held is not None:
            self.error(line, "outside of the tests", match[0])

    @on(r"Error: No tests found.*")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def unmatched(self, line: OutputLine) -> None:
        """Append the line to the message of a failure."""
        if line.text and len(self._message) < _PLAYWRIGHT_MOST_LINES:
            self._message.append(line.text)

    def finish(self) -> list[Suite]:
        """Return the suites, including a run without passed tests."""
        self._settle()
        return super().finish()

    def _add(self, line: OutputLine, count: str) -> None:
        """Add a count to the block of counts; only test names may be between its lines."""
        sums = tally([count], _PLAYWRIGHT_WORDS)
        if sums is not None:
            goes_on = line.number == self._block_at + 1
            before = self._counted[1] if self._counted and goes_on else Counts()
            self._counted = line, before + counted(sums)
            self._block_at = line.number

    def _settle(self, *, ended: bool = False) -> None:
        """Hold the counts if the output shows that they belong to a playwright run."""
        if self._counted is not None and (self._started or ended):
            self.hold(*self._counted)
        if self._started or ended:
            self._counted, self._listing = None, ""


def playwright_report(document: Any) -> RunnerReport | None:
    """Return the report of playwright's JSON reporter, or None for another document."""
    stats = json_at(document, "stats")
    if not isinstance(stats, dict) or not {"expected", "unexpected", "flaky"} <= stats.keys():
        return None
    passed = json_number(stats, "expected") + json_number(stats, "flaky")
    counts = Counts(passed, json_number(stats, "unexpected"), json_number(stats, "skipped"))
    return RunnerReport("playwright", counts, _playwright_failed(json_list(document, "suites")))


def _playwright_failed(suites: list[Any]) -> list[TestDetail]:
    """Return the specs that failed, in document order."""
    failed: list[TestDetail] = []
    rest = [(suite, "") for suite in reversed(suites)]
    while rest:
        suite, path = rest.pop()
        for spec in json_list(suite, "specs"):
            if json_at(spec, "ok") is False:
                line, column = json_number(spec, "line"), json_number(spec, "column")
                place = f"{json_text(spec, 'file')}:{line}:{column}"
                name = f"{place}{path} › {json_text(spec, 'title')}"
                failed.append(detail(name, TestStatus.FAILED))
        inner = json_list(suite, "suites")
        rest += [(child, f"{path} › {json_text(child, 'title')}") for child in reversed(inner)]
    return failed


# -- cypress -----------------------------------------------------------------------------------


class Cypress(RuleParser):
    """`cypress run`: the last line of the final table has the totals.

    mocha prints the output of each spec inside the lines of the run.
    """

    runner = "cypress"
    marks = ("All specs passed!", " failed (")

    @on(r"\(Run Starting\)|Running:  \S.* \(\d+ of \d+\)")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"[✖×] +(?P<spec>\S+\.\w+) +(?:\d\d:\d\d|\d+m?s) +\d+ .*")
    def _spec_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["spec"])
        self.end_message()

    @on(
        r"[✔✖√×] +(?:All specs passed!|\d+ of \d+ failed \(\d+%\)) +\S+"
        r" +(?:\d+|-) +(?P<passed>\d+|-) +(?P<failed>\d+|-) +(?P<pending>\d+|-) +(?P<skipped>\d+|-)"
    )
    def _sums(self, line: OutputLine, match: re.Match[str]) -> None:
        passed, failed, pending, skipped = (
            number(match[key]) for key in ("passed", "failed", "pending", "skipped")
        )
        self.close(line, Counts(passed, failed, pending + skipped))


# -- karma -------------------------------------------------------------------------------------

_KARMA_NEAR = 4  # the maximum distance in lines from `Finished in` to the mocha reporter's counts


class Karma(RuleParser):
    """Karma: `Chrome 120 (Linux): Executed 3 of 3 (1 FAILED) (skipped 1)`, and its mocha reporter.

    The counts of the browsers add up. The last line of each browser counts; the earlier ones are
    progress.
    """

    runner = "karma"
    marks = (": Executed ", " secs / ")

    def __init__(self) -> None:
        super().__init__()
        self._browsers: dict[str, tuple[OutputLine, Counts]] = {}
        self._finished_at = -_KARMA_NEAR - 1

    @on(r".*Karma v\S+ server started at .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self._end()
        self.next_run()
        self.begin(line)

    @on(
        r"(?P<browser>\S.*?): Executed (?P<ran>\d{1,9}) of \d+"
        r"(?: \((?P<failed>\d{1,9}) FAILED\))?(?: \(skipped (?P<skipped>\d{1,9})\))?.*"
    )
    def _progress(self, line: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        failed, skipped = number(match["failed"] or ""), number(match["skipped"] or "")
        counts = Counts(max(0, number(match["ran"]) - failed), failed, skipped)
        self._browsers[match["browser"]] = line, counts

    @on(r"(?P<browser>[A-Z]\w* [\d.]+ \([^()]*\)) (?P<name>\S.*) FAILED")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Finished in .* secs? / .* secs?.*")
    def _finished(self, line: OutputLine, _: re.Match[str]) -> None:
        self._finished_at = line.number

    @on(r"\S (?P<amount>\d{1,9}) tests? (?P<word>completed|skipped|failed)")
    def _summed(self, line: OutputLine, match: re.Match[str]) -> None:
        field = "passed" if match["word"] == "completed" else match["word"]
        counts = Counts(**{field: number(match["amount"])})
        if self.held is not None:
            self.amend(line, self.held + counts)
        elif line.number - self._finished_at <= _KARMA_NEAR:
            self.hold(line, counts)

    def finish(self) -> list[Suite]:
        """Return the suites of all browsers."""
        self._end()
        return super().finish()

    def _end(self) -> None:
        for browser, (line, counts) in self._browsers.items():
            self.close(line, counts, part=browser)
        self._browsers = {}
