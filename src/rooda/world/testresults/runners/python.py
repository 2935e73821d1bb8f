"""Python: pytest, unittest and compatible runners, doctest."""

import re
from collections import Counter

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    EXPECTED,
    FAILED,
    MOST_DETAILS,
    OTHER,
    PASSED,
    SKIPPED,
    Counts,
    TestStatus,
    counted,
    number,
    tally,
)

# -- pytest ------------------------------------------------------------------------------------

_PYTEST_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "error": FAILED,
    "errors": FAILED,
    "skipped": SKIPPED,
    "xfailed": EXPECTED,
    "xpassed": EXPECTED,
    "deselected": OTHER,
    "warning": OTHER,
    "warnings": OTHER,
    "rerun": OTHER,
    "subtests passed": OTHER,
}
_PYTEST_DURATION = re.compile(r"\d+\.\d\ds(?: \((?:\d+ days?, )?\d+:\d\d:\d\d\))?|\d+\.\d+ seconds")
_PYTEST_PLACE = re.compile(r"\S+\.(?:py$|\w+::)")
_PYTEST_NARROWEST = 20  # the minimum width of a pytest progress line
_PYTEST_STATUSES = r"(?P<status>FAILED|ERROR|SUBFAIL(?:ED)?\S*(?: \([^()]*\))?)"


