"""dart test and flutter test: `00:02 +5 ~1 -2: Some tests failed.`."""

import re

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import Counts, number


class Dart(RuleParser):
    """Every line has the counts so far; the last says what they come to."""

    runner = "dart test"
    marks = (": All tests passed!", ": Some tests failed.", ": All tests skipped.", "No tests ran.")

    @on(
        r"\d\d:\d\d(?: \+(?P<passed>\d{1,9}))?(?: ~(?P<skipped>\d{1,9}))?"
        r"(?: -(?P<failed>\d{1,9}))?: (?P<what>\S.*)"
    )
    def _progress(self, line: Line, match: re.Match[str]) -> None:
        self.started(line)
        self.hush()
        what = match["what"]
        if what.endswith(" [E]"):
            self.fail(line, what.removesuffix(" [E]"))
        elif f": {what}" in self.marks:
            sums = (number(match[key] or "") for key in ("passed", "failed", "skipped"))
            self.close(line, Counts(*sums))

    @on(r"No tests ran\.")
    def _nothing(self, line: Line, _: re.Match[str]) -> None:
        if self.is_running:
            self.close(line, Counts())
