"""One iteration, as a list of stages: each takes the outcome so far and gives its own."""

from collections.abc import Callable, Collection

from rooda.config.settings import (
    GIT_COMMIT,
    GIT_PUSH,
    GIT_REQUIRE_CHANGES,
    IGNORE_EXIT_STATUS,
    MAX_OUTPUT_BUFFER,
    SIGNALS_FAILURE,
    SIGNALS_MATCH,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
    VERIFY_FEEDBACK,
)
from rooda.iteration.types import IterationStatus
from rooda.loop import ending, events, hooks, verify
from rooda.loop.agent import AgentSession, Budget, clocks
from rooda.loop.course import Course
from rooda.loop.hooks import Moment
from rooda.loop.outcome import CUT_OFF, FailureKind, Outcome, Verdict, judge, without_stand_in
from rooda.loop.promises import Promises, Prompt, Words, scan
from rooda.loop.publish import Publisher
from rooda.loop.state import State
from rooda.process.request import Result
from rooda.prompts.parts import PromptError
from rooda.workspace.state import VERIFY, keep_file


def iterate(course: Course) -> State:
    """Run the iteration through its stages; the state of the run after it."""
    edge, plan, limits = course.edge, course.plan, course.limits
    began = edge.monotonic()
    edge.emit(
        events.IterationStarted(
            plan.procedure,
            course.number,
            limits.max_iterations,
            course.state.attempt,
            plan.mode,
            course.work.task,
            course.work.spec,
            course.agent.name,
            course.agent.program.prints_events,
        )
    )
    outcome = _begin(course)
    if outcome is None:
        outcome = _run_agent(course)
        for stage in STAGES:
            outcome = stage(course, outcome)
    outcome = _after_failure(course, outcome)
    return ending.close(course, outcome, edge.monotonic() - began)


def _begin(course: Course) -> Outcome | None:
    """The hooks before it; what they object to."""
    if not hooks.are_set(course.plan, Moment.PRE_ITERATION):
        return None
    course.enter(IterationStatus.PRE_HOOKS)
    return course.hooks(Moment.PRE_ITERATION)


def _run_agent(course: Course) -> Outcome:
    """Prompt, agent, signals."""
    plan, edge, number = course.plan, course.edge, course.number
    session = AgentSession(
        plan,
        course.agent,
        number,
        course.place,
        clocks(plan, course.limits, course.state),
        edge,
        Budget.left(course.limits, course.state),
    )
    try:
        course.iteration.prompt = plan.prompt(course.state.feedback, number)
        prompt = course.iteration.prompt.encode("utf-8", "surrogateescape")
        edge.emit(events.PromptAssembled(number, len(prompt)))
        course.enter(IterationStatus.EXECUTING)
        course.executor.execute(course.iteration, session)
    except PromptError as error:
        edge.emit(events.PromptFailed(number, str(error), error.hint))
        return Outcome(Verdict.ABORT, FailureKind.PROMPT, f"prompt assembly: {error}")
    course.looks.tell(number, course.executor.seen)
    course.work = plan.work.done(course.work)
    course.process = result = session.result
    if result is None:
        raise AssertionError("an agent that was executed has a result")
    course.report = session.report
    course.promises = _scan(course, prompt, result)
    outcome = judge(
        result.exit,
        course.promises,
        course.report,
        changed=course.changed_anything,
        ignore_exit_status=plan.values[IGNORE_EXIT_STATUS],
    )
    return without_stand_in(outcome) if course.turn > 0 else outcome


def _scan(course: Course, prompt: bytes, result: Result) -> Promises:
    """Look for signals on each stream, each on its own."""
    values, edge, number = course.plan.values, course.edge, course.number
    streams = values[SIGNALS_STREAMS]
    words = Words(
        values[SIGNALS_SUCCESS],
        values[SIGNALS_FAILURE],
        last_line_only=values[SIGNALS_MATCH] == "last-line",
    )
    prepared, promises = Prompt(prompt), Promises()
    heard = _heard(course, streams)
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        if stream.truncated:
            limit = values[MAX_OUTPUT_BUFFER]
            edge.emit(events.OutputTruncated(number, name, stream.total, limit))
        if name in heard:
            promises |= scan(stream.tail, words, prepared, truncated=stream.truncated)
    if course.report is not None and course.report.speaks_events and streams != "stderr":
        spoken, truncated = course.report.spoken, course.report.truncated
        promises |= scan(spoken, words, prepared, truncated=truncated)
    believed = not isinstance(result.exit, CUT_OFF)
    edge.emit(events.SignalsScanned(number, promises.success, promises.failure, believed))
    return promises


