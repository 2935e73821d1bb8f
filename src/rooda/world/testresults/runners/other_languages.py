"""Languages with one small parser each: Dart, Elixir (ExUnit), Solidity (forge)."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    TestStatus,
    counted,
    number,
    rest_passed,
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


# C# and F#: `dotnet test` in its various output formats.


_WORDS = {
    "total": TOTAL,
    "total tests": TOTAL,
    "passed": PASSED,
    "succeeded": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "inconclusive": SKIPPED,
}


class DotNet(RuleParser):
    """`dotnet test`: `Failed!  - Failed:     1, Passed:     2, Skipped: ...`, and other formats.

    The projects of one command add up; newer versions print one summary for all projects.
    """

    runner = "dotnet test"
    marks = ("Passed:", "succeeded:")

    def _reset(self) -> None:
        self._project = ""
        self._ended_at = -1
        self._old_sums: tuple[OutputLine, list[str]] | None = None

    @on(r"Test run for (?P<project>.+)")
    def _starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._project = match["project"]

    @on(r"Failed (?P<name>\S.*?) \[[\d<].*\]|failed (?P<test>\S.*?) \([\d.]+m?s.*\)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"] or match["test"])

    @on(r"Error Message:")
    def _message_follows(self, _: OutputLine, __: re.Match[str]) -> None:
        pass

    @on(r"Stack Trace:|Passed \S.* \[[\d<].*\]")
    def _message_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"Test Run (?:Failed|Successful|Aborted)\.")
    def _ends(self, line: OutputLine, _: re.Match[str]) -> None:
        self.end_message()
        self._ended_at = line.number
        if self._old_sums is not None and line.number <= self._old_sums[0].number + 2:
            self._sum_up(*self._old_sums, self._project)

    @on(r"(?:Passed|Failed|Skipped)! +- +(?P<counts>Failed: .*?), Duration: .*? - (?P<project>.*)")
    def _project_ends(self, line: OutputLine, match: re.Match[str]) -> None:
        is_same = _library(match["project"]) == _library(self._project)
        if self.held is not None and is_same:
            self.drop_held()  # the list above has the same counts
        self._sum_up(line, match["counts"].split(", "), match["project"])

    @on(r"Test summary: (?P<counts>total: .*?), duration: .*")
    def _all_end(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sum_up(line, match["counts"].split(", "), None)

    @on(r"(?P<counts>Total tests: \d+\. Passed: .*)")
    def _old_project_ends(self, line: OutputLine, match: re.Match[str]) -> None:
        self._old_sums = line, match["counts"].rstrip(".").split(". ")

    @on(
        r"(?:.* error TESTERROR: *)?(?P<name>[\w.]+\S.*) \([\d.]+m?s\): "
        r"Error Message: (?P<message>.*)"
    )
    def _logged(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"Total tests: \d+")
    def _list_follows(self, line: OutputLine, _: re.Match[str]) -> None:
        if line.number == self._ended_at + 1:
            self.hold(line, Counts(), self._project)

    @on(r"Test run summary: \w+!.*")
    def _platform_list_follows(self, line: OutputLine, _: re.Match[str]) -> None:
        self.end_message()
        self.hold(line, Counts())

    @on(r"(?P<count>(?:Passed|Failed|Skipped|failed|succeeded|skipped) *: +\d{1,9})")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = _sums([match["count"]])
        if self.held is not None and sums is not None:
            self.amend(line, self.held + counted(sums))

    def _sum_up(self, line: OutputLine, pieces: list[str], project: str | None) -> None:
        sums = _sums(pieces)
        if sums is not None:
            self.close(line, counted(sums), project)


def _library(project: str) -> str:
    """Return the name of a project's library, without its folder and framework."""
    return project.partition(" (")[0].replace("\\", "/").rpartition("/")[2]


def _sums(pieces: list[str]) -> dict[str, int] | None:
    pairs = (piece.partition(":")[::2] for piece in pieces)
    return tally((f"{amount.strip()} {word.strip().lower()}" for word, amount in pairs), _WORDS)


# PHP: PHPUnit and Pest.


_PHP_WORDS = {
    "Tests": TOTAL,
    "Errors": FAILED,
    "Failures": FAILED,
    "Skipped": SKIPPED,
    "Incomplete": SKIPPED,
}
_PEST = {
    "failed": FAILED,
    "passed": PASSED,
    "skipped": SKIPPED,
    "todo": SKIPPED,
    "todos": SKIPPED,
    "incomplete": SKIPPED,
    "risky": PASSED,
    "warning": PASSED,
    "warnings": PASSED,
    "deprecated": PASSED,
    "notice": PASSED,
}
_LISTS = {"failure": TestStatus.FAILED, "error": TestStatus.ERROR}


