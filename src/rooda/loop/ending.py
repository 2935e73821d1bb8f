"""Close an iteration: its place in the record and in the state, and the story of it."""

from collections.abc import Iterator
from dataclasses import replace

from rooda.config.plan import Plan
from rooda.config.settings import SIGNALS_FAILURE, SIGNALS_SUCCESS
from rooda.iteration.types import Printed
from rooda.loop import events, failure
from rooda.loop.course import Course, status_of
from rooda.loop.events import Event
from rooda.loop.outcome import FailureKind, Outcome, Verdict
from rooda.loop.promises import Promises
from rooda.loop.state import Progress, State
from rooda.loop.waiting import note_limit
from rooda.process.exits import Exited, Signalled


def close(course: Course, outcome: Outcome, seconds: float) -> State:
    """Close the iteration and tell of it; the state of the run after it."""
    iteration = course.iteration
    if iteration.result is not None:  # what was printed is on disk
        iteration.result = replace(iteration.result, printed=Printed())
    iteration.prompt = ""
    iteration.metadata.pop("error", None)
    iteration.end(status_of(outcome), error="" if outcome.is_good else outcome.reason)
    course.edge.history.add(iteration)
    progress = _progress(course)
    before = course.state
    if course.report is not None:
        before = before.spent(course.report.usage)
    after = before.after(outcome, seconds, progress, course.feedback, retry=course.limits.retry)
    after = note_limit(after, course.agent, outcome, course.limits.patience, course.edge)
    for event in _against_the_exit(course, outcome):
        course.edge.emit(event)
    course.edge.emit(_ended(course, outcome, after, seconds, progress))
    return after


def _progress(course: Course) -> Progress:
    """Whether it got anywhere; where nobody can tell, it has the benefit of the doubt."""
    result, seen = course.iteration.result, course.executor.seen
    if result is None:
        return Progress(made=False)
    return Progress(
        result.progress_detected or seen.changes is None, seen.tree, course.changed_anything
    )


def _against_the_exit(course: Course, outcome: Outcome) -> Iterator[Event]:
    """An exit that was overridden, or an agent that could not be started."""
    result, number = course.process, course.number
    if result is None:
        return
    if outcome.despite_exit and isinstance(result.exit, Exited | Signalled):
        name = result.exit.name if isinstance(result.exit, Signalled) else None
        word = word_said(course.plan, course.promises) or ""
        yield events.ExitOverridden(number, word, result.exit.code, name)
    if outcome.kind is FailureKind.NOT_STARTED:
        hint = failure.suggestion(FailureKind.NOT_STARTED, result.exit, 0)
        command = failure.short_command(course.agent.command.text)
        yield events.StartFailed(number, command, outcome.reason, hint)


def _ended(
    course: Course, outcome: Outcome, after: State, seconds: float, progress: Progress
) -> events.IterationEnded:
    result, plan, limits = course.process, course.plan, course.limits
    word = word_said(plan, course.promises)
    context = None
    is_told = outcome.verdict is Verdict.FAILURE or outcome.fault is not None
    if result is not None and is_told and outcome.verdict is not Verdict.LIMITED:
        advice = course.agent.program.adapter.facts.advice
        spoken = course.report.spoken if course.report and course.report.speaks_events else None
        command = course.agent.command.text
        context = failure.context(command, outcome, result, word, advice, spoken)
    return events.IterationEnded(
        iteration=course.number,
        max_iterations=limits.max_iterations,
        duration=seconds,
        verdict=outcome.verdict,
        promise_signal=word,
        truncated=result is not None and (result.stdout.truncated or result.stderr.truncated),
        despite_exit=outcome.despite_exit,
        consecutive_failures=after.consecutive_failures,
        threshold=limits.failure_threshold,
        failure=context,
        cleaned_up=result.cleaned_up if result is not None else (),
        status=course.iteration.status,
        kind=outcome.kind,
        reason=outcome.reason,
        evidence=failure.evidence(outcome, course.promises, result),
        failures_before=course.state.consecutive_failures,
        returned_to=course.state.returned_to(progress.tree),
        result=course.iteration.result,
        state=after,
        attempt=course.state.attempt,
        task=course.work.task,
        agent=course.agent.name,
        usage=course.report.usage if course.report is not None else None,
        same_failures=after.same,
        incomplete=course.report is not None and not course.report.is_complete,
    )


def word_said(plan: Plan, promises: Promises) -> str | None:
    """The signal that the agent gave, as the policy words it."""
    if promises.failure:
        return plan.values[SIGNALS_FAILURE]
    return plan.values[SIGNALS_SUCCESS] if promises.success else None
