"""mocha, all its reporters that print counts: `3 passing (9ms)`, `2 pending`, `2 failing`."""

import re
from typing import Any

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, detail, on
from rooda.testresults.reports import Report, amount, at, loaded, members, words
from rooda.testresults.suites import Counts
from rooda.testresults.types import TestStatus

_MOST_TITLES = 12


class Mocha(RuleParser):
    """The counts come first, then the failures, each with its titles line by line."""

    runner = "mocha"
    marks = (" passing (", '["end",', "Error: No test files found")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._titles: list[str] | None = None

    @on(r"(?P<passed>\d{1,9}) passing \(.+\)")
    def _passing(self, line: Line, match: re.Match[str]) -> None:
        self.hold(line, Counts(passed=int(match["passed"])))

    @on(r"(?P<amount>\d{1,9}) (?P<word>pending|failing)")
    def _more(self, line: Line, match: re.Match[str]) -> None:
        if self.held is not None:
            field = "skipped" if match["word"] == "pending" else "failed"
            self.amend(line, self.held + Counts(**{field: int(match["amount"])}))

    @on(r"\d{1,9}\) (?P<title>.+)")
    def _heading(self, line: Line, match: re.Match[str]) -> None:
        if self.held is not None and self.held.failed:
            self._titles = []
            self._title(line, match["title"])

    @on(r'\["(?P<event>fail|end)",(?P<data>\{.*\})\]')
    def _stream(self, line: Line, match: re.Match[str]) -> None:
        data = loaded(match["data"])
        if match["event"] == "fail":
            self.fail(line, words(data, "fullTitle"), words(data, "err"))
        else:
            self.close(line, _counts(data))

    @on(r"Error: No test files found.*")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        self.close(line, Counts())

    def other(self, line: Line) -> None:
        """Go on with the titles of a failure, or with its message."""
        if self._titles is None:
            super().other(line)
        elif line.text:
            self._title(line, line.text)

    def _title(self, line: Line, text: str) -> None:
        titles = [*(self._titles or []), text.removesuffix(":")]
        ends = text.endswith(":") or len(titles) >= _MOST_TITLES
        self._titles = None if ends else titles
        if ends:
            self.fail(line, " ".join(titles))


def report(document: Any) -> Report | None:
    """Read what the json reporter prints."""
    stats = at(document, "stats")
    if not isinstance(stats, dict) or not {"passes", "failures", "pending"} <= stats.keys():
        return None
    failed = [
        detail(words(test, "fullTitle"), TestStatus.FAILED, words(test, "err", "message"))
        for test in members(document, "failures")
    ]
    return Report("mocha", _counts(stats), failed)


def _counts(stats: Any) -> Counts:
    return Counts(amount(stats, "passes"), amount(stats, "failures"), amount(stats, "pending"))
