"""JavaScript test frameworks: jest, vitest, mocha, jasmine, AVA, uvu."""

import re
from itertools import takewhile
from typing import Any

from rooda.base.formats import json_at, json_list, json_number, json_text, parse_json
from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    EXPECTED,
    FAILED,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    RunnerReport,
    TestDetail,
    TestStatus,
    counted,
    detail,
    failed_among,
    number,
    rest_passed,
    tally,
)

# -- jest --------------------------------------------------------------------------------------

_JEST_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "pending": SKIPPED,
    "todo": SKIPPED,
    "total": TOTAL,
}


class Jest(RuleParser):
    """jest: `Tests:       2 failed, 1 skipped, 4 passed, 7 total`.

    The counts are in the summary. A suite that failed to run has no tests and is an error.
    """

    runner = "jest"
    marks = (" total", "No tests found, exiting")

    def _reset(self) -> None:
        self._file = ""
        self._broken: set[str] = set()
        self._failed_files = 0
        self._files_at = -1

    @on(r"(?:PASS|FAIL)\s+(?P<file>[\w@./\\-]+\.\w+)(?: \([\d.]+ m?s\))?")
    def _starts_file(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self.end_message()
        self._file = match["file"]

    @on(r"● Console|● .*(?:Warning|Deprecation).*:")
    def _no_failure(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"● Test suite failed to run")
    def _breaks(self, line: OutputLine, _: re.Match[str]) -> None:
        self._broken.add(self._file)
        self.error(line, self._file or "Test suite failed to run")

    @on(r"● (?P<name>.+)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Test Suites: +(?P<counts>\d.*)")
    def _files(self, line: OutputLine, match: re.Match[str]) -> None:
        self._failed_files = failed_among(match["counts"])
        self._files_at = line.number

    @on(r"Tests: (?P<padding> {6}(?! ))?+ *(?P<counts>\d.* total)")
    def _tests(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _JEST_WORDS)
        # A test may log such a line; jest's own line is below `Test Suites:` or padded.
        if sums is not None and (line.number == self._files_at + 1 or match["padding"]):
            broken = max(len(self._broken), 0 if sums[FAILED] else self._failed_files)
            self.close(line, counted(sums) + Counts(failed=broken))

    @on(r"No tests found, exiting with code \d")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())


def jest_report(document: Any) -> RunnerReport | None:
    """Return the report of jest's `--json` or vitest's JSON reporter, or None."""
    if not isinstance(document, dict) or "numTotalTests" not in document:
        return None
    jest = "numRuntimeErrorTestSuites" in document
    files = json_list(document, "testResults")
    folder = _jest_folder([json_text(file, "name") for file in files])
    # Count the tests one by one, because the totals of some vitest versions are wrong.
    counts, details = Counts(), []
    for file in files:
        name, tests = json_text(file, "name")[len(folder) :], json_list(file, "assertionResults")
        if not tests and json_text(file, "status") == "failed":
            counts += Counts(failed=1)
            details.append(detail(name, TestStatus.ERROR, json_text(file, "message")))
        for test in tests:
            status = _JEST_WORDS.get(json_text(test, "status"), SKIPPED)
            counts += Counts(**{status: 1})
            if status == FAILED:
                details.append(_jest_failed(test, [] if jest else [name], " › " if jest else " > "))
    return RunnerReport("jest" if jest else "vitest", counts, details)


def _jest_folder(names: list[str]) -> str:
    """Return the common folder of the files, with a trailing slash."""
    levels = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "".join(f"{level[0]}/" for level in takewhile(lambda level: len({*level}) == 1, levels))


def _jest_failed(test: Any, path: list[str], joint: str) -> TestDetail:
    titles = [*path, *map(str, json_list(test, "ancestorTitles")), json_text(test, "title")]
    messages = json_list(test, "failureMessages")
    return detail(joint.join(titles), TestStatus.FAILED, str(messages[0]) if messages else "")


# -- vitest ------------------------------------------------------------------------------------

_VITEST_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "skipped": SKIPPED,
    "todo": SKIPPED,
    "expected fail": EXPECTED,
}