def _heard(course: Course, streams: str) -> Collection[str]:
    """The streams on which the agent itself may speak, of those that the policy listens to.

    A known CLI that prints events speaks in them alone; as text most have their tools' output, or
    the prompt, on standard error.
    """
    wanted = {"stdout", "stderr"} if streams == "both" else {streams}
    report = course.report
    if report is None or report.is_mute:
        return wanted
    if report.speaks_events:
        return wanted if streams == "stderr" else ()
    on_stderr = course.agent.program.adapter.facts.speaks_on_stderr or streams == "stderr"
    return wanted if on_stderr else wanted - {"stderr"}


def _verify(course: Course, outcome: Outcome) -> Outcome:
    """The loop's own check, and what its tests say."""
    if not verify.is_due(course.plan, outcome):
        return outcome
    course.others_may_change_files()
    finished = verify.run(course.plan, course.number, course.edge)
    keep_file(course.plan.workspace, f"{course.place}/{VERIFY}", finished.output)
    if course.iteration.result is not None:
        result = course.executor.verified(course.iteration.result, finished.output)
        course.iteration.result = result
    course.feedback = verify.feedback(course.plan, finished)
    return verify.judge(outcome, finished)


def _require_changes(course: Course, outcome: Outcome) -> Outcome:
    """An agent that changed nothing has failed where the policy says so; one that is done has not.

    Where nobody can tell what changed, nobody can blame the agent.
    """
    wanted = course.plan.values[GIT_REQUIRE_CHANGES] and outcome.verdict is Verdict.SUCCESS
    if not wanted or course.changed_anything or course.state.touched:
        return outcome
    return Outcome(Verdict.FAILURE, FailureKind.NO_CHANGES, "No changes detected")


def _commit(course: Course, outcome: Outcome) -> Outcome:
    """Commit the work of a good iteration."""
    if not course.plan.values[GIT_COMMIT] or not outcome.is_good:
        return outcome
    course.others_may_change_files()
    result = course.iteration.result
    publisher = Publisher(course.plan, course.number, course.edge)
    outcome, words = publisher.commit(outcome, result.summary if result else None, course.work.task)
    if words and course.plan.values[VERIFY_FEEDBACK]:
        said = verify.indented(words)
        course.feedback = f"The last iteration could not be committed. Git says:\n\n{said}"
    return outcome


def _push(course: Course, outcome: Outcome) -> Outcome:
    """Push after every iteration that ran, a failed one too."""
    ran = outcome.verdict in (Verdict.SUCCESS, Verdict.DONE, Verdict.FAILURE)
    if course.plan.values[GIT_PUSH] and ran:
        Publisher(course.plan, course.number, course.edge).push()
    return outcome


def _post_hooks(course: Course, outcome: Outcome) -> Outcome:
    """The hooks after it. An objection makes a good iteration a failure, and can end the run."""
    is_over = outcome.verdict not in (Verdict.INTERRUPTED, Verdict.LIMITED)
    if not is_over or not hooks.are_set(course.plan, Moment.POST_ITERATION):
        return outcome
    course.enter(IterationStatus.POST_HOOKS)
    return _objected(outcome, course.hooks(Moment.POST_ITERATION, outcome))


def _after_failure(course: Course, outcome: Outcome) -> Outcome:
    """The hooks after a failure."""
    failed = outcome.verdict in (Verdict.FAILURE, Verdict.ABORT)
    if not failed or not hooks.are_set(course.plan, Moment.ON_FAILURE):
        return outcome
    course.enter(IterationStatus.POST_HOOKS)
    return _objected(outcome, course.hooks(Moment.ON_FAILURE, outcome))


def _objected(outcome: Outcome, objection: Outcome | None) -> Outcome:
    """What is left of an outcome once hooks had their say. A failure stays what it was."""
    if objection is None or outcome.verdict is Verdict.ABORT:
        return outcome
    if objection.verdict is Verdict.INTERRUPTED:
        return outcome  # what it amounted to is not undone; the run ends all the same
    if outcome.verdict is Verdict.FAILURE and objection.verdict is Verdict.FAILURE:
        return outcome
    return objection


STAGES: tuple[Callable[[Course, Outcome], Outcome], ...] = (
    _verify,
    _require_changes,
    _commit,
    _push,
    _post_hooks,
)
