"""swift test and xcodebuild: XCTest's `Executed 4 tests, with 1 failure`, and Swift Testing."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class XCTest(RuleParser):
    """The outermost suite sums up last; its failures are assertions, so failed cases count."""

    runner = "XCTest"
    marks = ("Executed ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._failed: set[str] = set()

    @on(r"Test Suite '(?:All|Selected) tests' started.*")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r".*?: error: (?P<name>\S.*?) : (?P<message>.*)")
    def _errs(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, _case(match["name"]), match["message"])

    @on(r"Test Case '(?P<name>.+)' failed \(.*")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self._failed.add(_case(match["name"]))
        self.fail(line, _case(match["name"]))
        self.hush()

    @on(
        r"Executed (?P<tests>\d{1,9}) tests?, with (?:(?P<skipped>\d{1,9}) tests? skipped and )?"
        r"(?P<failed>\d{1,9}) failures? .*"
    )
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        failed = len(self._failed) or number(match["failed"])
        tests, skipped = number(match["tests"]), number(match["skipped"] or "")
        counts = Counts.out_of(tests, min(failed, tests), skipped)
        self.revise(line, counts)


def _case(name: str) -> str:
    """`-[Module.Class test]` or `Class.test`, as `Class.test`."""
    return name.removeprefix("-[").removesuffix("]").replace(" ", ".")


class SwiftTesting(RuleParser):
    """`Test run with 3 tests failed after 0.002 seconds` is Swift Testing's summary."""

    runner = "Swift Testing"
    marks = ("Test run with ",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._skipped = 0

    @on(r"\W* ?Test run started\.")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\W* ?Test (?P<name>\S.*?) recorded an issue at (?P<message>.*)")
    def _errs(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"])

    @on(r"\W* ?Test (?!run with )(?P<name>\S.*?) failed after [\d.]+ seconds.*")
    def _fails(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self.hush()

    @on(r"\W* ?Test (?P<name>\S.*?) skipped.*")
    def _skips(self, _: Line, __: re.Match[str]) -> None:
        self._skipped += 1

    @on(
        r"\W* ?Test run with (?P<tests>\d{1,9}) tests?(?: in \d+ suites?)? "
        r"(?P<verdict>passed|failed) after .*"
    )
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        failed = max(1, self.failures) if match["verdict"] == "failed" else 0
        self.close(line, Counts.out_of(number(match["tests"]), failed, self._skipped))
