"""cargo nextest: `Summary [   0.011s] 5 tests run: 4 passed, 1 failed, 1 skipped`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, counted, tally

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "exec failed": FAILED,
    "timed out": FAILED,
    "skipped": SKIPPED,
}
_BRACKETS = re.compile(r" \([^()]*\)")


class Nextest(RuleParser):
    """Counts from the summary; below it, the failures are listed once more."""

    runner = "cargo nextest"
    marks = ("Summary [",)

    @on(r"Starting \d+ tests? across .*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(
        r"(?P<retry>TRY \d+ )?(?:FAIL|TIMEOUT|TMT|ABORT|SIG[A-Z]+|XFAIL|LEAK-FAIL|FL\+LK|LKFAIL)"
        r"(?: \+ LEAK)? +\[ *[\d.]+s\](?: \( *\d+/\d+\))? +(?P<name>\S.*)"
    )
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        # A retry that failed may be followed by one that passed.
        if match["retry"] is None or self.held is not None:
            self.fail(line, match["name"])

    @on(r"std(?:out|err) ─+|running \d+ tests?|test .* \.\.\. FAILED|failures:|note: .*|─+")
    def _no_message(self, _: Line, __: re.Match[str]) -> None:
        """Frame the output of a test."""

    @on(r"test result: .*")
    def _quotes_libtest(self, line: Line, _: re.Match[str]) -> None:
        if self.held is not None:
            self.amend(line, self.held)

    @on(r"Summary \[ *[\d.]+s\] (?:\d+/)?\d+ tests? run: (?P<counts>.*)")
    def _summary(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(_BRACKETS.sub("", match["counts"]).split(","), _WORDS)
        if sums is not None:
            self.hold(line, counted(sums))
