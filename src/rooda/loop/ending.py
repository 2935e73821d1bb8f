"""Close an iteration: add it to the history, compute the next state, emit its end."""

from collections.abc import Iterator

from msgspec.structs import replace

from rooda.agents.failure_kinds import FailureKind
from rooda.config.plan import Plan
from rooda.config.settings import (
    SHOW_AI_OUTPUT,
    SIGNALS_CONFIRM,
    SIGNALS_FAILURE,
    SIGNALS_SUCCESS,
)
from rooda.loop import failure
from rooda.loop.agent_events import NoteTrouble
from rooda.loop.context import IterationContext, status_of
from rooda.loop.iteration_events import ExitOverridden, IterationEnded, StartFailed
from rooda.loop.note_delivery import was_received
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.promises import Promises
from rooda.loop.state import Progress, State
from rooda.loop.waiting import note_limit
from rooda.process.exits import Exited, Signalled
from rooda.text.event import Event
from rooda.workspace.tree_changes import LineCounts


def close(context: IterationContext, seconds: float) -> State:
    """Close the iteration, emit its events, and return the state of the run after it."""
    iteration, outcome = context.iteration, context.decided
    iteration.prompt = ""
    iteration.end(status_of(outcome), error="" if outcome.is_good else outcome.explained)
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
    if outcome.is_good or context.commit is not None:
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
    result, seen = context.iteration.result, context.seen
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
        word = word_said(context.plan, context.promises) or ""
        yield ExitOverridden(number, word, result.exit.code, name)
    if outcome.kind is FailureKind.NOT_STARTED:
        hint = failure.suggestion(FailureKind.NOT_STARTED, result.exit, 0)
        command = failure.short_command(context.agent.command.text)
        yield StartFailed(number, command, outcome.reason, hint)


def _ended(
    context: IterationContext, outcome: Outcome, after: State, seconds: float, progress: Progress
) -> IterationEnded:
    result, plan, limits = context.process, context.plan, context.limits
    word = word_said(plan, context.promises)
    failed = None
    is_told = outcome.verdict is Verdict.FAILURE or outcome.fault is not None
    if result is not None and is_told and outcome.verdict is not Verdict.LIMITED:
        advice = context.agent.program.adapter.facts.advice
        spoken = context.report.spoken if context.report and context.report.speaks_events else None
        command = context.agent.command.text
        is_shown = plan.values[SHOW_AI_OUTPUT]
        failed = failure.context(command, outcome, result, word, advice, spoken, is_shown=is_shown)
    return IterationEnded(
        iteration=context.number,
        max_iterations=limits.max_iterations,
        duration=seconds,
        verdict=outcome.verdict,
        promise_signal=word,
        truncated=result is not None and (result.stdout.truncated or result.stderr.truncated),
        despite_exit=outcome.despite_exit,
        consecutive_failures=after.consecutive_failures,
        threshold=limits.failure_threshold,
        failure=failed,
        cleaned_up=result.cleaned_up if result is not None else (),
        status=context.iteration.status,
        kind=outcome.kind,
        reason=outcome.explained,
        evidence=failure.evidence(outcome, context.promises, result),
        failures_before=context.state.consecutive_failures,
        returned_to=context.state.returned_to(progress.tree),
        result=context.iteration.result,
        state=after,
        attempt=context.state.attempt,
        task=context.task.task,
        agent=context.agent.name,
        usage=context.report.usage if context.report is not None else None,
        same_failures=after.same,
        incomplete=context.report is not None and not context.report.is_complete,
        headline=context.headline,
        segments=tuple(context.segments),
        commits=context.seen.commits,
        lines=LineCounts.of(context.seen.changes, context.seen.lines),
        commit=context.commit or (context.seen.head if context.seen.commits else None),
        commit_holds=context.commit_holds,
        tests_gained=_tests_gained(context),
        tests_lost=context.lost.brief if context.lost is not None else "",
        successes=outcome.successes,
        confirm=plan.values[SIGNALS_CONFIRM],
        tasks=None if context.standing is None else context.standing.known_count,
    )


def _tests_gained(context: IterationContext) -> int | None:
    """Return how many more tests passed than at the last count; None without two counts."""
    result, before = context.iteration.result, context.state.tests
    tests = None if result is None else result.test_results
    return None if tests is None or before is None else tests.passed - before.passed


def word_said(plan: Plan, promises: Promises) -> str | None:
    """Return the agent's signal, in the words of the settings."""
    if promises.failure:
        return plan.values[SIGNALS_FAILURE]
    return plan.values[SIGNALS_SUCCESS] if promises.success else None
