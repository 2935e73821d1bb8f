"""The run itself: the pure parts in their order, and the world at the edge."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any

from rooda.config.plan import Plan
from rooda.config.settings import (
    FAILURE_THRESHOLD,
    FIRST_OUTPUT_TIMEOUT,
    IDLE_TIMEOUT,
    IGNORE_EXIT_STATUS,
    ITERATION_TIMEOUT,
    KEEP_PROCESSES,
    KILL_GRACE,
    MAX_DURATION,
    MAX_ITERS_EXIT_CODE,
    MAX_OUTPUT_BUFFER,
    MAX_TRANSCRIPT,
    RESULT_GRACE,
    SIGNALS_FAILURE,
    SIGNALS_MATCH,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
    Setting,
)
from rooda.loop import events, failure
from rooda.loop.events import Event
from rooda.loop.outcome import CUT_OFF, FailureKind, Outcome, Verdict, judge
from rooda.loop.promises import Promises, Prompt, Words, scan
from rooda.loop.state import Limits, State
from rooda.loop.stops import Rule, Stop, exit_code, stop
from rooda.process.clocks import Clock, Since
from rooda.process.events import InterruptSeen
from rooda.process.exits import Exited, Signalled, signal_name
from rooda.process.interrupts import Interrupts
from rooda.process.request import Listener, Request, Result, Transcript
from rooda.prompts.parts import PromptError
from rooda.workspace.state import open_prompt, open_transcript
from rooda.workspace.tree import changed_within, work_tree

Execute = Callable[[Request, Interrupts, Listener], Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """Where the loop touches the world."""

    emit: Callable[[Event], None]
    interrupts: Interrupts
    execute: Execute
    monotonic: Callable[[], float] = time.monotonic
    tick: float | None = None


def run(plan: Plan, edge: Edge, state: State | None = None) -> events.RunEnded:
    """Iterate until a stop condition holds."""
    began = edge.monotonic()
    state = state or State()
    limits = Limits(
        plan.values.iterations.maximum, plan.values[FAILURE_THRESHOLD], plan.values[MAX_DURATION]
    )
    before = state.elapsed
    edge.emit(events.RunStarted(plan.procedure, limits.max_iterations, plan.command.text))
    while True:
        elapsed = before + edge.monotonic() - began
        state = replace(state, elapsed=elapsed, interrupted=bool(edge.interrupts.received))
        if (found := stop(state, limits)) is not None:
            break
        state = _iterate(plan, limits, state, edge)
    if found.rule is Rule.INTERRUPTED and not _was_interrupted(state):
        # Between iterations nobody watched a process, so nobody has said it yet.
        edge.emit(InterruptSeen(signal_name(edge.interrupts.received[0])))
    ended = _ended(plan, limits, state, found, edge, edge.monotonic() - began)
    edge.interrupts.acknowledge()
    edge.emit(ended)
    return ended


def _was_interrupted(state: State) -> bool:
    return state.last is not None and state.last.verdict is Verdict.INTERRUPTED


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of starting the agent once; no result when it was not even started."""

    outcome: Outcome
    promises: Promises = field(default_factory=Promises)
    result: Result | None = None


def _iterate(plan: Plan, limits: Limits, state: State, edge: Edge) -> State:
    """One iteration: an attempt, its place in the state, and the story of it."""
    number, began = state.iteration + 1, edge.monotonic()
    edge.emit(events.IterationStarted(plan.procedure, number, limits.max_iterations))
    attempt = _attempt(plan, number, _clocks(plan, limits, state), edge)
    duration = edge.monotonic() - began
    after = state.after(attempt.outcome, duration)
    for event in _story(plan, limits, after, number, duration, attempt):
        edge.emit(event)
    return after


def _clocks(plan: Plan, limits: Limits, state: State) -> tuple[Clock, ...]:
    """The clocks that are on, by the names of their settings."""
    left = None if limits.max_duration is None else max(0.0, limits.max_duration - state.elapsed)
    values = plan.values
    clocks: tuple[tuple[Setting[Any], float | None, Since], ...] = (
        (FIRST_OUTPUT_TIMEOUT, values[FIRST_OUTPUT_TIMEOUT], Since.FIRST_OUTPUT),
        (IDLE_TIMEOUT, values[IDLE_TIMEOUT], Since.ACTIVITY),
        (ITERATION_TIMEOUT, values[ITERATION_TIMEOUT], Since.START),
        (RESULT_GRACE, values[RESULT_GRACE], Since.RESULT),
        (MAX_DURATION, left, Since.START),
    )
    return tuple(
        Clock(setting.key, limit, since, values[setting])
        for setting, limit, since in clocks
        if limit is not None
    )


def _attempt(plan: Plan, number: int, clocks: tuple[Clock, ...], edge: Edge) -> _Attempt:
    """Prompt, agent, signals, outcome."""
    trouble = _Trouble(number, edge)
    try:
        prompt = plan.prompt().encode("utf-8", "surrogateescape")
        edge.emit(events.PromptAssembled(number, len(prompt)))
        stdin = open_prompt(plan.workspace, prompt, trouble)
    except (PromptError, OSError) as error:
        hint = error.hint if isinstance(error, PromptError) else failure.room_advice(error)
        edge.emit(events.PromptFailed(number, str(error), hint))
        reason = f"prompt assembly: {error}"
        return _Attempt(Outcome(Verdict.ABORT, FailureKind.PROMPT, reason))
    with stdin, _transcript(plan, trouble) as transcript:
        result = _execute(plan, stdin, transcript, clocks, edge)
    promises = _scan(plan, number, prompt, result, edge)
    ignore = plan.values[IGNORE_EXIT_STATUS]
    outcome = judge(result.exit, promises, ignore_exit_status=ignore)
    return _Attempt(outcome, promises, result)


