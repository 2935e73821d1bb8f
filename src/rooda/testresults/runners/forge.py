"""forge test (Solidity): `Ran 2 test suites in 1.64s (...): 3 tests passed, 0 failed, ...`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, Counts, counted, tally

_WORDS = {
    "passed": PASSED,
    "test passed": PASSED,
    "tests passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
}


class Forge(RuleParser):
    """Each contract is summed up, and then all of them; older versions leave the latter out."""

    runner = "forge test"
    marks = (" result: ", " total tests)")

    @on(r"(?:Ran|Running) \d+ tests? for \S+")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"\[FAIL(?:[:.] ?(?P<message>.*?))?\] (?P<name>\w+\(.*?\)).*")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "")
        self.hush()

    @on(r"(?:Suite|Test) result: (?:ok|FAILED)\. (?P<counts>\d+ passed; \d+ failed; .*)")
    def _contract(self, line: Line, match: re.Match[str]) -> None:
        pieces = [piece for piece in match["counts"].split(";") if "finished in" not in piece]
        sums = tally(pieces, _WORDS)
        if sums is not None and self.is_running:
            self.revise(line, (self.held or Counts()) + counted(sums))

    @on(r"Ran \d+ test suites?.*: (?P<counts>\d+ tests? passed, .*) \(\d+ total tests?\)")
    def _all(self, line: Line, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _WORDS)
        if sums is not None:
            self.release()
            self.close(line, counted(sums))
