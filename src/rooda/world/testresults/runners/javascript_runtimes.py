"""The test runners of JavaScript runtimes: node, bun, deno."""

import re
from collections import Counter

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    Counts,
    counted,
    number,
    tally,
)

# -- node --------------------------------------------------------------------------------------

_NODE_NEAR = 3  # the maximum distance in lines from the dots to the failures


class Node(RuleParser):
    """`node --test`: the spec reporter, its TAP, and the dot reporter.

    The counts are in the final list; for the dot reporter, the dots are counted. A suite is not
    counted as a test.
    """

    runner = "node --test"
    marks = ("cancelled ", "Failed tests:")

    def _reset(self) -> None:
        self._summary: dict[str, int] = {}
        self._listing = self._in_dots = False
        self._name = ""
        self._dots: Counter[str] = Counter()
        self._dots_at = -1

    @on(r"TAP version 1[34]")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(
        r"(?P<sign>[ℹ#]) (?P<key>tests|suites|pass|fail|cancelled|skipped|todo) (?P<amount>\d{1,9})"
    )
    def _sums_up(self, line: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        if match["sign"] == "ℹ" and match["key"] == "tests":
            self.begin(line)
        summary = self._summary
        summary[match["key"]] = number(match["amount"])
        if match["key"] == "todo" and {"pass", "fail", "cancelled", "skipped"} <= summary.keys():
            failed, skipped = summary["fail"] + summary["cancelled"], summary["skipped"]
            self.hold(line, Counts(summary["pass"], failed, skipped + summary["todo"]))

    @on(r"not ok \d+ - (?P<name>.+)")
    def _tap_fails(self, line: OutputLine, match: re.Match[str]) -> None:
        expected = " # TODO" in match["name"] or " # SKIP" in match["name"]
        another_stream = self.held is not None
        self._name = "" if expected or another_stream else match["name"]
        if self._name:
            self.fail(line, self._name)
            self.end_message()

    @on(r"error: (?:\|-|'(?P<text>.*)')")
    def _tap_error(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name, match["text"] or "")

    @on(r"code: .*|stack: .*|\.\.\.")
    def _tap_error_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"type: 'suite'|failureType: 'subtestsFailed'")
    def _tap_suite(self, _: OutputLine, __: re.Match[str]) -> None:
        if self._name:
            self.retract_failure()
        self._name = ""

    @on(r"[.X]+")
    def _more_dots(self, line: OutputLine, match: re.Match[str]) -> None:
        if line.number != self._dots_at + 1:
            self._dots = Counter()
        self._dots.update(match[0])
        self._dots_at = line.number

    @on(r"✖ failing tests:|Failed tests:")
    def _lists(self, line: OutputLine, match: re.Match[str]) -> None:
        near = line.number - self._dots_at <= _NODE_NEAR
        if match[0] == "Failed tests:" and near and self._dots["X"]:
            dots = self._dots
            self.begin(line)
            self.hold(line, Counts(dots["."], dots["X"]))
            self._in_dots = True
        self._listing = self.held is not None

    @on(r"✖ (?P<name>.+?)(?: \([\d.]+ms\))?")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._listing:
            self.fail(line, match["name"])

    @on(r"'\d+ subtests? failed'")
    def _suite(self, line: OutputLine, _: re.Match[str]) -> None:
        self.retract_failure()
        if self._in_dots and self.held is not None:
            self.amend(line, self.held + Counts(failed=-1))


# -- bun ---------------------------------------------------------------------------------------

_BUN_WORDS = {
    "pass": PASSED,
    "fail": FAILED,
    "skip": SKIPPED,
    "todo": SKIPPED,
    "filtered out": OTHER,
    "error": OTHER,
    "errors": OTHER,
}


class Bun(RuleParser):
    """`bun test`: `2 pass`, `1 skip`, `2 fail`, then `Ran 5 tests across 1 file.`.

    The counts are in the lines above the last line.
    """

    runner = "bun test"
    marks = ("Ran ", "No tests found!", "error: 0 test files matching")

    def _reset(self) -> None:
        self._counts: list[str] = []

    @on(r"bun test v.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:\(fail\)|✗) (?P<name>.+?)(?: \[[\d.]+m?s\])?")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.end_message()

    @on(r"\d{1,9} (?:pass|fail|skip|todo|filtered out)")
    def _counted(self, _: OutputLine, match: re.Match[str]) -> None:
        self._counts.append(match[0])

    @on(r"\d{1,9} errors?")
    def _outside(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._counts:
            self.error(line, "outside of the tests", match[0])

    @on(r"Ran \d+ tests? across \d+ files?\..*")
    def _ends(self, line: OutputLine, _: re.Match[str]) -> None:
        sums = tally(self._counts, _BUN_WORDS)
        if self._counts and sums is not None:
            self.close(line, counted(sums))
        self._counts = []

    @on(r"No tests found!|error: 0 test files matching .*")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        if self.is_running:
            self.close(line, Counts())


# -- deno --------------------------------------------------------------------------------------

_DENO_WORDS = {
    "passed": PASSED,
    "measured": PASSED,
    "failed": FAILED,
    "ignored": SKIPPED,
    "filtered out": OTHER,
}


class Deno(RuleParser):
    """`deno test`: `FAILED | 2 passed (2 steps) | 1 failed | 1 ignored (85ms)`.

    Tests count, not their steps.
    """

    runner = "deno test"
    marks = ("ok | ", "FAILED | ", "error: No test modules found")

    @on(r"running \d+ tests? from .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"(?P<name>\S.*) => \S+:\d+:\d+")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"FAILURES|ERRORS")
    def _no_message(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"(?:ok|FAILED) \| (?P<counts>\d+ passed .* failed\b.*)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|"), _DENO_WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"error: No test modules found")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())