class _Trouble:
    """Tells once in an iteration that the state folder can't be written."""

    def __init__(self, number: int, edge: Edge) -> None:
        self._number = number
        self._edge = edge
        self._told = False

    def __call__(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            self._edge.emit(events.StateUnwritable(self._number, str(error)))


@contextlib.contextmanager
def _transcript(plan: Plan, trouble: "_Trouble") -> Iterator[Transcript | None]:
    """Files for what the agent prints; none where the disk has no room: then pipes must do."""
    files = open_transcript(plan.workspace, trouble)
    if files is None:
        yield None
        return
    with files[0] as stdout, files[1] as stderr:
        yield Transcript(stdout, stderr, plan.writes_to_files, plan.values[MAX_TRANSCRIPT])


def _execute(
    plan: Plan,
    stdin: IO[bytes],
    transcript: Transcript | None,
    clocks: tuple[Clock, ...],
    edge: Edge,
) -> Result:
    values = plan.values
    interrupts = edge.interrupts
    hurried = len(interrupts.received)
    request = Request(
        argv=plan.argv,
        cwd=plan.working_dir,
        environ=plan.environ,
        stdin=stdin,
        output_limit=values[MAX_OUTPUT_BUFFER],
        transcript=transcript,
        clocks=clocks,
        kill_grace=values[KILL_GRACE],
        keep=values[KEEP_PROCESSES] or (),
        tick=edge.tick,
        changed_within=lambda seconds: changed_within(
            work_tree(plan.working_dir), seconds, lambda: len(interrupts.received) > hurried
        ),
    )
    return edge.execute(request, interrupts, edge.emit)


def _scan(plan: Plan, number: int, prompt: bytes, result: Result, edge: Edge) -> Promises:
    """Look for signals on each stream, each on its own."""
    values = plan.values
    streams = values[SIGNALS_STREAMS]
    words = Words(
        values[SIGNALS_SUCCESS],
        values[SIGNALS_FAILURE],
        last_line_only=values[SIGNALS_MATCH] == "last-line",
    )
    prepared, promises = Prompt(prompt), Promises()
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        if stream.truncated:
            limit = values[MAX_OUTPUT_BUFFER]
            edge.emit(events.OutputTruncated(number, name, stream.total, limit))
        if streams in ("both", name):
            promises |= scan(stream.tail, words, prepared, truncated=stream.truncated)
    believed = not isinstance(result.exit, CUT_OFF)
    edge.emit(events.SignalsScanned(number, promises.success, promises.failure, believed))
    return promises


def _story(
    plan: Plan, limits: Limits, after: State, number: int, duration: float, attempt: _Attempt
) -> Iterator[Event]:
    """What to say of an iteration that has ended."""
    outcome, result = attempt.outcome, attempt.result
    word = _word_said(plan, attempt.promises)
    context = None
    if result is not None:
        if outcome.despite_exit and isinstance(result.exit, Exited | Signalled):
            name = result.exit.name if isinstance(result.exit, Signalled) else None
            yield events.ExitOverridden(number, word or "", result.exit.code, name)
        if outcome.kind is FailureKind.NOT_STARTED:
            hint = failure.suggestion(FailureKind.NOT_STARTED, result.exit, 0)
            command = failure.short_command(plan.command.text)
            yield events.StartFailed(number, command, outcome.reason, hint)
        if outcome.verdict is Verdict.FAILURE:
            context = failure.context(plan.command.text, outcome, result, word)
    yield events.IterationEnded(
        iteration=number,
        max_iterations=limits.max_iterations,
        duration=duration,
        verdict=outcome.verdict,
        promise_signal=word,
        truncated=result is not None and (result.stdout.truncated or result.stderr.truncated),
        despite_exit=outcome.despite_exit,
        consecutive_failures=after.consecutive_failures,
        threshold=limits.failure_threshold,
        failure=context,
        cleaned_up=result.cleaned_up if result is not None else (),
    )


def _word_said(plan: Plan, promises: Promises) -> str | None:
    if promises.failure:
        return plan.values[SIGNALS_FAILURE]
    return plan.values[SIGNALS_SUCCESS] if promises.success else None


def _ended(
    plan: Plan, limits: Limits, state: State, found: Stop, edge: Edge, total: float
) -> events.RunEnded:
    received = edge.interrupts.received
    return events.RunEnded(
        status=found.status,
        rule=found.rule,
        reason=found.reason,
        exit_code=exit_code(found.status, at_maximum=plan.values[MAX_ITERS_EXIT_CODE]),
        iterations=state.iteration,
        consecutive_failures=state.consecutive_failures,
        threshold=limits.failure_threshold,
        max_iterations=limits.max_iterations,
        promise_signal=plan.values[SIGNALS_SUCCESS] if found.rule is Rule.SIGNAL else None,
        signal=signal_name(received[0]) if received else None,
        total=total,
        stats=state.stats,
    )
