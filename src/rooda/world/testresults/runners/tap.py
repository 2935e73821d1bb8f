"""TAP in any language, and two programs that use it: bats (shell) and prove (Perl)."""

import re
from collections import Counter

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    OTHER,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    number,
    rest_passed,
    tally,
)

# -- tap ---------------------------------------------------------------------------------------

_TAP_DIRECTIVE = re.compile(r"(?:^| )# ?(?:skip|todo)\b", re.IGNORECASE)
_TAP_TIMING = re.compile(r" # time=\S+| in \d+ ?ms$")
_TAP_SLACK = 1  # columns by which a line number in front may shift a line
_TAP_FEW = 2  # the minimum number of points in a stream without a plan


class _Stream:
    """One TAP stream: its points by indentation, its plan and its footer."""

    def __init__(self) -> None:
        self.points: dict[int, Counter[str]] = {}
        self.level: int | None = None  # indentation of the outermost plan or point
        self.plan: int | None = None
        self.planned_at = 0  # indentation of the plan
        self.blocks = False
        self.footer: dict[str, int] = {}
        self.last: OutputLine | None = None

    def is_nested(self, line: OutputLine) -> bool:
        """Return whether the line is indented more than the outermost points."""
        return self.level is not None and line.indent > self.level + _TAP_SLACK

    def has_outermost_at(self, line: OutputLine) -> bool:
        """Return whether a point in this column belongs to the outermost points."""
        return line.indent in self.points and not self.is_nested(line) and not self.blocks

    def reach(self, line: OutputLine) -> None:
        """Record a line of the stream."""
        self.last = line
        self.level = line.indent if self.level is None else min(self.level, line.indent)

    def counts(self) -> Counts | None:
        """Return the counts of the outermost level, or None if the lines are too few."""
        outermost: Counter[str] = Counter()
        level = min(self.points, default=0) + _TAP_SLACK
        for indent, points in self.points.items():
            if self.blocks or indent <= level:
                outermost += points
        if outermost.total() >= _TAP_FEW or (outermost and self.plan is not None):
            return Counts(outermost[PASSED], outermost[FAILED], outermost[SKIPPED])
        footer = self.footer
        if not self.points and {"tests", "pass"} <= footer.keys():
            skipped = footer.get("skip", 0) + footer.get("todo", 0)
            return Counts(footer["pass"], footer.get("fail", 0), skipped)
        return Counts() if self.plan == 0 else None


