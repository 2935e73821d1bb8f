"""Ruby: RSpec, minitest, Rails and test-unit."""

import re
from typing import Any

from rooda.base.formats import json_at, json_list, json_number, json_text
from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    MOST_DETAILS,
    OTHER,
    SKIPPED,
    TOTAL,
    Counts,
    RunnerReport,
    TestStatus,
    detail,
    number,
    rest_passed,
    tally,
)

# -- rspec -------------------------------------------------------------------------------------

_RSPEC_WORDS = {
    "example": TOTAL,
    "examples": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "error": FAILED,
    "errors": FAILED,
    "pending": SKIPPED,
}
_RSPEC_OUTSIDE = re.compile(r", (\d{1,9}) errors? occurred outside of examples")
_RSPEC_MOST_LINES = 8  # lines of a message
_RSPEC_TOP = 3  # the maximum number of lines before the summary in truncated output
_RSPEC_NEAR = 2  # the maximum distance in lines from the sum to the time of all processes


class RSpec(RuleParser):
    """RSpec and other runners that count examples: `6 examples, 2 failures, 2 pending`.

    The counts are below `Finished in`; the list after them has the locations of the failures.
    """

    runner = "rspec"
    marks = (" example",)

    def _reset(self) -> None:
        self._messages: dict[str, list[str]] = {}
        self._message: list[str] = []
        self._finished_at = -1
        self._sum: tuple[OutputLine, Counts] | None = None

    @on(r"An error occurred (?:while loading|in) (?P<place>.+?)\.?")
    def _outside(self, line: OutputLine, match: re.Match[str]) -> None:
        self.error(line, match["place"])

    @on(r"\d{1,9}\) (?P<description>.+)")
    def _describes(self, _: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._message = []
        if len(self._messages) < MOST_DETAILS:
            self._messages[match["description"]] = self._message

    @on(r"Finished in .*")
    def _finishes(self, line: OutputLine, _: re.Match[str]) -> None:
        self._finished_at = line.number
        self._message = []

    @on(r"(?P<counts>\d+ examples?, \d+ failures?.*)")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        outside = _RSPEC_OUTSIDE.search(match["counts"])
        sums = tally(_RSPEC_OUTSIDE.sub("", match["counts"]).split(","), _RSPEC_WORDS)
        # An example may print such a line. In truncated output, the summary may be the first line.
        if sums is not None:
            errors = number(outside[1]) if outside else 0
            self._sum = line, rest_passed(sums) + Counts(failed=errors)
            if line.place <= _RSPEC_TOP or line.number == self._finished_at + 1:
                self.hold(*self._sum)

    @on(r"Took [\d.]+ seconds?(?: .*)?")
    def _all_processes(self, line: OutputLine, _: re.Match[str]) -> None:
        """Use the sum of parallel processes, printed after the sum of each process."""
        if self._sum is not None and line.number - self._sum[0].number <= _RSPEC_NEAR:
            self.hold_or_amend(*self._sum)

    @on(r"rspec (?P<place>\S+) # (?P<description>.*)")
    def _lists(self, line: OutputLine, match: re.Match[str]) -> None:
        description = match["description"]
        lines = [description, *self._messages.get(description, [])]
        self.fail(line, match["place"], "\n".join(lines))

    def flush(self) -> None:
        """Close the run; if no list names the failures, use their descriptions."""
        if self._held is not None and self._held[1].failed and not self.failures:
            for description, message in self._messages.items():
                self.fail(self._held[0], description, "\n".join(message))
        super().flush()

    def unmatched(self, line: OutputLine) -> None:
        """Append the line to the message of an example, or of an error outside of the examples."""
        super().unmatched(line)
        if line.text and not line.text.startswith("#") and len(self._message) < _RSPEC_MOST_LINES:
            self._message.append(line.text)


def rspec_report(document: Any) -> RunnerReport | None:
    """Return the report of rspec's JSON formatter, or None for another document."""
    summary = json_at(document, "summary")
    if not isinstance(summary, dict) or "example_count" not in summary:
        return None
    outside = json_number(summary, "errors_outside_of_examples_count")
    failed, pending = json_number(summary, "failure_count"), json_number(summary, "pending_count")
    counts = Counts.out_of(json_number(summary, "example_count"), failed, pending)
    details = [
        detail(
            f"{json_text(example, 'file_path')}:{json_number(example, 'line_number')}",
            TestStatus.FAILED,
            json_text(example, "exception", "message"),
        )
        for example in json_list(document, "examples")
        if json_text(example, "status") == "failed"
    ]
    return RunnerReport("rspec", counts + Counts(failed=outside), details)


# -- minitest ----------------------------------------------------------------------------------

_MINITEST_WORDS = {
    "runs": TOTAL,
    "tests": TOTAL,
    "assertions": OTHER,
    "failures": FAILED,
    "errors": FAILED,
    "skips": SKIPPED,
    "pendings": SKIPPED,
    "omissions": SKIPPED,
    "notifications": OTHER,
}
_MINITEST_STATUSES = {"Failure": TestStatus.FAILED, "Error": TestStatus.ERROR}


class Minitest(RuleParser):
    """minitest, Rails and test-unit: `4 runs, 2 assertions, 1 failures, 1 errors, 1 skips`.

    The counts are in the last line, which all of these runners print in nearly the same words.
    """

    runner = "minitest"
    marks = (" assertions, ",)

    def _reset(self) -> None:
        self._kind = ""

    @on(r"# Running(?: tests with run options .*)?:|Loaded suite .*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:\d{1,9}\) )?(?P<kind>Failure|Error|Skipped):")
    def _kind_follows(self, _: OutputLine, match: re.Match[str]) -> None:
        self.end_message()
        self._kind = match["kind"]

    @on(r"(?P<name>[\w:]+#\S.*?)(?: \[[^\]]*\])?:")
    def _named(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._kind in {"Failure", "Error"}:
            self.fail(line, match["name"], status=_MINITEST_STATUSES[self._kind])
        self._kind = ""

    @on(r"(?P<kind>Failure|Error): (?P<name>test[^\s(]*\([^\s)]+\))(?:: (?P<message>.*))?")
    def _test_unit(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "", _MINITEST_STATUSES[match["kind"]])

    @on(r"={50,}|bin/rails test .*|rails test .*")
    def _rule(self, _: OutputLine, __: re.Match[str]) -> None:
        self.end_message()

    @on(r"\d+ (?:runs|tests), \d+ assertions, .*")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match[0].split(","), _MINITEST_WORDS)
        if sums is not None:
            self.close(line, rest_passed(sums))
