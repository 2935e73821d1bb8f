"""Close an iteration: add it to the history, compute the next state, emit its end."""

from collections.abc import Iterator

from msgspec.structs import replace

from rooda.base.event import Event
from rooda.loop import failure
from rooda.loop.context import IterationContext, status_of
from rooda.loop.events.agent import NoteTrouble
from rooda.loop.events.iteration import ExitOverridden, IterationEnded, StartFailed
from rooda.loop.failure import FailureContext
from rooda.loop.note_delivery import was_received
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.state import Progress, State
from rooda.loop.waiting import note_limit
from rooda.plan.settings.settings import SHOW_AI_OUTPUT, SIGNALS_CONFIRM
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.exits import Exited, Signalled


def close(context: IterationContext, seconds: float) -> State:
    """Close the iteration, emit its events, and return the state of the run after it."""
    iteration, outcome = context.iteration, context.decided
    iteration.prompt = ""
    error = "" if outcome.is_good else outcome.explained
    iteration.end(status_of(outcome), context.facts.result, error)
    context.services.history.add(iteration)
    progress = _progress(context)
    before = context.state
    if context.report is not None:
        before = before.spent(context.report.usage)
    after = before.after(
        outcome,
        seconds,
        progress,
        context.feedback,
        retry=context.limits.retry,
        pauses=context.agent.program.is_known or context.limits.patience.with_every_command,
    )
    after = replace(after, tests=context.tests, census=context.census)
    after = replace(after, uncommitted=_uncommitted(context, outcome), ledger=context.ledger)
    after = note_limit(after, context.agent, outcome, context.limits.patience, context.services)
    for event in _against_the_exit(context, outcome):
        context.services.emit(event)
    context.services.emit(_ended(context, outcome, after, seconds, progress))
    _finish_notes(context)
    return after


def _uncommitted(context: IterationContext, outcome: Outcome) -> tuple[int, ...]:
    """Return the failed iterations whose work the next commit may contain."""
    if outcome.is_good or context.facts.commit is not None:
        return ()
    before = context.state.uncommitted
    # Where rooda does not list the uncommitted files, commits of the agent may have left none.
    is_committed = context.seen.commits and context.services.user_files is None
    if not context.changed_files or is_committed or context.number in before:
        return before
    return (*before, context.number)


def _finish_notes(context: IterationContext) -> None:
    """Delete the user's notes that the agent has worked with."""
    box = context.services.notes
    if box is None or not context.is_started or not was_received(context.decided):
        return
    if trouble := box.finish(context.notes):
        error = f"a delivered note can't be deleted: {trouble}; run `rooda tell --clear` later"
        context.services.emit(NoteTrouble(context.number, error))


def _progress(context: IterationContext) -> Progress:
    """Return whether the iteration made progress; if rooda can't tell, it counts as progress."""
    result, seen = context.facts.result, context.seen
    if result is None:
        return Progress(made=False)
    return Progress(
        result.progress_detected or seen.changes is None, seen.tree, context.changed_anything
    )


def _against_the_exit(context: IterationContext, outcome: Outcome) -> Iterator[Event]:
    """Yield the event of an overridden exit, or of an agent that could not be started."""
    result, number = context.process, context.number
    if result is None:
        return
    if outcome.despite_exit and isinstance(result.exit, Exited | Signalled):
        name = result.exit.name if isinstance(result.exit, Signalled) else None
        yield ExitOverridden(number, context.facts.signal or "", result.exit.code, name)
    if outcome.kind is FailureKind.NOT_STARTED:
        hint = failure.suggestion(FailureKind.NOT_STARTED, result.exit, 0)
        command = failure.short_command(context.agent.command.text)
        yield StartFailed(number, command, outcome.reason, hint)


def _ended(
    context: IterationContext, outcome: Outcome, after: State, seconds: float, progress: Progress
) -> IterationEnded:
    context.learn(
        status=str(status_of(outcome)),
        duration=seconds,
        verdict=str(outcome.verdict),
        despite_exit=outcome.despite_exit,
        kind=outcome.kind and str(outcome.kind),
        reason=outcome.explained,
        evidence=failure.evidence(outcome, context.promises, context.process),
        failure=_failure(context, outcome),
        failures_after=after.consecutive_failures,
        same_failures=after.same,
        returned_to=context.state.returned_to(progress.tree),
        successes=outcome.successes or None,
    )
    confirm = context.plan.values[SIGNALS_CONFIRM]
    if outcome.successes:
        context.learn(confirm=confirm)
    return IterationEnded(
        context.facts,
        max_iterations=context.limits.max_iterations,
        confirm=confirm,
        task=context.task.task,
        tests_gained=_tests_gained(context),
        own_commit=context.seen.head if context.seen.commits else None,
        state=after,
    )


def _failure(context: IterationContext, outcome: Outcome) -> FailureContext | None:
    """Return the details of a failure of the agent, or of a fault that its CLI reported."""
    result = context.process
    is_told = outcome.verdict is Verdict.FAILURE or outcome.fault is not None
    if result is None or not is_told or outcome.verdict is Verdict.LIMITED:
        return None
    advice = context.agent.program.adapter.facts.advice
    spoken = context.report.spoken if context.report and context.report.speaks_events else None
    command, word = context.agent.command.text, context.facts.signal
    is_shown = context.plan.values[SHOW_AI_OUTPUT]
    return failure.context(command, outcome, result, word, advice, spoken, is_shown=is_shown)


def _tests_gained(context: IterationContext) -> int | None:
    """Return how many more tests passed than at the last count; None without two counts."""
    result, before = context.facts.result, context.state.tests
    tests = None if result is None else result.test_results
    return None if tests is None or before is None else tests.passed - before.passed
