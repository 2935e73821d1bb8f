"""pytest: `=== 1 failed, 2 passed in 0.12s ===`, with or without the bars, and pytest-sugar."""

import re
from collections import Counter

from rooda.testresults.lines import Line
from rooda.testresults.parser import MOST_DETAILS, RuleParser, on
from rooda.testresults.suites import (
    EXPECTED,
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    Counts,
    counted,
    tally,
)

_WORDS = {
    "passed": PASSED,
    "failed": FAILED,
    "error": FAILED,
    "errors": FAILED,
    "skipped": SKIPPED,
    "xfailed": EXPECTED,
    "xpassed": EXPECTED,
    "deselected": OTHER,
    "warning": OTHER,
    "warnings": OTHER,
    "rerun": OTHER,
    "subtests passed": OTHER,
}
_DURATION = re.compile(r"\d+\.\d\ds(?: \((?:\d+ days?, )?\d+:\d\d:\d\d\))?|\d+\.\d+ seconds")
_PLACE = re.compile(r"\S+\.(?:py$|\w+::)")
_NARROWEST = 20  # columns
_STATUSES = r"(?P<status>FAILED|ERROR|SUBFAIL(?:ED)?\S*(?: \([^()]*\))?)"


class Pytest(RuleParser):
    """Counts from the last line; `-qq` prints none, there the progress has a letter per test."""

    runner = "pytest"
    marks = (*(f" {word}" for word in _WORDS), "no tests ran", "[100%]")

    def forget(self) -> None:
        """Forget the run."""
        super().forget()
        self._letters: Counter[str] = Counter()
        self._list_at = -1
        self._headings: dict[str, None] = {}
        self._sugar_at = -1
        self._in_sugar = False

    @on(r"=+ test session starts =+|Test session starts \(.*\)")
    def _starts(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"(?:(?P<file>\S+\.\w+) )?(?P<letters>[.FEsxXRu,-]+)(?P<gap> +)\[ *(?P<percent>\d{1,3})%\]")
    def _progress(self, line: Line, match: re.Match[str]) -> None:
        if len(match["letters"] + match["gap"]) < _NARROWEST and not match["file"]:
            return  # another program's progress: ours is at the right border
        self.started(line)
        self._letters.update(match["letters"])
        if match["percent"] == "100":
            seen, self._letters = self._letters, Counter()
            failed, expected = seen["F"] + seen["E"], seen["x"] + seen["X"]
            self.hold(line, Counts(seen["."], failed, seen["s"], expected))

    @on(r"=+ (?:FAILURES|ERRORS) =+")
    def _tracebacks(self, line: Line, _: re.Match[str]) -> None:
        self.started(line)

    @on(r"_{2,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{2,}")
    def _heading(self, _: Line, match: re.Match[str]) -> None:
        if len(self._headings) < MOST_DETAILS:
            self._headings[match["name"]] = None

    @on(r"=+ short test summary info =+")
    def _list(self, line: Line, _: re.Match[str]) -> None:
        self._list_at = line.number

    @on(rf"(?:\[gw\d+\] \[ *\d+%\] )?{_STATUSES} (?P<name>\S.*)")
    def _listed(self, line: Line, match: re.Match[str]) -> None:
        name, message = _split(match["name"])
        if line.number == self._list_at + 1 or _PLACE.match(name):
            self._bad(line, match["status"], name, message)
            self._list_at = line.number

    @on(rf"(?P<name>\S+\.\w+::.+?) {_STATUSES}(?: +\[ *\d+%\])?")
    def _verbose(self, line: Line, match: re.Match[str]) -> None:
        self._bad(line, match["status"], match["name"], "")

    @on(r"!+ (?P<what>KeyboardInterrupt|_pytest\.outcomes\.Exit: .*?) !+")
    def _interrupted(self, line: Line, match: re.Match[str]) -> None:
        self.error(line, match["what"], "the run was interrupted")

    @on(r"=*+ ?(?P<counts>\d[^=]{1,200}|no tests ran) in (?P<duration>[^=]{2,40}?) ?=*+")
    def _counts(self, line: Line, match: re.Match[str]) -> None:
        pieces = [piece.strip() for piece in match["counts"].split(",")]
        # Plugins count other things too.
        known = [piece for piece in pieces if piece.partition(" ")[2] in _WORDS]
        sums = tally(known, _WORDS)
        nothing = pieces == ["no tests ran"]
        # It leaves out what there are none of; those who claim `5 passed, 0 failed` don't.
        printed = not any(piece.startswith("0 ") for piece in known)
        if sums and printed and (known or nothing) and _DURATION.fullmatch(match["duration"]):
            self.release()
            if sums[FAILED] and not self.failures:
                for name in self._headings:
                    self.fail(line, name)
            self.close(line, counted(sums))

    @on(r"Results \([\d.:]+s?\):")
    def _sugar(self, line: Line, _: re.Match[str]) -> None:
        self._sugar_at = line.number
        self._in_sugar = False

    @on(r"\d{1,9} [a-z]+")
    def _sugar_count(self, line: Line, match: re.Match[str]) -> None:
        sums = tally([match[0]], _WORDS)
        if sums is None or line.number != self._sugar_at + 1:
            return
        self._sugar_at = line.number
        if self._in_sugar:
            self.amend(line, (self.held or Counts()) + counted(sums))
        else:
            self.release()
            self.hold(line, counted(sums))
            self._in_sugar = True

    @on(r"- \S+:\d+ .*")
    def _sugar_name(self, line: Line, _: re.Match[str]) -> None:
        if line.number == self._sugar_at + 1:
            self._sugar_at = line.number

    def _bad(self, line: Line, status: str, name: str, message: str) -> None:
        (self.error if status == "ERROR" else self.fail)(line, name, message)
        self.hush()


def _split(listed: str) -> tuple[str, str]:
    """A listed name and its message; a parameter may have the separator in it."""
    name, _, message = listed.partition(" - ")
    while message and name.count("[") > name.count("]"):
        more, _, message = message.partition(" - ")
        name = f"{name} - {more}"
    return name, message