class Pytest(RuleParser):
    """pytest and pytest-sugar: `=== 1 failed, 2 passed in 0.12s ===`, with or without the bars.

    The counts are in the last line. `-qq` prints none, so the progress letters are counted.
    """

    runner = "pytest"
    marks = (*(f" {word}" for word in _PYTEST_WORDS), "no tests ran", "[100%]")

    def _reset(self) -> None:
        self._letters: Counter[str] = Counter()
        self._list_at = -1
        self._headings: dict[str, None] = {}
        self._sugar_at = -1
        self._in_sugar = False

    @on(r"=+ test session starts =+|Test session starts \(.*\)")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:(?P<file>\S+\.\w+) )?(?P<letters>[.FEsxXRu,-]+)(?P<gap> +)\[ *(?P<percent>\d{1,3})%\]")
    def _progress(self, line: OutputLine, match: re.Match[str]) -> None:
        if len(match["letters"] + match["gap"]) < _PYTEST_NARROWEST and not match["file"]:
            return  # not from pytest, which right-aligns the percentage
        self.ensure_begun(line)
        self._letters.update(match["letters"])
        if match["percent"] == "100":
            seen, self._letters = self._letters, Counter()
            failed, expected = seen["F"] + seen["E"], seen["x"] + seen["X"]
            self.hold(line, Counts(seen["."], failed, seen["s"], expected))

    @on(r"=+ (?:FAILURES|ERRORS) =+")
    def _tracebacks(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"_{2,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{2,}")
    def _heading(self, _: OutputLine, match: re.Match[str]) -> None:
        if len(self._headings) < MOST_DETAILS:
            self._headings[match["name"]] = None

    @on(r"=+ short test summary info =+")
    def _list(self, line: OutputLine, _: re.Match[str]) -> None:
        self._list_at = line.number

    @on(rf"(?:\[gw\d+\] \[ *\d+%\] )?{_PYTEST_STATUSES} (?P<name>\S.*)")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        name, message = _pytest_split(match["name"])
        if line.number == self._list_at + 1 or _PYTEST_PLACE.match(name):
            self._bad(line, match["status"], name, message)
            self._list_at = line.number

    @on(rf"(?P<name>\S+\.\w+::.+?) {_PYTEST_STATUSES}(?: +\[ *\d+%\])?")
    def _verbose(self, line: OutputLine, match: re.Match[str]) -> None:
        self._bad(line, match["status"], match["name"], "")

    @on(r"!+ (?P<what>KeyboardInterrupt|_pytest\.outcomes\.Exit: .*?) !+")
    def _interrupted(self, line: OutputLine, match: re.Match[str]) -> None:
        self.error(line, match["what"], "the run was interrupted")

    @on(r"=*+ ?(?P<counts>\d[^=]{1,200}|no tests ran) in (?P<duration>[^=]{2,40}?) ?=*+")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = [piece.strip() for piece in match["counts"].split(",")]
        # Plugins add their own counts.
        known = [piece for piece in pieces if piece.partition(" ")[2] in _PYTEST_WORDS]
        sums = tally(known, _PYTEST_WORDS)
        nothing = pieces == ["no tests ran"]
        # pytest omits zero counts, so another program printed a line such as `5 passed, 0 failed`.
        printed = not any(piece.startswith("0 ") for piece in known)
        if (
            sums
            and printed
            and (known or nothing)
            and _PYTEST_DURATION.fullmatch(match["duration"])
        ):
            self.drop_held()
            if sums[FAILED] and not self.failures:
                for name in self._headings:
                    self.fail(line, name)
            self.close(line, counted(sums))

    @on(r"Results \([\d.:]+s?\):")
    def _sugar(self, line: OutputLine, _: re.Match[str]) -> None:
        self._sugar_at = line.number
        self._in_sugar = False

    @on(r"\d{1,9} [a-z]+")
    def _sugar_count(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally([match[0]], _PYTEST_WORDS)
        if sums is None or line.number != self._sugar_at + 1:
            return
        self._sugar_at = line.number
        if self._in_sugar:
            self.amend(line, (self.held or Counts()) + counted(sums))
        else:
            self.drop_held()
            self.hold(line, counted(sums))
            self._in_sugar = True

    @on(r"- \S+:\d+ .*")
    def _sugar_name(self, line: OutputLine, _: re.Match[str]) -> None:
        if line.number == self._sugar_at + 1:
            self._sugar_at = line.number

    def _bad(self, line: OutputLine, status: str, name: str, message: str) -> None:
        (self.error if status == "ERROR" else self.fail)(line, name, message)
        self.end_message()


def _pytest_split(listed: str) -> tuple[str, str]:
    """Return a listed name and its message; a test parameter may contain the separator."""
    name, _, message = listed.partition(" - ")
    while message and name.count("[") > name.count("]"):
        more, _, message = message.partition(" - ")
        name = f"{name} - {more}"
    return name, message


# -- unittest ----------------------------------------------------------------------------------

_UNITTEST_WORDS = {
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
_UNITTEST_CASE = re.compile(r"(?P<test>\S+) \((?P<place>[\w.<>]+)\).*")
_UNITTEST_FIXTURES = (
    "setUpClass",
    "tearDownClass",
    "setUpModule",
    "tearDownModule",
    "_ErrorHolder",
)
_UNITTEST_NEAR = 3  # the maximum distance in lines from the count to the result


class Unittest(RuleParser):
    """unittest, Django, nose, nose2, green and trial: `Ran 3 tests in 0.001s`.

    The counts are in this line and in the result below it. The name of a failure is between ruled
    lines.
    """

    runner = "unittest"
    marks = ("Ran ",)

    def _reset(self) -> None:
        self._rule_at = self._ran_at = -_UNITTEST_NEAR - 1
        self._ran = 0
        self._headings = 0
        self._tests: set[str] = set()
        self._fixtures: set[str] = set()
        self._case: tuple[str, int] | None = None
        self._in_traceback = False

    @on(r"={50,}")
    def _double_rule(self, line: OutputLine, _: re.Match[str]) -> None:
        self._rule_at = line.number
        self._in_traceback = False

    @on(r"-{50,}")
    def _rule(self, _: OutputLine, __: re.Match[str]) -> None:
        self._in_traceback = self._case is not None

    @on(r"(?P<kind>FAIL|ERROR|UNEXPECTED SUCCESS): (?P<what>.+)")
    def _heading(self, line: OutputLine, match: re.Match[str]) -> None:
        if line.number != self._rule_at + 1:
            return
        case = _UNITTEST_CASE.fullmatch(match["what"])
        name = _unittest_dotted(case["test"], case["place"]) if case else match["what"]
        fixture = (case["test"] if case else name) in _UNITTEST_FIXTURES
        (self._fixtures if fixture else self._tests).add(name)
        self._headings += 1
        self._case = name, line.indent
        status = TestStatus.ERROR if match["kind"] == "ERROR" else TestStatus.FAILED
        self.fail(line, name, status=status)
        self.end_message()

    @on(r"Ran (\d{1,9}) tests? in \d.*")
    def _count(self, line: OutputLine, match: re.Match[str]) -> None:
        self._ran, self._ran_at = int(match[1]), line.number

    @on(r"(?:OK|FAILED|PASSED|NO TESTS RAN)(?: \((?P<counts>.*)\))?")
    def _verdict(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = (piece.partition("=")[::2] for piece in (match["counts"] or "").split(", "))
        sums = tally((f"{amount} {word}" for word, amount in pieces if amount), _UNITTEST_WORDS)
        if sums is None or not 0 < line.number - self._ran_at <= _UNITTEST_NEAR:
            return
        # A test with several failed subtests counts once. Fixtures are not part of the test count.
        outside = len(self._fixtures)
        again = self._headings - len(self._tests) - outside
        failed = max(0, sums[FAILED] - again - outside)
        counts = Counts.out_of(self._ran, failed, sums[SKIPPED], sums[EXPECTED])
        self.close(line, counts + Counts(failed=min(outside, sums[FAILED])))

    def unmatched(self, line: OutputLine) -> None:
        """Store the exception at the end of a traceback, the only line without indentation."""
        if self._in_traceback and self._case and line.text:
            name, indent = self._case
            if line.indent <= indent and not line.text.startswith("Traceback ("):
                self.fail(line, name, line.text)
                self._in_traceback = False


def _unittest_dotted(test: str, place: str) -> str:
    """Return the full name; up to Python 3.10 the place does not include the test."""
    return place if place.endswith(f".{test}") else f"{place}.{test}"


# -- pydoctest ---------------------------------------------------------------------------------


class PyDoctest(RuleParser):
    """`python -m doctest`: `***Test Failed*** 1 failures.`.

    Examples count. Without `-v`, only the examples of items with a failure are known.
    """

    runner = "python doctest"
    marks = ("***Test Failed***", "***Test passed", "Test passed.")

    def _reset(self) -> None:
        self._failed = self._total = 0
        self._sum: tuple[OutputLine, Counts] | None = None

    @on(r"File \"(?P<file>[^\"]+)\", line (?P<number>\d+), in (?P<name>\S+)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        name = f"{match['name']} ({match['file']}, line {match['number']})"
        self.fail(line, name)
        self.end_message()

    @on(r"(?P<failed>\d{1,9}) of +(?P<total>\d{1,9}) in \S+")
    def _item(self, _: OutputLine, match: re.Match[str]) -> None:
        self._failed += number(match["failed"])
        self._total += number(match["total"])

    @on(r"(?P<passed>\d{1,9}) passed(?: and (?P<failed>\d{1,9}) failed)?\.")
    def _verbose(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sum = line, Counts(number(match["passed"]), number(match["failed"] or ""))

    @on(r"\*\*\*Test Failed\*\*\* \d+ failures?\.?|Test passed\.")
    def _ends(self, line: OutputLine, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(line, self._sum[1])
        elif self._total:
            self.close(line, Counts.out_of(self._total, self._failed))
        self.forget()
