"""Finds the test results in the output of programs."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct, field

from rooda.base.formats import parse_json
from rooda.world.testresults.census import RunnerCount, TestCensus
from rooda.world.testresults.output_lines import decode, lines, plain
from rooda.world.testresults.parser import Parser
from rooda.world.testresults.registry import PARSERS
from rooda.world.testresults.results import (
    LIMIT,
    MOST_DETAILS,
    XML_REPORT,
    Counts,
    Suite,
    TestResults,
    TestStatus,
    may_have_results,
)

# Replaces each JSON event of an agent with the command output that the event contains.


_HINTS = ('"type":', '"role":')
_IDS = ("tool_use_id", "tool_call_id", "tool_id", "toolCallId", "callID", "id")
_NAMES = ("name", "tool_name", "toolName", "tool")
_INPUTS = {"input", "arguments", "args", "parameters"}
_OUTPUTS = {"output", "aggregated_output", "stdout", "stderr", "content", "text"}
_TOOLS = re.compile(r"tool|command_execution")
# Other tools return files, web pages or text of another agent. None of these is test output.
_COMMANDS = re.compile(r"bash|shell|command|exec|terminal|console|output", re.IGNORECASE)
_BOUNDARY = "$ command"


def unwrapped(text: str) -> str:
    """Return the text with the output of a command in place of each event that contains it."""
    if not text.startswith("{") and "\n{" not in text:
        return text
    events = _Events()
    return "\n".join(events.unwrap(line) for line in text.split("\n"))


class _Context(NamedTuple):
    """Where a value is in an event: whether it belongs to a tool, and to which call and tool."""

    in_tool: bool = False
    call: str = ""
    tool: str = ""


class _Events:
    """Remembers the tool of each call, because the output of a call is in a later event."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def unwrap(self, line: str) -> str:
        """Return the command output if the line is an event that has some, else the line itself."""
        if not line.startswith("{") or not any(hint in line for hint in _HINTS):
            return line
        printed = dict.fromkeys(self._printed(parse_json(line)))  # some events repeat the output
        return "\n".join([_BOUNDARY, *printed]) if printed else line

    def _printed(self, event: Any) -> Iterator[str]:
        rest: list[tuple[Any, _Context]] = [(event, _Context())]
        while rest:
            value, context = rest.pop()
            if isinstance(value, list):
                rest += [(item, context) for item in reversed(value)]
            elif isinstance(value, dict):
                context = self._entered(value, context)
                yield from _outputs(value, context)
                inner = reversed([item for key, item in value.items() if key not in _INPUTS])
                rest += [(item, context) for item in inner]

    def _entered(self, value: dict[str, Any], context: _Context) -> _Context:
        """Return the context for the values inside an object, and store the object's tool name."""
        kind = f"{value.get('type')} {value.get('role')}"
        call = _first(value, _IDS) or context.call
        tool = _first(value, _NAMES) or self._tools.get(call, context.tool)
        if call and tool:
            self._tools[call] = tool
        return _Context(context.in_tool or _TOOLS.search(kind) is not None, call, tool)


def _outputs(value: dict[str, Any], context: _Context) -> Iterator[str]:
    if context.in_tool and (not context.tool or _COMMANDS.search(context.tool)):
        for key, item in value.items():
            if key in _OUTPUTS and isinstance(item, str) and item:
                yield item


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), "")


# Selects the suites that count and adds them up.
#
# The suites of different runners add up, and so do the parts of one run. A later run of the same
# runner replaces an earlier one, unless one command ran both in different environments or packages
# (tox, npm workspaces). A suite inside the lines of another runner's run is ignored, because the
# outer runner started that suite and already counts it.
#
# Two runs are taken to cover the same tests if they have the same runner. The runner is the only
# identity that every output shows: agents rename files, packages and tests while they work, and
# many runners print no names when all tests pass.


def combine(*outputs: Iterable[Suite]) -> TestResults | None:
    """Return the sum of all suites that count (later outputs come last), or None without suites."""
    counting = _counting(outputs)
    if not counting:
        return None
    counts = sum((suite.counts for suite in counting), Counts())
    details = (detail for suite in counting for detail in suite.details)
    return TestResults(
        counts.total,
        counts.passed,
        counts.failed,
        counts.skipped,
        tuple(islice(details, MOST_DETAILS)),
    )