class Vitest(RuleParser):
    """vitest: `Tests  2 failed | 4 passed | 1 skipped (7)`.

    The counts are in the summary. A file that failed to load has no tests and is an error.
    """

    runner = "vitest"
    marks = ("Tests ", "No test files found")

    def _reset(self) -> None:
        self._broken: set[str] = set()
        self._failed_files = 0

    @on(r"(?:RUN|DEV)\s+v\d\S* .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"FAIL\s+(?P<file>\S.*?) \[ .* \]")
    def _breaks(self, line: OutputLine, match: re.Match[str]) -> None:
        self._broken.add(match["file"])
        self.error(line, match["file"])

    @on(r"FAIL\s+(?P<name>\S.* > .*)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"[❯⎯].*")
    def _place(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"Test Files  +(?P<counts>\d.*)")
    def _files(self, _: OutputLine, match: re.Match[str]) -> None:
        self._failed_files = failed_among(match["counts"])

    @on(r"Tests  +(?:(?P<counts>\d.*) \(\d+\)|no tests)")
    def _tests(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split("|") if match["counts"] else [], _VITEST_WORDS)
        if sums is not None:
            broken = max(len(self._broken), 0 if sums[FAILED] else self._failed_files)
            self.hold(line, counted(sums) + Counts(failed=broken))

    @on(r"(?P<what>(?:Type )?Errors  +\d+ errors?)")
    def _outside(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is not None:
            self.error(line, "Unhandled errors", match["what"])

    @on(r"No test files found, exiting with code \d")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())


# -- mocha -------------------------------------------------------------------------------------

_MOCHA_MOST_TITLES = 12


class Mocha(RuleParser):
    """mocha with any reporter that prints counts: `3 passing (9ms)`, `2 pending`, `2 failing`.

    The counts come first, then the failures, each with one title per line.
    """

    runner = "mocha"
    marks = (" passing (", '["end",', "Error: No test files found")

    def _reset(self) -> None:
        self._titles: list[str] | None = None

    @on(r"(?P<passed>\d{1,9}) passing \(.+\)")
    def _passing(self, line: OutputLine, match: re.Match[str]) -> None:
        self.hold(line, Counts(passed=int(match["passed"])))

    @on(r"(?P<amount>\d{1,9}) (?P<word>pending|failing)")
    def _more(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is not None:
            field = "skipped" if match["word"] == "pending" else "failed"
            self.amend(line, self.held + Counts(**{field: int(match["amount"])}))

    @on(r"\d{1,9}\) (?P<title>.+)")
    def _heading(self, line: OutputLine, match: re.Match[str]) -> None:
        if self.held is not None and self.held.failed:
            self._titles = []
            self._title(line, match["title"])

    @on(r'\["(?P<event>fail|end)",(?P<data>\{.*\})\]')
    def _stream(self, line: OutputLine, match: re.Match[str]) -> None:
        data = parse_json(match["data"])
        if match["event"] == "fail":
            self.fail(line, json_text(data, "fullTitle"), json_text(data, "err"))
        else:
            self.close(line, _mocha_counts(data))

    @on(r"Error: No test files found.*")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def unmatched(self, line: OutputLine) -> None:
        """Append the line to the titles of a failure, or to its message."""
        if self._titles is None:
            super().unmatched(line)
        elif line.text:
            self._title(line, line.text)

    def _title(self, line: OutputLine, text: str) -> None:
        titles = [*(self._titles or []), text.removesuffix(":")]
        ends = text.endswith(":") or len(titles) >= _MOCHA_MOST_TITLES
        self._titles = None if ends else titles
        if ends:
            self.fail(line, " ".join(titles))


def mocha_report(document: Any) -> RunnerReport | None:
    """Return the report of mocha's JSON reporter, or None for another document."""
    stats = json_at(document, "stats")
    if not isinstance(stats, dict) or not {"passes", "failures", "pending"} <= stats.keys():
        return None
    failed = [
        detail(json_text(test, "fullTitle"), TestStatus.FAILED, json_text(test, "err", "message"))
        for test in json_list(document, "failures")
    ]
    return RunnerReport("mocha", _mocha_counts(stats), failed)


def _mocha_counts(stats: Any) -> Counts:
    return Counts(
        json_number(stats, "passes"), json_number(stats, "failures"), json_number(stats, "pending")
    )


# -- jasmine -----------------------------------------------------------------------------------

_JASMINE_WORDS = {
    "spec": TOTAL,
    "specs": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "pending spec": SKIPPED,
    "pending specs": SKIPPED,
}


class Jasmine(RuleParser):
    """jasmine: `3 specs, 1 failure, 1 pending spec`.

    The counts are in the last line, below the failures and the pending specs.
    """

    runner = "jasmine"
    marks = (" spec", "No specs found")

    def _reset(self) -> None:
        self._listing = False
        self._sum: tuple[OutputLine, Counts] | None = None

    @on(r"Started")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"Failures:|Pending:")
    def _list(self, _: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._listing = match[0] == "Failures:"

    @on(r"\d{1,9}\) (?P<name>.+)")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._listing:
            self.fail(line, match["name"])

    @on(r"Message:")
    def _message(self, _: OutputLine, __: re.Match[str]) -> None:
        pass

    @on(r"Stack:")
    def _stack(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"\d+ specs?, \d+ failures?(?:, \d+ pending specs?)?")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _JASMINE_WORDS)
        if sums is not None and self.is_running:
            self.close(line, rest_passed(sums))
        elif sums is not None:
            self._sum = line, rest_passed(sums)

    @on(r"Finished in [\d.]+ seconds?")
    def _finishes(self, line: OutputLine, _: re.Match[str]) -> None:
        if self._sum is not None and line.number == self._sum[0].number + 1:
            self.close(*self._sum)

    @on(r"No specs found")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts())


# -- ava ---------------------------------------------------------------------------------------

_AVA_WORDS = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED, "todo": SKIPPED}


