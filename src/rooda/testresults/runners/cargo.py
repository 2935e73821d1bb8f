"""cargo test (libtest): a `test result: ok. 2 passed; 0 failed; 1 ignored` for each binary."""

import re
from collections import Counter

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, OTHER, PASSED, SKIPPED, Counts, counted, tally

_WORDS = {
    "passed": PASSED,
    "measured": PASSED,
    "failed": FAILED,
    "ignored": SKIPPED,
    "filtered out": OTHER,
}


class Cargo(RuleParser):
    """Adds up the binaries of one `cargo test`."""

    runner = "cargo test"
    marks = ("test result: ", "process didn't exit successfully: ")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._binary = ""
        self._ends: Counter[str] = Counter()

    @on(r"Finished .* target\(s\) in .*")
    def _built(self, _: Line, __: re.Match[str]) -> None:
        self.next_run()

    @on(r"(?:Running (?:unittests )?\S+ \((?P<path>.+)\)|Doc-tests (?P<crate>\S+))")
    def _starts(self, line: Line, match: re.Match[str]) -> None:
        self.begin(line)
        self._binary = match["path"] or f"doc-tests of {match['crate']}"

    @on(r"test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<end>ok|FAILED|ignored)(?:,? .*)?")
    def _test_ended(self, line: Line, match: re.Match[str]) -> None:
        self.hush()
        self._ends[match["end"]] += 1
        if match["end"] == "FAILED":
            self.fail(line, match["name"])
            self.hush()

    @on(r"(?P<name>\S.*?)(?: - should panic)? --- FAILED")
    def _failed_tersely(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.hush()

    @on(r"---- (?P<name>.+) std(?:out|err) ----")
    def _output(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"running \d+ tests?")
    def _running(self, _: Line, __: re.Match[str]) -> None:
        self.hush()
        self._ends.clear()

    @on(r"note: .*|stack backtrace:|failures:|test .* \.\.\. .*")
    def _no_message(self, _: Line, __: re.Match[str]) -> None:
        self.hush()

    @on(r"process didn't exit successfully: .* \((?P<signal>signal: .*)\)")
    def _crashed(self, line: Line, match: re.Match[str]) -> None:
        """Count the tests up to the crash, and the crash itself: there is no result."""
        binary, ends = self._binary or "test binary", self._ends
        self.error(line, binary, match["signal"])
        counts = Counts(ends["ok"], ends["FAILED"] + 1, ends["ignored"])
        self.close(line, counts, part=binary)

    @on(r"test result: (?:ok|FAILED)\. (?P<counts>.*)")
    def _result(self, line: Line, match: re.Match[str]) -> None:
        pieces = [piece for piece in match["counts"].split(";") if "finished in" not in piece]
        sums = tally(pieces, _WORDS)
        if sums is not None:
            self.close(line, counted(sums), part=self._binary or f"line {line.number}")
