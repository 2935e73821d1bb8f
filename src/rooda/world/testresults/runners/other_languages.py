"""Languages with one small parser each: Dart, Elixir (ExUnit), Solidity (forge)."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.suites import (
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    counted,
    number,
    tally,
)

# -- dart --------------------------------------------------------------------------------------


class Dart(RuleParser):
    """`dart test` and `flutter test`: `00:02 +5 ~1 -2: Some tests failed.`.

    Every line has the counts so far; the last one has the result.
    """

    runner = "dart test"
    marks = (": All tests passed!", ": Some tests failed.", ": All tests skipped.", "No tests ran.")

    @on(
        r"\d\d:\d\d(?: \+(?P<passed>\d{1,9}))?(?: ~(?P<skipped>\d{1,9}))?"
        r"(?: -(?P<failed>\d{1,9}))?: (?P<what>\S.*)"
    )
    def _progress(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self.end_message()
        what = match["what"]
        if what.endswith(" [E]"):
            self.fail(line, what.removesuffix(" [E]"))
        elif f": {what}" in self.marks:
            sums = (number(match[key] or "") for key in ("passed", "failed", "skipped"))
            self.close(line, Counts(*sums))

    @on(r"No tests ran\.")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        if self.is_running:
            self.close(line, Counts())


# -- exunit ------------------------------------------------------------------------------------

_EXUNIT_WORDS = {
    "doctest": TOTAL,
    "doctests": TOTAL,
    "property": TOTAL,
    "properties": TOTAL,
    "test": TOTAL,
    "tests": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "invalid": FAILED,
    "skipped": SKIPPED,
    "excluded": OTHER,
}


class ExUnit(RuleParser):
    """`mix test`: `6 tests, 2 failures, 1 excluded, 1 skipped`.

    The counts are below `Finished in`. The printed total includes excluded tests, which never ran.
    """

    runner = "ExUnit"
    marks = (" failure",)

    def _reset(self) -> None:
        self._finished_at = -1

    @on(r"\d{1,9}\) (?P<kind>test|doctest|property) (?P<name>.+ \([\w.]+\))")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, f"{match['kind']} {match['name']}")

    @on(r"Finished in [\d.]+ seconds.*")
    def _finished(self, line: OutputLine, _: re.Match[str]) -> None:
        self._finished_at = line.number

    @on(r"\d+ (?:doctest|propert|test).*, \d+ failures?.*")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _EXUNIT_WORDS)
        if sums is not None and line.number == self._finished_at + 1:
            ran = sums[TOTAL] - sums[OTHER]
            self.close(line, Counts.out_of(ran, sums[FAILED], sums[SKIPPED]))


# -- forge -------------------------------------------------------------------------------------

_FORGE_WORDS = {
    "passed": PASSED,
    "test passed": PASSED,
    "tests passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
}


class Forge(RuleParser):
    """`forge test`: `Ran 2 test suites in 1.64s (...): 3 tests passed, 0 failed, ...`.

    forge prints the counts of each Solidity contract, then their sum. Older versions print no sum.
    """

    runner = "forge test"
    marks = (" result: ", " total tests)")

    @on(r"(?:Ran|Running) \d+ tests? for \S+")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"\[FAIL(?:[:.] ?(?P<message>.*?))?\] (?P<name>\w+\(.*?\)).*")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "")
        self.end_message()

    @on(r"(?:Suite|Test) result: (?:ok|FAILED)\. (?P<counts>\d+ passed; \d+ failed; .*)")
    def _contract(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = [piece for piece in match["counts"].split(";") if "finished in" not in piece]
        sums = tally(pieces, _FORGE_WORDS)
        if sums is not None and self.is_running:
            self.hold_or_amend(line, (self.held or Counts()) + counted(sums))

    @on(r"Ran \d+ test suites?.*: (?P<counts>\d+ tests? passed, .*) \(\d+ total tests?\)")
    def _all(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _FORGE_WORDS)
        if sums is not None:
            self.drop_held()
            self.close(line, counted(sums))