def census_of(suites: Iterable[Suite]) -> TestCensus | None:
    """Return how many tests each runner had in one output, or None without suites."""
    found: dict[str, RunnerCount] = {}
    for suite in _counting([suites]):
        before = found.get(suite.runner, RunnerCount(suite.runner, 0, 0))
        total, skipped = before.total + suite.counts.total, before.skipped + suite.counts.skipped
        # pytest counts a test that passed and failed in its teardown twice.
        is_extra = suite.runner == "pytest"
        errors = sum(detail.status is TestStatus.ERROR for detail in suite.details if is_extra)
        found[suite.runner] = RunnerCount(suite.runner, max(0, total - errors), skipped)
    return TestCensus(tuple(found[name] for name in sorted(found))) if found else None


def _counting(outputs: Iterable[Iterable[Suite]]) -> list[Suite]:
    """Return the suites that count."""
    counting: list[Suite] = []
    for suites in outputs:
        later = _last_runs(_without_repeats(_outermost(suites)))
        run_again = {suite.runner for suite in later}
        counting = [suite for suite in counting if suite.runner not in run_again] + later
    return counting


def _outermost(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites that are not enclosed by a run of another runner."""
    reach: dict[str, int] = {}
    outermost = []
    for suite in sorted(suites, key=lambda suite: (suite.first, -suite.last)):
        if not any(last >= suite.last for name, last in reach.items() if name != suite.runner):
            outermost.append(suite)
            reach[suite.runner] = max(suite.last, reach.get(suite.runner, 0))
    return outermost


def _without_repeats(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites without XML reports that repeat an earlier summary on the console."""
    seen: set[Counts] = set()
    kept = []
    for suite in sorted(suites, key=lambda suite: suite.last):
        if suite.runner != XML_REPORT:
            seen.add(suite.counts)
        elif suite.counts in seen:
            continue
        kept.append(suite)
    return kept


def _last_runs(suites: Iterable[Suite]) -> list[Suite]:
    """Return the suites of the last run of each runner."""
    runs: dict[str, _Run] = {}
    for suite in sorted(suites, key=lambda suite: suite.last):
        run = runs.get(suite.runner)
        if run is None or not run.takes(suite):
            run = runs[suite.runner] = _Run()
        run.add(suite)
    counting = (suite for run in runs.values() for suite in run.suites)
    return sorted(counting, key=lambda suite: suite.last)


class _Run(Struct):
    """The suites of one run of a runner; they add up."""

    suites: list[Suite] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)

    def takes(self, suite: Suite) -> bool:
        """Return whether the suite belongs to this run; otherwise the suite replaces the run."""
        before = self.suites[-1]
        if before.run == suite.run:
            return True
        scoped = suite.scope != "" and "" not in self.scopes
        return scoped and suite.scope not in self.scopes and before.command == suite.command

    def add(self, suite: Suite) -> None:
        self.suites.append(suite)
        self.scopes.add(suite.scope)


Parsers = Iterable[Callable[[], Parser]]


def read(text: str, parsers: Parsers = PARSERS) -> TestResults | None:
    """Return the test results in the last megabytes of a text, or None."""
    return combine(_suites(text, parsers))


def read_bytes(tail: bytes, limit: int = LIMIT) -> TestResults | None:
    """Return the test results in the last `limit` bytes of an output, or None."""
    return read(_text(tail, limit))


def read_outputs(*outputs: bytes) -> TestResults | None:
    """Return the test results of several outputs: the agent's streams, then the verify output.

    Results of different runners add up. If a runner occurs in several outputs, its results in the
    last of them replace the earlier ones, like a later run in the same output.
    """
    worthwhile = [output for output in outputs if may_have_results(output)]
    return combine(*(_suites(_text(output, LIMIT)) for output in worthwhile))


def count_tests(output: bytes) -> TestCensus | None:
    """Return how many tests each runner had in the output of a check, or None."""
    if not may_have_results(output):
        return None
    return census_of(_suites(_text(output, LIMIT)))


def _suites(text: str, parsers: Parsers = PARSERS) -> list[Suite]:
    """Return the suites that the parsers find, in no particular order."""
    if len(text) > LIMIT:
        text = text[-LIMIT:].partition("\n")[2]
    text = plain(unwrapped(text))
    # A parser can only find results if one of its marks occurs in the text; skip the others.
    every = (parser() for parser in parsers)
    active = [parser for parser in every if any(mark in text for mark in parser.marks)]
    for line in lines(text) if active else ():
        for parser in active:
            parser.feed(line)
    return [suite for parser in active for suite in parser.finish()]


def _text(tail: bytes, limit: int) -> str:
    """Return the decoded end of an output, without a first line that the limit truncated."""
    if len(tail) > limit:
        tail = tail[-limit:].partition(b"\n")[2]
    return decode(tail)
