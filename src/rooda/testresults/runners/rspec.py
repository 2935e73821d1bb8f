"""RSpec, and others that count examples: `6 examples, 2 failures, 2 pending`."""

import re
from typing import Any

from rooda.testresults.lines import Line
from rooda.testresults.parser import MOST_DETAILS, RuleParser, detail, on
from rooda.testresults.reports import Report, amount, at, members, words
from rooda.testresults.suites import FAILED, SKIPPED, TOTAL, Counts, number, rest_passed, tally
from rooda.testresults.types import TestStatus

_WORDS = {
    "example": TOTAL,
    "examples": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "error": FAILED,
    "errors": FAILED,
    "pending": SKIPPED,
}
_OUTSIDE = re.compile(r", (\d{1,9}) errors? occurred outside of examples")
_MOST_LINES = 8  # of a message
_TOP = 3  # lines that may stand above the rest of a cut output
_NEAR = 2  # the time of all processes stands so many lines below the sum


class RSpec(RuleParser):
    """Counts from the line below `Finished in`; the list after it says where the failures are."""

    runner = "rspec"
    marks = (" example",)

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._messages: dict[str, list[str]] = {}
        self._message: list[str] = []
        self._finished_at = -1
        self._sum: tuple[Line, Counts] | None = None

    @on(r"An error occurred (?:while loading|in) (?P<place>.+?)\.?")
    def _outside(self, line: Line, match: re.Match[str]) -> None:
        self.error(line, match["place"])

    @on(r"\d{1,9}\) (?P<description>.+)")
    def _describes(self, _: Line, match: re.Match[str]) -> None:
        self.hush()
        self._message = []
        if len(self._messages) < MOST_DETAILS:
            self._messages[match["description"]] = self._message

    @on(r"Finished in .*")
    def _finishes(self, line: Line, _: re.Match[str]) -> None:
        self._finished_at = line.number
        self._message = []

    @on(r"(?P<counts>\d+ examples?, \d+ failures?.*)")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        outside = _OUTSIDE.search(match["counts"])
        sums = tally(_OUTSIDE.sub("", match["counts"]).split(","), _WORDS)
        # An example may print such a line; the last line of a cut output may stand alone.
        if sums is not None:
            errors = number(outside[1]) if outside else 0
            self._sum = line, rest_passed(sums) + Counts(failed=errors)
            if line.place <= _TOP or line.number == self._finished_at + 1:
                self.hold(*self._sum)

    @on(r"Took [\d.]+ seconds?(?: .*)?")
    def _all_processes(self, line: Line, _: re.Match[str]) -> None:
        """Take the sum of parallel processes, each of which summed up before."""
        if self._sum is not None and line.number - self._sum[0].number <= _NEAR:
            self.revise(*self._sum)

    @on(r"rspec (?P<place>\S+) # (?P<description>.*)")
    def _lists(self, line: Line, match: re.Match[str]) -> None:
        description = match["description"]
        lines = [description, *self._messages.get(description, [])]
        self.fail(line, match["place"], "\n".join(lines))

    def flush(self) -> None:
        """Close the run; what wasn't listed is named by its description."""
        if self._held is not None and self._held[1].failed and not self.failures:
            for description, message in self._messages.items():
                self.fail(self._held[0], description, "\n".join(message))
        super().flush()

    def other(self, line: Line) -> None:
        """Go on with the message of an example, or of an error outside of them."""
        super().other(line)
        if line.text and not line.text.startswith("#") and len(self._message) < _MOST_LINES:
            self._message.append(line.text)


def report(document: Any) -> Report | None:
    """Read what the json formatter prints."""
    summary = at(document, "summary")
    if not isinstance(summary, dict) or "example_count" not in summary:
        return None
    outside = amount(summary, "errors_outside_of_examples_count")
    failed, pending = amount(summary, "failure_count"), amount(summary, "pending_count")
    counts = Counts.out_of(amount(summary, "example_count"), failed, pending)
    details = [
        detail(
            f"{words(example, 'file_path')}:{amount(example, 'line_number')}",
            TestStatus.FAILED,
            words(example, "exception", "message"),
        )
        for example in members(document, "examples")
        if words(example, "status") == "failed"
    ]
    return Report("rspec", counts + Counts(failed=outside), details)