class Ava(RuleParser):
    """AVA: a ruled line, then `2 tests passed`, or `1 test failed` and other counts.

    If a test fails, AVA does not count the passed tests, so their ticks are counted.
    """

    runner = "ava"
    marks = ("─",)

    def _reset(self) -> None:
        self._ticks = 0
        self._ruled = False

    @on(r"✔ (?P<expected>\[expected fail\] )?.*")
    def _ticked(self, _: OutputLine, match: re.Match[str]) -> None:
        self._goes_on()
        self._ticks += match["expected"] is None

    @on(r"✘ \[fail\]: (?P<name>.+?)(?: \([\d.]+m?s\))?")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self._goes_on()
        self.fail(line, match["name"])
        self.end_message()

    @on(r"─")
    def _rule(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()
        self._ruled = True

    @on(r"(?P<amount>\d{1,9}) (?:tests? (?P<word>passed|failed|skipped|todo)|known failures?)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        if not self._ruled:
            return
        if self.held is None:
            self.hold(line, Counts(passed=0 if match["word"] == PASSED else self._ticks))
        field = _AVA_WORDS.get(match["word"], EXPECTED)
        self.amend(line, (self.held or Counts()) + Counts(**{field: number(match["amount"])}))

    @on(r"\d+ (?:uncaught exception|unhandled rejection|uncaught error)s?")
    def _outside(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._ruled and self.held is None:
            self.hold(line, Counts(passed=self._ticks))
        if self.held is not None:
            self.error(line, "outside of the tests", match[0])

    def unmatched(self, line: OutputLine) -> None:
        """Append the lines below the name of a failed test to its message."""
        if self._ruled and line.text in self._failures:
            self.fail(line, line.text)
        else:
            super().unmatched(line)

    def _goes_on(self) -> None:
        if self._ruled:
            self.flush()


# -- uvu ---------------------------------------------------------------------------------------

_UVU_ORDER = ("Total", "Passed", "Skipped")


class Uvu(RuleParser):
    """uvu: the lines `Total: 3`, `Passed: 2`, `Skipped: 1` and `Duration: 1.17ms`.

    The total does not include the skipped tests.
    """

    runner = "uvu"
    marks = ("Skipped:  ",)

    def _reset(self) -> None:
        self._sums: list[int] = []
        self._sum_at = -1

    @on(r"FAIL  ?\"?(?P<name>[^\"]+)\"")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"(?P<what>Total|Passed|Skipped): {2,}(?P<amount>\d{1,9})")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        if match["what"] == "Total" or line.number != self._sum_at + 1:
            self._sums = []
        expected = _UVU_ORDER[len(self._sums) : len(self._sums) + 1] == (match["what"],)
        self._sums = [*self._sums, number(match["amount"])] if expected else []
        self._sum_at = line.number

    @on(r"Duration: {2,}[\d.]+m?s")
    def _ends(self, line: OutputLine, _: re.Match[str]) -> None:
        if len(self._sums) == len(_UVU_ORDER) and line.number == self._sum_at + 1:
            total, passed, skipped = self._sums
            self.close(line, Counts(passed, max(0, total - passed), skipped))
