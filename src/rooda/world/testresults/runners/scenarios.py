"""Acceptance tests in any language: cucumber, behave, Robot Framework."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    TestStatus,
    counted,
    tally,
)

# -- cucumber ----------------------------------------------------------------------------------

_CUCUMBER_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "undefined": FAILED,
    "ambiguous": FAILED,
    "unknown": FAILED,
    "skipped": SKIPPED,
    "pending": SKIPPED,
    "flaky": PASSED,
}


class Cucumber(RuleParser):
    """cucumber (Ruby, JavaScript, JVM, Rust): `4 scenarios (1 failed, 1 undefined, 2 passed)`.

    Scenarios count as tests. A scenario with undefined steps fails the run.
    """

    runner = "cucumber"
    marks = ("scenario",)

    @on(r"cucumber (?:-p \S+ )?(?P<name>\S+\.feature:\d+) # .*")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match[0].partition(" # ")[2])

    @on(r"\d{1,9} scenarios? \((?P<counts>.*)\)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _CUCUMBER_WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"0 scenarios")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())


# -- behave ------------------------------------------------------------------------------------

_BEHAVE_WORDS = {
    "scenario passed": PASSED,
    "scenarios passed": PASSED,
    "passed": PASSED,
    "failed": FAILED,
    "error": FAILED,
    "hook_error": FAILED,
    "cleanup_error": FAILED,
    "undefined": FAILED,
    "skipped": SKIPPED,
    "untested": SKIPPED,
    "pending": SKIPPED,
    "pending_warn": SKIPPED,
}


class Behave(RuleParser):
    """behave (Python): `1 scenario passed, 1 failed, 1 error, 1 skipped`.

    Scenarios count as tests.
    """

    runner = "behave"
    marks = (" scenario passed", " scenarios passed")

    def _reset(self) -> None:
        self._status: TestStatus | None = None

    @on(r"USING RUNNER: .*|Feature: .* # \S+:\d+")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"(?P<kind>Failing|Errored) scenarios:")
    def _list_follows(self, _: OutputLine, match: re.Match[str]) -> None:
        failing = match["kind"] == "Failing"
        self._status = TestStatus.FAILED if failing else TestStatus.ERROR

    @on(r"\S+\.feature:\d+  .*")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._status is not None:
            self.fail(line, match[0], status=self._status)
            self.end_message()

    @on(r"\d+ scenarios? passed, .*")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _BEHAVE_WORDS)
        if sums is not None:
            self.close(line, counted(sums))


# -- robot -------------------------------------------------------------------------------------

_ROBOT_WORDS = {
    "test": TOTAL,
    "tests": TOTAL,
    "task": TOTAL,
    "tasks": TOTAL,
    "tests total": TOTAL,
    "test total": TOTAL,
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
}


class Robot(RuleParser):
    """Robot Framework: `4 tests, 2 passed, 1 failed, 1 skipped` below the result of each suite.

    The last such line has the sum. Tests and suites have the same marker.
    """

    runner = "robot"
    marks = (" passed, ",)

    def _reset(self) -> None:
        self._verdict_at = -1
        self._may_be_suite = False
        self._dotted = False

    @on(r"(?P<name>\S.*) \| (?P<verdict>PASS|FAIL|SKIP) \|")
    def _ends(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self.end_message()
        self._verdict_at = line.number
        self._may_be_suite = match["verdict"] == "FAIL"
        if self._may_be_suite:
            self.fail(line, match["name"].rstrip())

    @on(r"Running suite '.*' with \d+ (?:test|task)s?\.")
    def _starts_dots(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)
        self._dotted = True

    @on(r"FAIL: (?P<name>\S.*)")
    def _fails_in_dots(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._dotted:
            self.fail(line, match["name"])

    @on(r"[=-]{50,}")
    def _rule(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"PASSED|FAILED|SKIPPED|\d+ critical tests?, .*")
    def _verdict(self, line: OutputLine, _: re.Match[str]) -> None:
        self._verdict_at = line.number
        self._may_be_suite = False
        self._dotted = False

    @on(r"\d+ (?:test|task)s?(?: total)?, \d+ passed, \d+ failed.*")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _ROBOT_WORDS)
        if sums is None or line.number != self._verdict_at + 1:
            return
        if self._may_be_suite:
            self.retract_failure()
            self._may_be_suite = False
        # An outer suite prints its counts after those of its inner suites and includes them.
        self.hold_or_amend(line, counted(sums))

    @on(r"Output: .*")
    def _all_ended(self, _: OutputLine, __: re.Match[str]) -> None:
        self.flush()