class Tap(RuleParser):
    """TAP, as Test::More, bats, tape, AVA, mocha, vitest and deno print it.

    The points of the outermost level count. A point that ends in `{` opens a block; then the points
    inside the blocks count. A stream that ends with node's summary is handled by `Node`.
    """

    runner = "TAP"
    marks = ("ok ", "1..0", "# pass", "# { total: ")

    def __init__(self) -> None:
        super().__init__()
        self._stream = _Stream()

    @on(r"TAP version \d+")
    def _version(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"1\.\.(?P<amount>\d{1,9})(?: *#.*)?")
    def _plan(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._stream.is_nested(line):
            return
        stream = self._stream
        of_subtest = line.indent < stream.planned_at - _TAP_SLACK
        if stream.plan is not None and stream.points and not of_subtest:
            self._end()
        self._stream.plan, self._stream.planned_at = number(match["amount"]), line.indent
        self._reach(line)

    @on(r"(?P<not>not )?ok (?P<number>\d{1,9})(?: (?:- )?(?P<name>.*))?")
    def _point(self, line: OutputLine, match: re.Match[str]) -> None:
        name = match["name"] or ""
        if match["number"] == "1" and self._stream.has_outermost_at(line):
            self._end()
        self._reach(line)
        self.end_message()
        if name.endswith("{"):
            self._stream.blocks = True
            return
        failed = FAILED if match["not"] else PASSED
        status = SKIPPED if _TAP_DIRECTIVE.search(name) else failed
        self._stream.points.setdefault(line.indent, Counter())[status] += 1
        if status == FAILED:
            self.fail(line, _TAP_TIMING.sub("", name) or f"test {match['number']}")

    @on(r"# (?P<key>tests|pass|fail|skip|todo) +(?P<amount>\d{1,9})")
    def _sum(self, line: OutputLine, match: re.Match[str]) -> None:
        if match["key"] != "tests" and self._stream.last is None:
            return  # the rest of node's summary
        self._stream.footer[match["key"]] = number(match["amount"])
        self._reach(line)
        self.end_message()

    @on(r"# \{ total: \d+, (?P<counts>(?:\w+: \d{1,9}(?:, )?)+) \}")
    def _node_tap(self, line: OutputLine, match: re.Match[str]) -> None:
        """Use the sum of node-tap instead of the points, because its outermost points are files."""
        pairs = (piece.split(": ") for piece in match["counts"].split(", "))
        sums = {key: number(amount) for key, amount in pairs}
        skipped = sums.get("skip", 0) + sums.get("todo", 0)
        self._stream = _Stream()
        self.close(line, Counts(sums.get("pass", 0), sums.get("fail", 0), skipped))

    @on(r"# (?:suites|cancelled) \d+")
    def _node(self, _: OutputLine, __: re.Match[str]) -> None:
        self._stream = _Stream()
        self.forget()

    @on(r"#+ *(?P<comment>.*)")
    def _comment(self, line: OutputLine, match: re.Match[str]) -> None:
        self.unmatched(line._replace(text=match["comment"]))

    @on(r"Bail out!(?P<why>.*)")
    def _bail_out(self, line: OutputLine, match: re.Match[str]) -> None:
        if self._stream.last is not None:
            self.error(line, "Bail out!", match["why"])

    def flush(self) -> None:
        """Close the open stream."""
        self._end()
        super().flush()

    def _reach(self, line: OutputLine) -> None:
        self.ensure_begun(line)
        self._stream.reach(line)

    def _end(self) -> None:
        stream, self._stream = self._stream, _Stream()
        counts = stream.counts()
        if counts is not None and stream.last is not None:
            self.close(stream.last, counts)


# -- bats --------------------------------------------------------------------------------------

_BATS_WORDS = {
    "test": TOTAL,
    "tests": TOTAL,
    "failure": FAILED,
    "failures": FAILED,
    "skipped": SKIPPED,
    "not run": OTHER,
}


class Bats(RuleParser):
    """`bats --pretty`: `4 tests, 1 failure, 1 skipped`; `Tap` handles the TAP output of bats.

    The line counts only if the same number of ticks and crosses is above it.
    """

    runner = "bats"
    marks = (" failure",)

    def _reset(self) -> None:
        self._marks = 0

    @on(r"✓ .*|- .* \(skipped.*\)(?: \[\d+\])?")
    def _ticks(self, _: OutputLine, __: re.Match[str]) -> None:
        self._marks += 1
        self.end_message()

    @on(r"✗ (?P<name>.*?)(?: \[\d+(?:ms)?\])?")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])
        self._marks += 1

    @on(r"(?P<counts>\d+ tests?, \d+ failures?(?:, \d+ [a-z ]+?)*)(?: in \d.*)?")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        sums = tally(match["counts"].split(","), _BATS_WORDS)
        if sums is not None and sums[TOTAL] == self._marks:
            self.close(line, rest_passed(sums))
        else:
            self.forget()


# -- prove -------------------------------------------------------------------------------------


class Prove(RuleParser):
    """prove: `Files=2, Tests=6,  0 wallclock secs`, and above it a report of the failures.

    The counts are in this line and in the report. Only `-v` names the skipped tests.
    """

    runner = "prove"
    marks = ("Files=",)

    def _reset(self) -> None:
        self._failed = self._skipped = 0
        self._file = ""

    @on(r"\S+\.t \.{2,}(?: .*)?")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)

    @on(r"(?P<file>\S+) +\(Wstat: .* Tests: \d+ Failed: (?P<failed>\d{1,9})\)")
    def _file_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self._file = match["file"]
        self._failed += number(match["failed"])
        if not number(match["failed"]):
            self.error(line, self._file)

    @on(r"(?:not )?ok \d+ .*# ?(?:skip|SKIP|todo|TODO)\b.*")
    def _skips(self, _: OutputLine, __: re.Match[str]) -> None:
        self._skipped += self.is_running

    @on(r"Failed tests?: (?P<tests>[\d, -]+)")
    def _tests_failed(self, line: OutputLine, match: re.Match[str]) -> None:
        for test in match["tests"].split(","):
            self.fail(line, f"{self._file} test {test.strip()}")
        self.end_message()

    @on(r"Files=\d+, Tests=(?P<tests>\d{1,9}), .*")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        self.close(line, Counts.out_of(number(match["tests"]), self._failed, self._skipped))
