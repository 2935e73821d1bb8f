"""The run itself: the pure parts in their order, and the world at the edge."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rooda.config.plan import Plan
from rooda.config.settings import (
    FAILURE_THRESHOLD,
    IGNORE_EXIT_STATUS,
    ITERATION_TIMEOUT,
    KILL_GRACE,
    MAX_ITERS_EXIT_CODE,
    MAX_OUTPUT_BUFFER,
    SIGNALS_FAILURE,
    SIGNALS_MATCH,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
)
from rooda.loop import events, failure
from rooda.loop.events import Event
from rooda.loop.outcome import FailureKind, Outcome, Verdict, judge
from rooda.loop.promises import Promises, Prompt, Words, scan
from rooda.loop.promptfile import open_prompt
from rooda.loop.state import Limits, State, Status
from rooda.loop.stops import Stop, stop
from rooda.process import run as process
from rooda.process.events import InterruptSeen
from rooda.process.exits import Exited, Interrupted, NotStarted, Signalled, TimedOut, signal_name
from rooda.process.interrupts import Interrupts
from rooda.prompts.parts import PromptError

Execute = Callable[[process.Request, Interrupts, process.Listener], process.Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """Where the loop touches the world."""

    emit: Callable[[Event], None]
    interrupts: Interrupts
    execute: Execute = process.run
    monotonic: Callable[[], float] = time.monotonic
    tick: float | None = None


def run(plan: Plan, edge: Edge) -> events.RunEnded:
    """Iterate until a stop condition holds."""
    began = edge.monotonic()
    limits = Limits(plan.values.iterations.maximum, plan.values[FAILURE_THRESHOLD])
    edge.emit(events.RunStarted(plan.procedure, limits.max_iterations, plan.command.text))
    state = State()
    while (found := stop(_noticed(state, edge), limits)) is None:
        state = _iterate(plan, limits, state, edge)
    ended = _ended(plan, limits, state, found, edge, edge.monotonic() - began)
    edge.emit(ended)
    return ended


def _noticed(state: State, edge: Edge) -> State:
    return replace(state, interrupted=bool(edge.interrupts.received))


def _iterate(plan: Plan, limits: Limits, state: State, edge: Edge) -> State:
    """One iteration: prompt, agent, signals, outcome."""
    number, began = state.iteration + 1, edge.monotonic()
    edge.emit(events.IterationStarted(plan.procedure, number, limits.max_iterations))
    try:
        prompt = plan.prompt().encode("utf-8", "surrogateescape")
    except PromptError as error:
        edge.emit(events.PromptFailed(number, str(error), error.hint))
        aborted = Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, f"prompt assembly: {error}")
        return state.after(aborted, 0.0)
    edge.emit(events.PromptAssembled(number, len(prompt)))
    result = _execute(plan, prompt, edge)
    promises = _scan(plan, number, prompt, result, edge)
    ignore = plan.values[IGNORE_EXIT_STATUS]
    outcome = judge(result.exit, promises, ignore_exit_status=ignore)
    duration = edge.monotonic() - began
    after = state.after(outcome, duration)
    for event in _story(plan, limits, after, _Ended(number, duration, outcome, result, promises)):
        edge.emit(event)
    return after


@dataclass(frozen=True, slots=True)
class _Ended:
    """An iteration that has ended."""

    number: int
    duration: float
    outcome: Outcome
    result: process.Result
    promises: Promises


def _execute(plan: Plan, prompt: bytes, edge: Edge) -> process.Result:
    values = plan.values
    with open_prompt(plan.workspace, prompt) as stdin:
        request = process.Request(
            argv=plan.argv,
            cwd=plan.working_dir,
            environ=plan.environ,
            stdin=stdin,
            output_limit=values[MAX_OUTPUT_BUFFER],
            timeout=values[ITERATION_TIMEOUT],
            kill_grace=values[KILL_GRACE],
            tick=edge.tick,
        )
        return edge.execute(request, edge.interrupts, edge.emit)


def _scan(plan: Plan, number: int, prompt: bytes, result: process.Result, edge: Edge) -> Promises:
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
    believed = not isinstance(result.exit, TimedOut | Interrupted | NotStarted)
    edge.emit(events.SignalsScanned(number, promises.success, promises.failure, believed))
    return promises


def _story(plan: Plan, limits: Limits, after: State, ended: _Ended) -> Iterator[Event]:
    """What to say of an iteration that has ended."""
    number, maximum, end = ended.number, limits.max_iterations, ended.result.exit
    truncated = ended.result.stdout.truncated or ended.result.stderr.truncated
    outcome = ended.outcome
    match outcome.verdict:
        case Verdict.SUCCESS:
            yield events.IterationCompleted(number, maximum, ended.duration, truncated)
        case Verdict.DONE:
            word = plan.values[SIGNALS_SUCCESS] or ""
            if outcome.despite_exit and isinstance(end, Exited | Signalled):
                name = end.name if isinstance(end, Signalled) else None
                yield events.ExitOverridden(number, word, end.code, name)
            yield events.IterationDone(
                number, maximum, ended.duration, word, truncated, outcome.despite_exit
            )
        case Verdict.FAILURE:
            word_said = _word_said(plan, ended.promises)
            yield events.IterationFailed(
                number,
                maximum,
                ended.duration,
                after.consecutive_failures,
                limits.failure_threshold,
                failure.context(plan.command.text, outcome, ended.result, word_said),
            )
        case Verdict.INTERRUPTED:
            yield events.IterationInterrupted(number, maximum, ended.duration)
        case Verdict.ABORT:
            hint = failure.suggestion(FailureKind.NOT_STARTED, end, 0)
            yield events.StartFailed(number, plan.command.text, outcome.reason, hint)


def _word_said(plan: Plan, promises: Promises) -> str | None:
    if promises.failure:
        return plan.values[SIGNALS_FAILURE]
    return plan.values[SIGNALS_SUCCESS] if promises.success else None


def _ended(
    plan: Plan, limits: Limits, state: State, found: Stop, edge: Edge, total: float
) -> events.RunEnded:
    received = edge.interrupts.received
    if found.status is Status.INTERRUPTED and (
        state.last is None or state.last.verdict is not Verdict.INTERRUPTED
    ):
        # Between iterations nobody watched a process, so nobody has said it yet.
        edge.emit(InterruptSeen(signal_name(received[0])))
    codes = {
        Status.SUCCESS: 0,
        Status.ABORTED: 1,
        Status.MAX_ITERS: plan.values[MAX_ITERS_EXIT_CODE],
        Status.INTERRUPTED: 130,
    }
    return events.RunEnded(
        status=found.status,
        rule=found.rule,
        reason=found.reason,
        exit_code=codes[found.status],
        iterations=state.iteration,
        consecutive_failures=state.consecutive_failures,
        threshold=limits.failure_threshold,
        max_iterations=limits.max_iterations,
        promise_signal=plan.values[SIGNALS_SUCCESS] if found.rule == "signal" else None,
        signal=signal_name(received[0]) if received else None,
        total=total,
        stats=state.stats,
    )
