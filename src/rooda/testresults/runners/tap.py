"""TAP, as Test::More, bats, tape, ava, mocha, vitest and deno print it."""

import re
from collections import Counter

from rooda.testresults.lines import Line
from rooda.testresults.parser import RuleParser, on
from rooda.testresults.suites import FAILED, PASSED, SKIPPED, Counts, number

_DIRECTIVE = re.compile(r"(?:^| )# ?(?:skip|todo)\b", re.IGNORECASE)
_TIMING = re.compile(r" # time=\S+| in \d+ ?ms$")
_SLACK = 1  # columns that a line number in front may shift a line
_FEW = 2  # so many points make a stream even without a plan


class _Stream:
    """One TAP stream: its points by how far they are indented, and what is said about them."""

    def __init__(self) -> None:
        self.points: dict[int, Counter[str]] = {}
        self.level: int | None = None  # of the outermost plan or point
        self.plan: int | None = None
        self.planned_at = 0  # how far the plan is indented
        self.blocks = False
        self.footer: dict[str, int] = {}
        self.last: Line | None = None

    def is_nested(self, line: Line) -> bool:
        """Whether the line is farther right than the outermost points."""
        return self.level is not None and line.indent > self.level + _SLACK

    def has_outermost_at(self, line: Line) -> bool:
        """Whether a point right here would go on with the outermost ones."""
        return line.indent in self.points and not self.is_nested(line) and not self.blocks

    def reach(self, line: Line) -> None:
        """Take note of a line that belongs to the stream."""
        self.last = line
        self.level = line.indent if self.level is None else min(self.level, line.indent)

    def counts(self) -> Counts | None:
        """The counts of the outermost level; None where too little speaks for a stream."""
        outermost: Counter[str] = Counter()
        level = min(self.points, default=0) + _SLACK
        for indent, points in self.points.items():
            if self.blocks or indent <= level:
                outermost += points
        if outermost.total() >= _FEW or (outermost and self.plan is not None):
            return Counts(outermost[PASSED], outermost[FAILED], outermost[SKIPPED])
        footer = self.footer
        if not self.points and {"tests", "pass"} <= footer.keys():
            skipped = footer.get("skip", 0) + footer.get("todo", 0)
            return Counts(footer["pass"], footer.get("fail", 0), skipped)
        return Counts() if self.plan == 0 else None


class Tap(RuleParser):
    """Counts the points of the outermost level; a `{` opens a block whose points count instead.

    Node's own summary at the end makes the stream node's, which `node.py` reads.
    """

    runner = "TAP"
    marks = ("ok ", "1..0", "# pass", "# { total: ")

    def __init__(self) -> None:
        super().__init__()
        self._stream = _Stream()

    @on(r"TAP version \d+")
    def _version(self, line: Line, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"1\.\.(?P<amount>\d{1,9})(?: *#.*)?")
    def _plan(self, line: Line, match: re.Match[str]) -> None:
        if self._stream.is_nested(line):
            return
        stream = self._stream
        of_subtest = line.indent < stream.planned_at - _SLACK
        if stream.plan is not None and stream.points and not of_subtest:
            self._end()
        self._stream.plan, self._stream.planned_at = number(match["amount"]), line.indent
        self._reach(line)

    @on(r"(?P<not>not )?ok (?P<number>\d{1,9})(?: (?:- )?(?P<name>.*))?")
    def _point(self, line: Line, match: re.Match[str]) -> None:
        name = match["name"] or ""
        if match["number"] == "1" and self._stream.has_outermost_at(line):
            self._end()
        self._reach(line)
        self.hush()
        if name.endswith("{"):
            self._stream.blocks = True
            return
        failed = FAILED if match["not"] else PASSED
        status = SKIPPED if _DIRECTIVE.search(name) else failed
        self._stream.points.setdefault(line.indent, Counter())[status] += 1
        if status == FAILED:
            self.fail(line, _TIMING.sub("", name) or f"test {match['number']}")

    @on(r"# (?P<key>tests|pass|fail|skip|todo) +(?P<amount>\d{1,9})")
    def _sum(self, line: Line, match: re.Match[str]) -> None:
        if match["key"] != "tests" and self._stream.last is None:
            return  # the rest of node's summary
        self._stream.footer[match["key"]] = number(match["amount"])
        self._reach(line)
        self.hush()

    @on(r"# \{ total: \d+, (?P<counts>(?:\w+: \d{1,9}(?:, )?)+) \}")
    def _node_tap(self, line: Line, match: re.Match[str]) -> None:
        """Take the sum of all files, which are the outermost points."""
        pairs = (piece.split(": ") for piece in match["counts"].split(", "))
        sums = {key: number(amount) for key, amount in pairs}
        skipped = sums.get("skip", 0) + sums.get("todo", 0)
        self._stream = _Stream()
        self.close(line, Counts(sums.get("pass", 0), sums.get("fail", 0), skipped))

    @on(r"# (?:suites|cancelled) \d+")
    def _node(self, _: Line, __: re.Match[str]) -> None:
        self._stream = _Stream()
        self.forget()

    @on(r"#+ *(?P<comment>.*)")
    def _comment(self, line: Line, match: re.Match[str]) -> None:
        self.other(line._replace(text=match["comment"]))

    @on(r"Bail out!(?P<why>.*)")
    def _bail_out(self, line: Line, match: re.Match[str]) -> None:
        if self._stream.last is not None:
            self.error(line, "Bail out!", match["why"])

    def flush(self) -> None:
        """Close the stream that is still open."""
        self._end()
        super().flush()

    def _reach(self, line: Line) -> None:
        self.started(line)
        self._stream.reach(line)

    def _end(self) -> None:
        stream, self._stream = self._stream, _Stream()
        counts = stream.counts()
        if counts is not None and stream.last is not None:
            self.close(stream.last, counts)
