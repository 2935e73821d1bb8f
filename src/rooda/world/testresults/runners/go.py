"""Go: `go test` (plain, `-v` and `-json`), and gotestsum."""

import re
from collections import Counter
from collections.abc import Mapping

from rooda.base.formats import parse_json
from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    SKIPPED,
    TOTAL,
    Counts,
    Suite,
    rest_passed,
    tally,
)

_STARTED = "run"
_ENDED = ("pass", "fail", "skip")
_MOST_LOG_LINES = 8  # per test
_GOTESTSUM = {
    "test": TOTAL,
    "tests": TOTAL,
    "skipped": SKIPPED,
    "failure": FAILED,
    "failures": FAILED,
    "error": FAILED,
    "errors": FAILED,
}


class Go(RuleParser):
    """`go test` and gotestsum.

    The packages of one `go test` add up. Without `-v`, go does not name the passed tests, so a
    package that is ok counts as one test. A package that fails without a failed test (a build
    error, a timeout) is an error.
    """

    runner = "go test"
    marks = ("--- PASS:", "--- FAIL:", "--- SKIP:", "ok  ", "FAIL", "[no test files]", '"Action":')

    def __init__(self) -> None:
        super().__init__()
        # By package; "" until the plain output prints the package name, after its tests.
        self._tests: dict[str, dict[str, str]] = {}
        self._logs_by_test: dict[str, list[str]] = {}
        self._current = ""
        self._package_at = self._listed_at = -1
        self._last: OutputLine | None = None
        self._verbose = False

    @on(r"=== (?P<what>RUN|CONT|NAME|PAUSE) +(?P<test>\S+)")
    def _runs(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self.end_message()
        self._current = match["test"]
        if match["what"] == "RUN":
            self._note("", match["test"], _STARTED)
            self._verbose = True

    @on(r"(?P<output>.*?)--- (?P<status>PASS|FAIL|SKIP): (?P<test>\S+) \([\d.]+s\)")
    def _ends(self, line: OutputLine, match: re.Match[str]) -> None:
        if match["output"] and self._tests.get("", {}).get(match["test"]) != _STARTED:
            return  # only output of a running test may precede the marker in its line
        self._current = ""
        self._last = line
        self._test_ended(line, "", match["test"], match["status"].lower())

    @on(r"(?P<log>[\w.-]+\.go:\d+: .*)")
    def _logs(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._current:
            self._log(self._current, match["log"])
        else:
            self.unmatched(line)

    @on(r"(?:Test|Benchmark|Fuzz|Example)\w*")
    def _lists(self, line: OutputLine, _: re.Match[str]) -> None:
        self._listed_at = line.number

    @on(
        r"(?:(?:ok|FAIL|\?)\s+(?=\S*[./])|(?:ok|FAIL|\?)(?:\t|\s\s)\s*)(?P<package>\S+)\s+"
        r"(?P<rest>\d+\.\d+s|\(cached\)|\[(?:no test files|build failed|setup failed)\])"
        r"(?P<more>\s+(?:coverage: |\[no ).*)?"
    )
    def _package(self, line: OutputLine, match: re.Match[str]) -> None:
        verdict = {"o": "pass", "F": "fail"}.get(match[0][0], "skip")
        is_running = _STARTED in self._tests.get("", {}).values()
        if line.number == self._listed_at + 1 or (is_running and verdict == "pass"):
            return  # `-list` runs no test; during a test, the test itself printed the line
        rest = match["rest"] + (match["more"] or "")
        self._package_ended(line, match["package"], verdict, rest)

    @on(r"FAIL")
    def _all_failed(self, line: OutputLine, _: re.Match[str]) -> None:
        self.end_message()
        if line.number == self._package_at + 1:
            self.next_run()

    @on(r"PASS|exit status \d+")
    def _binary_ended(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r'\{.*"Action":.*\}')
    def _json(self, line: OutputLine, _: re.Match[str]) -> None:
        event = _event(line.whole)
        action, package, test = (event.get(key, "") for key in ("Action", "Package", "Test"))
        if test and action == "output":
            self._log(test, event.get("Output", "").strip())
        elif test and action == _STARTED:
            self.ensure_begun(line)
            self._note(package, test, action)
        elif test and action in _ENDED:
            self._test_ended(line, package, test, action)
        elif action in _ENDED:
            self._package_ended(line, package, action)

    @on(r"=== FAIL: \S+ (?P<test>\S+) \([\d.]+s\)")
    def _gotestsum_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["test"])

    @on(r"DONE (?:\d+ runs, )?(?P<counts>\d+ tests?(?:, \d+ \w+)*) in .*")
    def _gotestsum_done(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _GOTESTSUM)
        if sums is not None:
            self._tests.clear()
            self.close(line, rest_passed(sums))

    def finish(self) -> list[Suite]:
        """Return the packages, or the tests of a test binary that ran without `go test`."""
        tests = self._tests.get("", {})
        if self._verbose and tests and self._last is not None and not self._suites:
            self.close(self._last, _counts(tests))
        return super().finish()

    def _note(self, package: str, test: str, status: str) -> None:
        self._tests.setdefault(package, {})[test] = status

    def _log(self, test: str, text: str) -> None:
        log = self._logs_by_test.setdefault(test, [])
        if len(log) < _MOST_LOG_LINES and not text.startswith(("===", "---")):
            log.append(text)

    def _test_ended(self, line: OutputLine, package: str, test: str, status: str) -> None:
        self.ensure_begun(line)
        self._note(package, test, status)
        log = "\n".join(self._logs_by_test.pop(test, []))
        self.end_message()
        if status == "fail":
            self.fail(line, test, log)

    def _package_ended(self, line: OutputLine, package: str, verdict: str, rest: str = "") -> None:
        tests = self._tests.pop(package, None) or self._tests.pop("", {})
        self._logs_by_test.clear()
        if verdict == "fail":
            for test in [test for test, status in tests.items() if status == _STARTED]:
                tests[test] = "fail"
                self.fail(line, test, "it did not finish")
        counts = _counts(tests)
        if verdict == "fail" and not counts.failed:
            self.error(line, package, rest)
            counts += Counts(failed=1)
        elif verdict == "pass" and not tests and "[no tests to run]" not in rest:
            counts = Counts(passed=1)
        self._package_at = line.number
        self.close(line, counts, part=package)


def _counts(tests: Mapping[str, str]) -> Counts:
    statuses = Counter(tests.values())
    return Counts(statuses["pass"], statuses["fail"], statuses["skip"])


def _event(text: str) -> dict[str, str]:
    """Return the strings of a test2json event."""
    event = parse_json(text)
    pairs = event.items() if isinstance(event, dict) else ()
    return {key: value for key, value in pairs if isinstance(value, str)}
