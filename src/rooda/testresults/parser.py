"""What a parser is, and what most of them share: rules, and a memory of the failures."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from rooda.testresults.lines import Line
from rooda.testresults.suites import Counts, Suite
from rooda.testresults.types import TestDetail, TestStatus

MOST_DETAILS = 1000
_LONGEST_NAME = 400
_LONGEST_MESSAGE = 1000
_MOST_MESSAGE_LINES = 8
_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_FRAMES = ("at ", "› ", "goroutine ")  # of a stack, which ends the message


class Parser(Protocol):
    """Reads one runner's output, line by line."""

    @property
    def marks(self) -> tuple[str, ...]:
        """At least one of these is in every output of the runner that has results."""

    def feed(self, line: Line) -> None:
        """Take in the next line."""

    def finish(self) -> list[Suite]:
        """The suites that were found, once there are no more lines."""


class Rule(NamedTuple):
    """What to do with a line that matches."""

    pattern: re.Pattern[str]
    handle: Callable[[Any, Line, re.Match[str]], None]


def on(pattern: str) -> Callable[[Callable[[Any, Line, re.Match[str]], None]], Rule]:
    """Make a method the rule for lines that match the pattern as a whole."""
    return lambda handle: Rule(re.compile(pattern), handle)


def detail(name: str, status: TestStatus, message: str = "") -> TestDetail:
    """A detail that is bounded, whatever the runner printed."""
    return TestDetail(name[:_LONGEST_NAME], status, error=message[:_LONGEST_MESSAGE] or None)


@dataclass(slots=True)
class _Failure:
    status: TestStatus
    message: list[str] = field(default_factory=list)


class RuleParser:
    """A parser made of rules; the first whose pattern matches a line handles it.

    A run goes from `begin` (or its first failure) to `close`. Where a runner says more after its
    counts, `hold` keeps the run open until the next one begins. Lines that no rule handles are
    the message of the failure before them, until `hush`.
    """

    runner: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]
    _rules: ClassVar[tuple[Rule, ...]]
    _any_rule: ClassVar[re.Pattern[str]]

    def __init_subclass__(cls) -> None:
        cls._rules = tuple(value for value in vars(cls).values() if isinstance(value, Rule))
        # Nearly all lines match no rule at all, and one pattern finds that out much faster.
        any_rule = "|".join(_GROUP_NAME.sub("(?:", rule.pattern.pattern) for rule in cls._rules)
        cls._any_rule = re.compile(any_rule)

    def __init__(self) -> None:
        self._suites: list[Suite] = []
        self._held: tuple[Line, Counts] | None = None
        self._held_part: str | None = None
        self._run = 0
        self._parts: set[str] = set()
        self._command = 0
        self.forget()

    def forget(self) -> None:
        """Forget the run, which is closed or was never summed up; parsers add what they keep."""
        self._failures: dict[str, _Failure] = {}
        self._noting: _Failure | None = None
        self._first: int | None = None

    def feed(self, line: Line) -> None:
        """Hand the line to the first rule that matches."""
        if line.quoted or self._any_rule.fullmatch(line.text) is None:
            self.other(line)
            return
        self.enter(line)
        for rule in self._rules:
            match = rule.pattern.fullmatch(line.text)
            if match is not None:
                rule.handle(self, line, match)
                return

    def other(self, line: Line) -> None:
        """Take a line that no rule handles: it belongs to the message of a failure, or to none."""
        if self._noting is None or not line.text:
            return
        message = self._noting.message
        if line.text.startswith(_FRAMES) or (line.numbered and message):
            self._noting = None
            return
        message.append(line.text)
        if len(message) >= _MOST_MESSAGE_LINES:
            self._noting = None

    def finish(self) -> list[Suite]:
        """The suites that were found."""
        self.flush()
        return self._suites

    def begin(self, line: Line) -> None:
        """A run starts here: failures seen so far belong to another."""
        self.flush()
        self.forget()
        self._first = line.number

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and isn't closed."""
        return self._first is not None

    def started(self, line: Line) -> None:
        """A run has begun by now."""
        if self._first is None:
            self._first = line.number

    def fail(
        self, line: Line, name: str, message: str = "", status: TestStatus = TestStatus.FAILED
    ) -> None:
        """A test failed; the lines that follow are its message if none is given."""
        self.started(line)
        if self._held is not None:
            self._held = line, self._held[1]
        failure = self._failures.get(name) or _Failure(status)
        if len(self._failures) < MOST_DETAILS:
            self._failures[name] = failure
        if message:
            failure.message[:] = [message]
        self._noting = None if failure.message else failure

    def error(self, line: Line, name: str, message: str = "") -> None:
        """A test, or what should have run it, ended in an error."""
        self.fail(line, name, message, TestStatus.ERROR)

    def retract(self) -> None:
        """The failure that was named last turned out to be none of a test."""
        if self._failures:
            self._failures.popitem()
        self._noting = None

    def hush(self) -> None:
        """What follows is no message any more."""
        self._noting = None

    @property
    def failures(self) -> int:
        """How many failures of this run were named so far."""
        return len(self._failures)

    def close(self, line: Line, counts: Counts, part: str | None = None) -> None:
        """The runner summed up. Parts of one run add up; a part seen before is the next run's."""
        if part is None or part in self._parts:
            self.next_run()
        self._parts.add(part or "")
        suite = Suite(
            self.runner,
            counts,
            tuple(
                detail(name, failure.status, "\n".join(failure.message))
                for name, failure in self._failures.items()
            ),
            first=line.number if self._first is None else self._first,
            last=line.number,
            run=self._run,
            scope=line.scope,
            command=line.command,
        )
        self._suites.append(suite)
        self.forget()

    def next_run(self) -> None:
        """What is closed from here on doesn't add to what was closed before."""
        self._run += 1
        self._parts.clear()

    def hold(self, line: Line, counts: Counts, part: str | None = None) -> None:
        """The runner summed up, and more about this run may follow."""
        self.flush()
        self._held, self._held_part = (line, counts), part

    @property
    def held(self) -> Counts | None:
        """The counts of the run that is still open."""
        return self._held[1] if self._held else None

    def amend(self, line: Line, counts: Counts) -> None:
        """The runner said more about the counts of the run that is still open."""
        self._held = line, counts

    def revise(self, line: Line, counts: Counts) -> None:
        """The runner summed up again, for the same run."""
        (self.hold if self._held is None else self.amend)(line, counts)

    def release(self) -> None:
        """The counts that were held open turned out not to be the last word."""
        self._held = None

    def flush(self) -> None:
        """Close the run that was held open."""
        if self._held is not None:
            line, counts = self._held
            self._held = None
            self.close(line, counts, self._held_part)

    def enter(self, line: Line) -> None:
        """What a command left open when the next one began isn't the next one's."""
        if line.command != self._command:
            self.flush()
            self.forget()
            self.next_run()
            self._command = line.command
