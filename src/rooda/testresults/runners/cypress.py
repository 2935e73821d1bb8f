"""cypress run: the table at the end, whose last line has the sums."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class Cypress(RuleParser):
    """Counts from the last line of the table; the specs' own output is mocha's, within the run."""

    runner = "cypress"
    marks = ("All specs passed!", " failed (")

    @on(r"\(Run Starting\)|Running:  \S.* \(\d+ of \d+\)")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"[✖×] +(?P<spec>\S+\.\w+) +(?:\d\d:\d\d|\d+m?s) +\d+ .*")
    def _spec_failed(self, line: Line, match: re.Match[str]) -> None:
        self.fail(line, match["spec"])
        self.hush()

    @on(
        r"[✔✖√×] +(?:All specs passed!|\d+ of \d+ failed \(\d+%\)) +\S+"
        r" +(?:\d+|-) +(?P<passed>\d+|-) +(?P<failed>\d+|-) +(?P<pending>\d+|-) +(?P<skipped>\d+|-)"
    )
    def _sums(self, line: Line, match: re.Match[str]) -> None:
        passed, failed, pending, skipped = (
            number(match[key]) for key in ("passed", "failed", "pending", "skipped")
        )
        self.close(line, Counts(passed, failed, pending + skipped))
