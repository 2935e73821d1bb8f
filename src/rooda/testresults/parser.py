"""What a parser is, and the base class of most: rules for lines, and the state of a run."""

import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from msgspec import Struct, field

from rooda.testresults.output_lines import OutputLine
from rooda.testresults.results import TestStatus
from rooda.testresults.suites import MOST_DETAILS, Counts, Suite, detail

_MOST_MESSAGE_LINES = 8
_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_FRAMES = ("at ", "› ", "goroutine ")  # the start of a stack frame, which ends a message


class Parser(Protocol):
    """Reads the output of one runner, line by line."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Every output of the runner that has results contains at least one of these texts."""

    def feed(self, line: OutputLine) -> None:
        """Read the next line."""

    def finish(self) -> list[Suite]:
        """Return the suites that were found, after the last line."""


class LineRule(NamedTuple):
    """A pattern, and the method that handles the lines that match it."""

    pattern: re.Pattern[str]
    handle: Callable[[Any, OutputLine, re.Match[str]], None]


def on(pattern: str) -> Callable[[Callable[[Any, OutputLine, re.Match[str]], None]], LineRule]:
    """Return a decorator: its method handles the lines that match the whole pattern."""
    return lambda handle: LineRule(re.compile(pattern), handle)


class _Failure(Struct):
    status: TestStatus
    message: list[str] = field(default_factory=list)


class RuleParser:
    """A parser made of rules; the first rule that matches a line handles it.

    A run goes from `begin` (or its first failure) to `close`. If a runner prints more after its
    counts, `hold` keeps the run open until the next run begins. Lines without a rule are the
    message of the failure before them, until `end_message`.

    A subclass sets `runner` and `marks`, and keeps its own state of a run in `_reset`.
    """

    runner: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]
    _rules: ClassVar[tuple[LineRule, ...]]
    _any_rule: ClassVar[re.Pattern[str]]

    _failures: dict[str, _Failure]
    _noting: _Failure | None  # the failure whose message the next lines are
    _first: int | None  # the first line of the run

    def __init_subclass__(cls) -> None:
        cls._rules = tuple(value for value in vars(cls).values() if isinstance(value, LineRule))
        # Most lines match no rule, and one combined pattern finds that out much faster.
        any_rule = "|".join(_GROUP_NAME.sub("(?:", rule.pattern.pattern) for rule in cls._rules)
        cls._any_rule = re.compile(any_rule)

    def __init__(self) -> None:
        self._suites: list[Suite] = []
        self._held: tuple[OutputLine, Counts] | None = None
        self._held_part: str | None = None
        self._run = 0
        self._parts: set[str] = set()
        self._command = 0
        self.forget()

    # -- lines -----------------------------------------------------------------------------------

    def feed(self, line: OutputLine) -> None:
        """Pass the line to the first rule that matches it."""
        if line.quoted or self._any_rule.fullmatch(line.text) is None:
            self.unmatched(line)
            return
        self.enter_command(line)
        for rule in self._rules:
            match = rule.pattern.fullmatch(line.text)
            if match is not None:
                rule.handle(self, line, match)
                return

    def unmatched(self, line: OutputLine) -> None:
        """Add a line without a rule to the message of the failure before it, if there is one."""
        if self._noting is None or not line.text:
            return
        message = self._noting.message
        if line.text.startswith(_FRAMES) or (line.numbered and message):
            self._noting = None
            return
        message.append(line.text)
        if len(message) >= _MOST_MESSAGE_LINES:
            self._noting = None

    def enter_command(self, line: OutputLine) -> None:
        """If the line belongs to the agent's next command, drop what the last one left open."""
        if line.command != self._command:
            self.flush()
            self.forget()
            self.next_run()
            self._command = line.command

    def finish(self) -> list[Suite]:
        """Return the suites that were found."""
        self.flush()
        return self._suites

    # -- a run -----------------------------------------------------------------------------------

    def begin(self, line: OutputLine) -> None:
        """Begin a run at this line: failures before it belong to another run."""
        self.flush()
        self.forget()
        self._first = line.number

    def ensure_begun(self, line: OutputLine) -> None:
        """Begin a run at this line if none is open."""
        if self._first is None:
            self._first = line.number

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and is not closed."""
        return self._first is not None

    def close(self, line: OutputLine, counts: Counts, part: str | None = None) -> None:
        """End the run with these counts.

        Parts of one run add up; a part that the run already has begins the next run.
        """
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
        """Let the suites from here on not add to those before."""
        self._run += 1
        self._parts.clear()

    def forget(self) -> None:
        """Drop the state of the run: it was closed, or its counts never came."""
        self._failures = {}
        self._noting = None
        self._first = None
        self._reset()

    def _reset(self) -> None:
        """Set the subclass's own state of a run, before the first run and after each one."""

    # -- failures --------------------------------------------------------------------------------

    def fail(
        self,
        line: OutputLine,
        name: str,
        message: str = "",
        status: TestStatus = TestStatus.FAILED,
    ) -> None:
        """Add a failed test; without a message, the following lines are its message."""
        self.ensure_begun(line)
        if self._held is not None:
            self._held = line, self._held[1]
        failure = self._failures.get(name) or _Failure(status)
        if len(self._failures) < MOST_DETAILS:
            self._failures[name] = failure
        if message:
            failure.message[:] = [message]
        self._noting = None if failure.message else failure

    def error(self, line: OutputLine, name: str, message: str = "") -> None:
        """Add an error, in a test or outside of the tests."""
        self.fail(line, name, message, TestStatus.ERROR)

    def retract_failure(self) -> None:
        """Remove the last failure: it turned out not to be a test."""
        if self._failures:
            self._failures.popitem()
        self._noting = None

    def end_message(self) -> None:
        """Let the following lines belong to no message."""
        self._noting = None

    @property
    def failures(self) -> int:
        """The number of failures in this run so far."""
        return len(self._failures)

    # -- a run that stays open after its counts --------------------------------------------------

    def hold(self, line: OutputLine, counts: Counts, part: str | None = None) -> None:
        """Keep these counts; more lines about this run may follow."""
        self.flush()
        self._held, self._held_part = (line, counts), part

    @property
    def held(self) -> Counts | None:
        """The counts of the run that is held open."""
        return self._held[1] if self._held else None

    def amend(self, line: OutputLine, counts: Counts) -> None:
        """Replace the counts of the run that is held open."""
        self._held = line, counts

    def hold_or_amend(self, line: OutputLine, counts: Counts) -> None:
        """Hold these counts, or replace those of the run that is held open."""
        (self.hold if self._held is None else self.amend)(line, counts)

    def drop_held(self) -> None:
        """Drop the held counts: better ones follow."""
        self._held = None

    def flush(self) -> None:
        """Close the run that is held open."""
        if self._held is not None:
            line, counts = self._held
            self._held = None
            self.close(line, counts, self._held_part)