class PhpUnit(RuleParser):
    """PHPUnit and Pest: `OK (2 tests, 2 assertions)`, `Tests: 9, Assertions: 5, Errors: 1.`.

    The counts are in the last line. Risky tests and tests with warnings count as passed.
    """

    runner = "phpunit"
    marks = ("assertion", "Assertions: ", "No tests executed!", "Time: ")

    def _reset(self) -> None:
        self._status: TestStatus | None = None
        self._sum: tuple[OutputLine, Counts] | None = None

    @on(r"PHPUnit \d\S* by Sebastian Bergmann.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"There (?:was|were) \d+ (?:PHPUnit (?:test runner )?)?(?P<kind>\w+)(?: tests?)?:")
    def _list_follows(self, _: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._status = _LISTS.get(match["kind"].removesuffix("s"))

    @on(r"\d{1,9}\) (?P<name>[\w\\]+::.+)")
    def _named(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._status is not None:
            without_data = match["name"].partition(" (")[0]
            self.fail(line, without_data, status=self._status)

    @on(r"FAILED +(?P<name>\S.* > .+)")
    def _pest_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"--")
    def _list_ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()
        self._status = None

    @on(r"OK \((?P<tests>\d{1,9}) tests?, \d+ assertions?\)")
    def _passed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.close(line, Counts(passed=number(match["tests"])))

    @on(r"(?P<counts>Tests: \d+, Assertions: \d+.*?)\.?")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = (piece.partition(": ")[::2] for piece in match["counts"].split(", "))
        sums = tally(
            (f"{amount} {word}" for word, amount in pieces if word in _PHP_WORDS), _PHP_WORDS
        )
        if sums is not None:
            self.close(line, rest_passed(sums))

    @on(r"Tests: +(?P<counts>\d.*?)(?P<whole> \(\d+ assertions?\))?")
    def _pest_counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _PEST)
        if sums is not None and match["whole"]:
            self.close(line, counted(sums))
        elif sums is not None:
            self._sum = line, counted(sums)

    @on(r"Time: +[\d.]+s")
    def _old_pest_ends(self, line: OutputLine, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(*self._sum)

    @on(r"No tests executed!")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())


# Swift: XCTest and Swift Testing, as `swift test` and `xcodebuild` print them.


class XCTest(RuleParser):
    """XCTest: `Executed 4 tests, with 1 failure`.

    The outermost suite prints its sum last. The sum counts failed assertions, so this parser counts
    the failed cases. The test bundles of one command add up.
    """

    runner = "XCTest"
    marks = ("Executed ",)

    def _reset(self) -> None:
        self._failed: set[str] = set()
        self._bundle: str | None = None

    @on(r"Test Suite '(?:All|Selected) tests' started.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"Test Suite '(?P<bundle>.+\.xctest)' started.*")
    def _bundle_starts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._bundle = match["bundle"]

    @on(r".*?: error: (?P<name>\S.*?) : (?P<message>.*)")
    def _errs(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, _case(match["name"]), match["message"])

    @on(r"Test Case '(?P<name>.+)' failed \(.*")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self._failed.add(_case(match["name"]))
        self.fail(line, _case(match["name"]))
        self.end_message()

    @on(
        r"Executed (?P<tests>\d{1,9}) tests?, with (?:(?P<skipped>\d{1,9}) tests? skipped and )?"
        r"(?P<failed>\d{1,9}) failures? .*"
    )
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        failed = len(self._failed) or number(match["failed"])
        tests, skipped = number(match["tests"]), number(match["skipped"] or "")
        counts = Counts.out_of(tests, min(failed, tests), skipped)
        if self.held is None:
            self.hold(line, counts, self._bundle)
        else:
            self.amend(line, counts)


def _case(name: str) -> str:
    """Return `Class.test` for `-[Module.Class test]` and `Class.test`."""
    return name.removeprefix("-[").removesuffix("]").replace(" ", ".")


class SwiftTesting(RuleParser):
    """Swift Testing: `Test run with 3 tests failed after 0.002 seconds`."""

    runner = "Swift Testing"
    marks = ("Test run with ",)

    def _reset(self) -> None:
        self._skipped = 0

    @on(r"\W* ?Test run started\.")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\W* ?Test (?P<name>\S.*?) recorded an issue at (?P<message>.*)")
    def _errs(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"\W* ?Test (?!run with )(?P<name>\S.*?) failed after [\d.]+ seconds.*")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.end_message()

    @on(r"\W* ?Test (?P<name>\S.*?) skipped.*")
    def _skips(self, _: OutputLine, __: re.Match[str]) -> None:
        self._skipped += 1

    @on(
        r"\W* ?Test run with (?P<tests>\d{1,9}) tests?(?: in \d+ suites?)? "
        r"(?P<verdict>passed|failed) after .*"
    )
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        failed = max(1, self.failures) if match["verdict"] == "failed" else 0
        self.close(line, Counts.out_of(number(match["tests"]), failed, self._skipped))
