"""AVA: a rule, then `2 tests passed`, or `1 test failed` and what else there was."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import EXPECTED, FAILED, PASSED, SKIPPED, Counts, number

_WORDS = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED, "todo": SKIPPED}


class Ava(RuleParser):
    """When a test fails, those that passed aren't counted: each has a tick of its own."""

    runner = "ava"
    marks = ("─",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._ticks = 0
        self._ruled = False

    @on(r"✔ (?P<expected>\[expected fail\] )?.*")
    def _ticked(self, _: Line, match: re.Match[str]) -> None:
        self._goes_on()
        self._ticks += match["expected"] is None

    @on(r"✘ \[fail\]: (?P<name>.+?)(?: \([\d.]+m?s\))?")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self._goes_on()
        self.fail(line, match["name"])
        self.hush()

    @on(r"─")
    def _rule(self, _: Line, __: re.Match[str]) -> None:
        self.hush()
        self._ruled = True

    @on(r"(?P<amount>\d{1,9}) (?:tests? (?P<word>passed|failed|skipped|todo)|known failures?)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        if not self._ruled:
            return
        if self.held is None:
            self.hold(line, Counts(passed=0 if match["word"] == PASSED else self._ticks))
        field = _WORDS.get(match["word"], EXPECTED)
        self.amend(line, (self.held or Counts()) + Counts(**{field: number(match["amount"])}))

    @on(r"\d+ (?:uncaught exception|unhandled rejection|uncaught error)s?")
    def _outside(self, line: Line, match: re.Match[str]) -> None:
        if self._ruled and self.held is None:
            self.hold(line, Counts(passed=self._ticks))
        if self.held is not None:
            self.error(line, "outside of the tests", match[0])

    def other(self, line: Line) -> None:
        """Take what stands below a failed test's name for its message."""
        if self._ruled and line.text in self._failures:
            self.fail(line, line.text)
        else:
            super().other(line)

    def _goes_on(self) -> None:
        if self._ruled:
            self.flush()
