"""unittest and its relatives (Django, nose, nose2, green, trial): `Ran 3 tests in 0.001s`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import EXPECTED, FAILED, OTHER, SKIPPED, Counts, tally
from rooda.testresults.types import TestStatus

_WORDS = {
    "failures": FAILED,
    "errors": FAILED,
    "unexpected successes": FAILED,
    "unexpected_successes": FAILED,
    "skipped": SKIPPED,
    "skips": SKIPPED,
    "SKIP": SKIPPED,
    "expected failures": EXPECTED,
    "expected_failures": EXPECTED,
    "passes": OTHER,
    "successes": OTHER,
}
_CASE = re.compile(r"(?P<test>\S+) \((?P<place>[\w.<>]+)\).*")
_FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule", "_ErrorHolder")
_NEAR = 3  # the verdict stands so many lines below the count at most


class Unittest(RuleParser):
    """Counts from `Ran 3 tests` and the verdict below; a failure is named between two rules."""

    runner = "unittest"
    marks = ("Ran ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._rule_at = self._ran_at = -_NEAR - 1
        self._ran = 0
        self._headings = 0
        self._tests: set[str] = set()
        self._fixtures: set[str] = set()
        self._case: tuple[str, int] | None = None
        self._in_traceback = False

    @on(r"={50,}")
    def _double_rule(self, line: Line, _: re.Match[str]) -> None:
        self._rule_at = line.number
        self._in_traceback = False

    @on(r"-{50,}")
    def _rule(self, _: Line, __: re.Match[str]) -> None:
        self._in_traceback = self._case is not None

    @on(r"(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<what>.+)")
    def _heading(self, line: Line, match: re.Match[str]) -> None:
        if line.number != self._rule_at + 1:
            return
        case = _CASE.fullmatch(match["what"])
        name = _dotted(case["test"], case["place"]) if case else match["what"]
        fixture = (case["test"] if case else name) in _FIXTURES
        (self._fixtures if fixture else self._tests).add(name)
        self._headings += 1
        self._case = name, line.indent
        status = TestStatus.ERROR if match["kind"] == "ERROR" else TestStatus.FAILED
        self.fail(line, name, status=status)
        self.hush()

    @on(r"Ran (\d{1,9}) tests? in \d.*")
    def _count(self, line: Line, match: re.Match[str]) -> None:
        self._ran, self._ran_at = int(match[1]), line.number

    @on(r"(?:OK|FAILED|PASSED|NO TESTS RAN)(?: \((?P<counts>.*)\))?")
    def _verdict(self, line: Line, match: re.Match[str]) -> None:
        pieces = (piece.partition("=")[::2] for piece in (match["counts"] or "").split(", "))
        sums = tally((f"{amount} {word}" for word, amount in pieces if amount), _WORDS)
        if sums is None or not 0 < line.number - self._ran_at <= _NEAR:
            return
        # A test fails once, however many of its subtests do; fixtures aren't among those run.
        outside = len(self._fixtures)
        again = self._headings - len(self._tests) - outside
        failed = max(0, sums[FAILED] - again - outside)
        counts = Counts.out_of(self._ran, failed, sums[SKIPPED], sums[EXPECTED])
        self.close(line, counts + Counts(failed=min(outside, sums[FAILED])))

    def other(self, line: Line) -> None:
        """Find the exception below a traceback, which alone isn't indented."""
        if self._in_traceback and self._case and line.text:
            name, indent = self._case
            if line.indent <= indent and not line.text.startswith("Traceback ("):
                self.fail(line, name, line.text)
                self._in_traceback = False


def _dotted(test: str, place: str) -> str:
    """The full name; up to Python 3.10 the place lacks the test."""
    return place if place.endswith(f".{test}") else f"{place}.{test}"
