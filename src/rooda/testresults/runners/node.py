"""node --test: the spec reporter, its TAP, and the dot reporter."""

import re
from collections import Counter

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number

_NEAR = 3  # the failures stand so many lines below the dots at most


class Node(RuleParser):
    """Counts from the list at the end; in dots, from the dots. A suite of tests is no test."""

    runner = "node --test"
    marks = ("cancelled ", "Failed tests:")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._summary: dict[str, int] = {}
        self._listing = self._in_dots = False
        self._name = ""
        self._dots: Counter[str] = Counter()
        self._dots_at = -1

    @on(r"TAP version 1[34]")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(
        r"(?P<sign>[ℹ#]) (?P<key>tests|suites|pass|fail|cancelled|skipped|todo) (?P<amount>\d{1,9})"
    )
    def _sums_up(self, line: Line, match: re.Match[str]) -> None:
        self.hush()
        if match["sign"] == "ℹ" and match["key"] == "tests":
            self.begin(line)
        summary = self._summary
        summary[match["key"]] = number(match["amount"])
        if match["key"] == "todo" and {"pass", "fail", "cancelled", "skipped"} <= summary.keys():
            failed, skipped = summary["fail"] + summary["cancelled"], summary["skipped"]
            self.hold(line, Counts(summary["pass"], failed, skipped + summary["todo"]))

    @on(r"not ok \d+ - (?P<name>.+)")
    def _tap_fails(self, line: Line, match: re.Match[str]) -> None:
        expected = " # TODO" in match["name"] or " # SKIP" in match["name"]
        another_stream = self.held is not None
        self._name = "" if expected or another_stream else match["name"]
        if self._name:
            self.fail(line, self._name)
            self.hush()

    @on(r"error: (?:\|-|'(?P<text>.*)')")
    def _tap_error(self, line: Line, match: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name, match["text"] or "")

    @on(r"code: .*|stack: .*|\.\.\.")
    def _tap_error_ends(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"type: 'suite'|failureType: 'subtestsFailed'")
    def _tap_suite(self, _: Line, __: re.Match[str]) -> None:
        if self._name:
            self.retract()
        self._name = ""

    @on(r"[.X]+")
    def _more_dots(self, line: Line, match: re.Match[str]) -> None:
        if line.number != self._dots_at + 1:
            self._dots = Counter()
        self._dots.update(match[0])
        self._dots_at = line.number

    @on(r"✖ failing tests:|Failed tests:")
    def _lists(self, line: Line, match: re.Match[str]) -> None:
        near = line.number - self._dots_at <= _NEAR
        if match[0] == "Failed tests:" and near and self._dots["X"]:
            dots = self._dots
            self.begin(line)
            self.hold(line, Counts(dots["."], dots["X"]))
            self._in_dots = True
        self._listing = self.held is not None

    @on(r"✖ (?P<name>.+?)(?: \([\d.]+ms\))?")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        if self._listing:
            self.fail(line, match["name"])

    @on(r"'\d+ subtests? failed'")
    def _suite(self, line: Line, _: re.Match[str]) -> None:
        self.retract()
        if self._in_dots and self.held is not None:
            self.amend(line, self.held + Counts(failed=-1))
