"""The parser interface, and a base class for parsers made of line rules."""

import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from msgspec import Struct, field

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.results import MOST_DETAILS, Counts, Suite, TestStatus, detail

_MOST_MESSAGE_LINES = 8
_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_FRAMES = ("at ", "› ", "goroutine ")  # a line that starts a stack frame ends the message


class Parser(Protocol):
    """Reads the output of one runner, line by line."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts of which each output with results of this runner contains at least one."""

    def feed(self, line: OutputLine) -> None:
        """Read the next line."""

    def finish(self) -> list[Suite]:
        """Return the suites found in all lines."""


class LineRule(NamedTuple):
    """A pattern, and the method that handles the lines that match it."""

    pattern: re.Pattern[str]
    handle: Callable[[Any, OutputLine, re.Match[str]], None]


def on(pattern: str) -> Callable[[Callable[[Any, OutputLine, re.Match[str]], None]], LineRule]:
    """Return a decorator; the decorated method handles lines that match the whole pattern."""
    return lambda handle: LineRule(re.compile(pattern), handle)


class _Failure(Struct):
    status: TestStatus
    message: list[str] = field(default_factory=list)


class RuleParser:
    """A parser made of rules; the first matching rule handles a line.

    A run starts at `begin` (or at its first failure) and ends at `close`. If a runner prints more
    after its counts, `hold` keeps the run open until the next run begins. Lines that match no rule
    are the message of the preceding failure, until `end_message`.

    A subclass sets `runner` and `marks`, and initializes its own per-run state in `_reset`.
    """

    runner: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]
    _rules: ClassVar[tuple[LineRule, ...]]
    _any_rule: ClassVar[re.Pattern[str]]

    _failures: dict[str, _Failure]
    _noting: _Failure | None  # the failure that collects the following lines as its message
    _first: int | None  # the number of the first line of the run

    def __init_subclass__(cls) -> None:
        cls._rules = tuple(value for value in vars(cls).values() if isinstance(value, LineRule))
        # Most lines match no rule; one combined pattern rejects them much faster.
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
        """Append a line that matches no rule to the message of the preceding failure, if any."""
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
        """Drop the open run of the previous command when a line of the next command arrives."""
        if line.command != self._command:
            self.flush()
            self.forget()
            self.next_run()
            self._command = line.command

    def finish(self) -> list[Suite]:
        """Return the suites found in all lines."""
        self.flush()
        return self._suites

    # -- a run -----------------------------------------------------------------------------------

    def begin(self, line: OutputLine) -> None:
        """Start a run at this line; earlier failures belong to another run."""
        self.flush()
        self.forget()
        self._first = line.number

    def ensure_begun(self, line: OutputLine) -> None:
        """Start a run at this line unless a run is open."""
        if self._first is None:
            self._first = line.number

    @property
    def is_running(self) -> bool:
        """Whether a run is open."""
        return self._first is not None

    def close(self, line: OutputLine, counts: Counts, part: str | None = None) -> None:
        """End the run with these counts.

        Parts of one run add up. A part name that the run already has starts the next run.
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
        """Start a new run: later suites replace the earlier ones instead of adding to them."""
        self._run += 1
        self._parts.clear()

    def forget(self) -> None:
        """Drop the state of the run, either because it was closed or because it had no counts."""
        self._failures = {}
        self._noting = None
        self._first = None
        self._reset()

    def _reset(self) -> None:
        """Initialize the subclass's per-run state, before the first run and after each run."""

    # -- failures --------------------------------------------------------------------------------

    def fail(
        self,
        line: OutputLine,
        name: str,
        message: str = "",
        status: TestStatus = TestStatus.FAILED,
    ) -> None:
        """Add a failed test; without a message, the following lines become its message."""
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

    def retract_failure(self, name: str | None = None) -> None:
        """Remove a failure, or the last one, which turned out not to be a failed test."""
        if name is not None:
            self._failures.pop(name, None)
        elif self._failures:
            self._failures.popitem()
        self._noting = None

    def end_message(self) -> None:
        """Stop collecting lines as the message of a failure."""
        self._noting = None

    @property
    def failures(self) -> int:
        """The number of failures in this run so far."""
        return len(self._failures)

    # -- a run that stays open after its counts --------------------------------------------------

    def hold(self, line: OutputLine, counts: Counts, part: str | None = None) -> None:
        """Store these counts and keep the run open, because more lines about it may follow."""
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
        """Drop the held counts, because better ones follow."""
        self._held = None

    def flush(self) -> None:
        """Close the run that is held open."""
        if self._held is not None:
            line, counts = self._held
            self._held = None
            self.close(line, counts, self._held_part)
