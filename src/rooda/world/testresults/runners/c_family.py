"""C and C++: GoogleTest, Catch2, doctest, Boost.Test, CTest, Meson and automake."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    EXPECTED,
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    Counts,
    TestStatus,
    counted,
    number,
    tally,
)

# -- gtest -------------------------------------------------------------------------------------

_GTEST_MOST_LINES = 8  # lines of a message


class GoogleTest(RuleParser):
    """GoogleTest: `[==========] 8 tests from 3 test suites ran.` and the lines after it.

    A test that ran, neither passed nor skipped, has failed. Disabled tests count as skipped.
    """

    runner = "googletest"
    marks = (" ran.", "[  PASSED  ]")

    def _reset(self) -> None:
        self._sums: dict[str, int] = {}
        self._output: list[str] = []

    @on(r"\[=+\] Running \d+ tests? from .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\[ RUN      \] .*|\[       OK \] .*")
    def _runs(self, _: OutputLine, __: re.Match[str]) -> None:
        self._output = []

    @on(r"\[  FAILED  \] (?P<name>[^\s,]+)(?:, where .*?)?(?: \(\d+ ms\))?")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], "\n".join(self._output))
        self.end_message()
        self._output = []

    @on(r"\[=+\] (?P<amount>\d{1,9}) tests? from \d+ test (?:suites?|cases?) (?P<what>ran)\..*")
    def _ran(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sums = {}
        self.hold(line, Counts())
        self._sum_up(line, match)

    @on(r"\[  (?P<what>PASSED|SKIPPED|FAILED) +\] (?P<amount>\d{1,9}) tests?[.,].*")
    def _some(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is None:
            self.hold(line, Counts())
        self._sum_up(line, match)

    @on(r"YOU HAVE (?P<amount>\d{1,9}) (?P<what>DISABLED) TESTS?")
    def _disabled(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is not None:
            self._sum_up(line, match)

    def unmatched(self, line: OutputLine) -> None:
        """Store the output of a test, because its result is printed later."""
        if line.text and len(self._output) < _GTEST_MOST_LINES:
            self._output.append(line.text)

    def _sum_up(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sums[match["what"]] = number(match["amount"])
        passed, skipped = self._sums.get("PASSED", 0), self._sums.get("SKIPPED", 0)
        # The brief output does not print the number of failures.
        failed = self._sums.get("FAILED", self._sums.get("ran", 0) - passed - skipped)
        disabled = self._sums.get("DISABLED", 0)
        self.amend(line, Counts(passed, max(0, failed), skipped + disabled))


# -- catch2 ------------------------------------------------------------------------------------

_CATCH2_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "failed as expected": EXPECTED,
}


class Catch2(RuleParser):
    """Catch2: `test cases: 5 | 1 passed | 3 failed`, `All tests passed (3 assertions in 2 ...)`.

    Test cases count, not assertions. The name of a failed case is between two ruled lines.
    """

    runner = "catch2"
    marks = ("test case", "No tests ran")

    def _reset(self) -> None:
        self._rule_at = self._double_rule_at = -1
        self._name = ""

    @on(r"\S+ is a Catch2? v\S+ host application\.")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"-{79}")
    def _rule(self, line: OutputLine, _: re.Match[str]) -> None:
        self._rule_at = line.number
        self.end_message()

    @on(r"\S.*: FAILED:")
    def _fails(self, line: OutputLine, _: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name)

    @on(r"test cases: +\d+ \| (?P<counts>.*)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|"), _CATCH2_WORDS)
        if sums is not None:
            self.close(line, counted(sums))

    @on(r"All tests passed \(.* in (?P<passed>\d{1,9}) test cases?\)")
    def _all_passed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.close(line, Counts(passed=number(match["passed"])))

    @on(
        r"(?P<verdict>Passed|Failed)(?: all| both)? (?P<amount>\d{1,9}) test cases?"
        r"(?: with \d+ assertions?|, failed (?:all |both )?\d+ assertions?| \(no assertions\))\.?"
    )
    def _compact(self, line: OutputLine, match: re.Match[str]) -> None:
        field = "passed" if match["verdict"] == "Passed" else "failed"
        self.close(line, Counts(**{field: number(match["amount"])}))

    @on(r"={79}")
    def _double_rule(self, line: OutputLine, _: re.Match[str]) -> None:
        self._double_rule_at = line.number

    @on(r"No tests ran")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        if line.number == self._double_rule_at + 1:
            self.close(line, Counts())

    def unmatched(self, line: OutputLine) -> None:
        """Store the line below a ruled line as the name of a case."""
        if line.number == self._rule_at + 1:
            self._name = line.text
        else:
            super().unmatched(line)


# -- doctest -----------------------------------------------------------------------------------

_DOCTEST_WORDS = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}


class Doctest(RuleParser):
    """doctest for C++: `[doctest] test cases: 3 | 1 passed | 1 failed | 1 skipped`.

    Test cases count, not assertions.
    """

    runner = "doctest"
    marks = ("[doctest] test cases:",)

    def _reset(self) -> None:
        self._name = ""

    @on(r"\[doctest\] doctest version is .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"TEST CASE: +(?P<name>.+)")
    def _named(self, _: OutputLine, match: re.Match[str]) -> None:
        self._name = match["name"]

    @on(r"\S.*: (?:FATAL )?ERROR: (?P<message>.*)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._name:
            self.fail(line, self._name, match["message"])

    @on(r"\[doctest\] test cases: +\d+ \| (?P<counts>.*)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].rstrip("| ").split("|"), _DOCTEST_WORDS)
        if sums is not None:
            self.close(line, counted(sums))


# -- boost -------------------------------------------------------------------------------------


class Boost(RuleParser):
    """Boost.Test: `Running 2 test cases...`, then `*** 1 failure is detected in the test module`.

    The summary counts failed assertions, so this parser counts the cases with an error.
    """

    runner = "boost.test"
    marks = ("*** No errors detected", "detected in the test module", "Test module ")

    def _reset(self) -> None:
        self._running = 0

    @on(r"Running (?P<amount>\d{1,9}) test cases?\.\.\.")
    def _starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.begin(line)
        self._running = number(match["amount"])

    @on(r".*?: (?:fatal )?error: in \"(?P<name>[^\"]+)\": (?P<message>.*)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"\*\*\* (?:\d+ failures? (?:is|are) detected.*|No errors detected)")
    def _verdict(self, line: OutputLine, match: re.Match[str]) -> None:
        failed = 0 if match[0].endswith("No errors detected") else max(1, self.failures)
        self.close(line, Counts.out_of(max(self._running, 1), failed))

    @on(r"Test module \".*\" (?:has|was) .*with:")
    def _report(self, line: OutputLine, _: re.Match[str]) -> None:
        self.hold(line, Counts())

    @on(r"(?P<amount>\d{1,9}) test cases? out of \d+ (?P<field>passed|failed|skipped)")
    def _reported(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is not None:
            self.amend(line, self.held + Counts(**{match["field"]: number(match["amount"])}))

    @on(r"Test (?:suite|case) \".*\" .*")
    def _report_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.flush()


# -- ctest -------------------------------------------------------------------------------------


class CTest(RuleParser):
    """CTest: `43% tests passed, 4 tests failed out of 7`, and below it the tests that did not run.

    The summary counts skipped tests as passed and omits disabled tests. The list below it names
    both; if it is missing, the line of each test does.
    """

    runner = "ctest"
    marks = ("tests passed, ", "No tests were found!!!")

    def _reset(self) -> None:
        self._unrun: set[str] = set()
        self._disabled = self._total = self._failed = 0

    @on(r"Test project .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"Start +\d+: .*")
    def _starts_test(self, line: OutputLine, _: re.Match[str]) -> None:
        if self.held is not None:
            self.flush()
        self.ensure_begun(line)

    @on(
        r"(?:\d+/\d+ )?Test +#\d+: (?P<name>.+?) \.+\*{3}"
        r"(?:Not Run \()?(?P<status>Skipped|Disabled).*"
    )
    def _unrun_test(self, line: OutputLine, match: re.Match[str]) -> None:
        self._note_unrun(line, match["name"], match["status"])

    @on(r"\d+ - (?P<name>.+) \((?P<status>[^()]+)\).*")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is None:
            return
        if match["status"] in {"Skipped", "Disabled"}:
            self._note_unrun(line, match["name"], match["status"])
        else:
            self.fail(line, match["name"], match["status"])

    @on(r"\d+% tests passed, (?P<failed>\d{1,9}) tests? failed out of (?P<total>\d{1,9})")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        self._total, self._failed = number(match["total"]), number(match["failed"])
        self.hold(line, self._sums())

    @on(r"No tests were found!!!")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def _note_unrun(self, line: OutputLine, name: str, status: str) -> None:
        if name not in self._unrun:
            self._unrun.add(name)
            self._disabled += status == "Disabled"
        if self.held is not None:
            self.amend(line, self._sums())

    def _sums(self) -> Counts:
        return Counts.out_of(self._total + self._disabled, self._failed, len(self._unrun))


# -- meson -------------------------------------------------------------------------------------

_MESON_WORDS = {
    "Ok": PASSED,
    "Expected Fail": EXPECTED,
    "Fail": FAILED,
    "Unexpected Pass": FAILED,
    "Skipped": SKIPPED,
    "Ignored": OTHER,
    "Timeout": FAILED,
}


class Meson(RuleParser):
    """`meson test`: a list of counts, from `Ok: 2` to `Timeout: 1`.

    Newer versions omit zero counts, except for `Ok`, which comes first.
    """

    runner = "meson"
    marks = ("Ok:  ",)

    @on(r"1/\d+ .*? (?:OK|SKIP|EXPECTEDFAIL) +[\d.]+ ?s.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\d+/\d+ (?P<name>\S.*) (?:FAIL|ERROR|TIMEOUT|UNEXPECTEDPASS|INTERRUPT) +[\d.]+ ?s.*")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is None:
            self.fail(line, match["name"].rstrip())
            self.end_message()

    @on(r"(?P<what>[A-Z][A-Za-z ]{1,20}): {2,}(?P<amount>\d{1,9})")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally([f"{match['amount']} {match['what']}"], _MESON_WORDS)
        if sums is None:
            return
        if match["what"] == "Ok":
            self.hold(line, counted(sums))
        elif self.held is not None:
            self.amend(line, self.held + counted(sums))


# -- automake ----------------------------------------------------------------------------------


class Automake(RuleParser):
    """`make check` of automake: a list of counts for each folder, `# TOTAL: 6` to `# ERROR: 1`.

    The folders of one command add up. An unexpected pass fails the run, so it counts as failed.
    """

    runner = "automake"
    marks = ("# TOTAL:",)

    def __init__(self) -> None:
        super().__init__()
        self._folder: str | None = None

    def _reset(self) -> None:
        self._sums: dict[str, int] = {}

    @on(r"(?:make(?:\[\d+\])?: Entering directory|Making check in) (?P<folder>\S.*)")
    def _starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.begin(line)
        self._folder = match["folder"]

    @on(r"(?P<status>FAIL|ERROR|XPASS): (?P<name>\S.*)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        errs = match["status"] == "ERROR"
        self.fail(line, match["name"], status=TestStatus.ERROR if errs else TestStatus.FAILED)
        self.end_message()

    @on(r"# (?P<key>TOTAL|PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): +(?P<amount>\d{1,9})")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sums[match["key"]] = number(match["amount"])
        if match["key"] == "ERROR" and "TOTAL" in self._sums:
            get = self._sums.get
            failed = get("FAIL", 0) + get("XPASS", 0) + get("ERROR", 0)
            skipped, expected = get("SKIP", 0), get("XFAIL", 0)
            counts = Counts.out_of(get("TOTAL", 0), failed, skipped, expected)
            self.close(line, counts, part=self._folder)
