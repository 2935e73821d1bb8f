"""Swift: XCTest and Swift Testing, as `swift test` and `xcodebuild` print them."""

import re

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.suites import Counts, number


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
