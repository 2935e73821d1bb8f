"""Rust: `cargo test` and `cargo nextest`."""

import re
from collections import Counter

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import FAILED, OTHER, PASSED, SKIPPED, Counts, counted, tally

# -- cargo -------------------------------------------------------------------------------------

_CARGO_WORDS = {
    "passed": PASSED,
    "measured": PASSED,
    "failed": FAILED,
    "ignored": SKIPPED,
    "filtered out": OTHER,
}


class Cargo(RuleParser):
    """`cargo test` (libtest): `test result: ok. 2 passed; 0 failed; 1 ignored` for each binary.

    The binaries of one `cargo test` add up.
    """

    runner = "cargo test"
    marks = ("test result: ", "process didn't exit successfully: ")

    def _reset(self) -> None:
        self._binary = ""
        self._ends: Counter[str] = Counter()

    @on(r"Finished .* target\(s\) in .*")
    def _built(self, _: OutputLine, __: re.Match[str]) -> None:
        self.next_run()

    @on(r"(?:Running (?:unittests )?\S+ \((?P<path>.+)\)|Doc-tests (?P<crate>\S+))")
    def _starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.begin(line)
        self._binary = match["path"] or f"doc-tests of {match['crate']}"

    @on(r"test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<end>ok|FAILED|ignored)(?:,? .*)?")
    def _test_ended(self, line: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._ends[match["end"]] += 1
        if match["end"] == "FAILED":
            self.fail(line, match["name"])
            self.end_message()

    @on(r"(?P<name>\S.*?)(?: - should panic)? --- FAILED")
    def _failed_tersely(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.end_message()

    @on(r"---- (?P<name>.+) std(?:out|err) ----")
    def _output(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"running \d+ tests?")
    def _running(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()
        self._ends.clear()

    @on(r"note: .*|stack backtrace:|failures:|test .* \.\.\. .*")
    def _no_message(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"process didn't exit successfully: .* \((?P<signal>signal: .*)\)")
    def _crashed(self, line: OutputLine, match: re.Match[str]) -> None:
        """Count the tests before the crash and the crash as a failure, as no result follows."""
        binary, ends = self._binary or "test binary", self._ends
        self.error(line, binary, match["signal"])
        counts = Counts(ends["ok"], ends["FAILED"] + 1, ends["ignored"])
        self.close(line, counts, part=binary)

    @on(r"test result: (?:ok|FAILED)\. (?P<counts>.*)")
    def _result(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = [piece for piece in match["counts"].split(";") if "finished in" not in piece]
        sums = tally(pieces, _CARGO_WORDS)
        if sums is not None:
            self.close(line, counted(sums), part=self._binary or f"line {line.number}")


# -- nextest -----------------------------------------------------------------------------------

_NEXTEST_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "exec failed": FAILED,
    "timed out": FAILED,
    "skipped": SKIPPED,
}
_NEXTEST_BRACKETS = re.compile(r" \([^()]*\)")


class Nextest(RuleParser):
    """`cargo nextest`: `Summary [   0.011s] 5 tests run: 4 passed, 1 failed, 1 skipped`.

    The counts are in the summary. The failures listed below it repeat those above.
    """

    runner = "cargo nextest"
    marks = ("Summary [",)

    @on(r"Starting \d+ tests? across .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(
        r"(?P<retry>TRY \d+ )?(?:FAIL|TIMEOUT|TMT|ABORT|SIG[A-Z]+|XFAIL|LEAK-FAIL|FL\+LK|LKFAIL)"
        r"(?: \+ LEAK)? +\[ *[\d.]+s\](?: \( *\d+/\d+\))? +(?P<name>\S.*)"
    )
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        # A later attempt may pass.
        if match["retry"] is None or self.held is not None:
            self.fail(line, match["name"])

    @on(r"std(?:out|err) ─+|running \d+ tests?|test .* \.\.\. FAILED|failures:|note: .*|─+")
    def _no_message(self, _: OutputLine, __: re.Match[str]) -> None:
        """Ignore a line that frames the output of a test."""

    @on(r"test result: .*")
    def _quotes_libtest(self, line: OutputLine, _: re.Match[str]) -> None:
        if self.held is not None:
            self.amend(line, self.held)

    @on(r"Summary \[ *[\d.]+s\] (?:\d+/)?\d+ tests? run: (?P<counts>.*)")
    def _summary(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(_NEXTEST_BRACKETS.sub("", match["counts"]).split(","), _NEXTEST_WORDS)
        if sums is not None:
            self.hold(line, counted(sums))
