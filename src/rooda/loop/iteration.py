"""One iteration, from its hooks and prompt to its commit and push.

`run_iteration` goes through `STAGES` in order. A stage decides itself whether it applies.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.paths import shown_from
from rooda.loop import ending
from rooda.loop.context import IterationContext
from rooda.loop.events.agent import NoteTrouble
from rooda.loop.events.iteration import (
    IterationStarted,
    PromptAssembled,
    PromptFailed,
)
from rooda.loop.iteration_facts import IterationFacts, Segment, SegmentKind
from rooda.loop.note_delivery import prompt_with_notes
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.progress import without_signals
from rooda.loop.publish import publisher as publish_command
from rooda.loop.publish.commit_message import commit_message
from rooda.loop.publish.publisher import Publisher
from rooda.loop.result import Iteration, IterationStatus
from rooda.loop.services import Services
from rooda.loop.stages import hooks, protect
from rooda.loop.stages.agent import run_agent
from rooda.loop.stages.changes import find_changes
from rooda.loop.stages.checks import run_clean_check, run_verify
from rooda.loop.stages.done import (
    check_done,
    confirm_success,
    note_tasks,
    read_tasks,
    refuse_success,
)
from rooda.loop.stages.hooks import Moment
from rooda.loop.stages.promises import Promises
from rooda.loop.stages.signals import read_signals
from rooda.loop.stages.tree_check import check_tree
from rooda.loop.state import State, limits_of
from rooda.loop.stops import MOST_REFUSALS
from rooda.loop.waiting import note_user_changes, without_agent
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import PromptError
from rooda.plan.settings.settings import (
    EXPECTED_FILE,
    GIT_COMMIT,
    GIT_MESSAGE,
    GIT_PUBLISH,
    GIT_PUSH,
    GIT_REQUIRE_CHANGES,
)
from rooda.world.agents.agent_report import AgentReport
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.files.sight import read_named
from rooda.world.process.events import InterruptSeen
from rooda.world.process.exits import signal_name
from rooda.world.process.request import ProcessResult

_ENOUGH = 64 * 1024  # bytes of the expected file that show whether it has text


class IterationReport(Struct, frozen=True):
    """What came of one iteration, and the state of the run after it."""

    outcome: Outcome
    state: State
    iteration: Iteration
    process: ProcessResult | None
    agent: AgentReport | None
    promises: Promises


def run_iteration(plan: Plan, state: State, services: Services) -> IterationReport:
    """Run the next iteration of a run to its end."""
    limits, number = limits_of(plan), state.iteration + 1
    context = IterationContext(
        plan=plan,
        state=state,
        services=services,
        limits=limits,
        iteration=Iteration(number),
        facts=IterationFacts(
            number=number,
            attempt=state.attempt,
            status=str(IterationStatus.PENDING),
            agent=plan.agents[state.agent].name,
            truncated=False,
            incomplete=False,
            cleaned_up=(),
            failures_before=state.consecutive_failures,
            threshold=limits.failure_threshold,
            tasks=None if state.tasks is None else state.tasks.known_count,
        ),
        task=state.task,
        tests=state.tests,
        census=state.census,
        began=services.monotonic(),
        ledger=state.ledger,
        standing=state.tasks,
    )
    services.emit(_started(context))
    for stage in STAGES:
        _run_stage(stage, context)
    after = ending.close(context, services.monotonic() - context.began)
    return IterationReport(
        context.decided,
        after,
        context.iteration,
        context.process,
        context.report,
        context.promises,
    )


def _run_stage(stage: Callable[[IterationContext], None], context: IterationContext) -> None:
    """Run a stage, and note how long it took."""
    began = context.services.monotonic()
    stage(context)
    seconds = context.services.monotonic() - began
    kind = _SEGMENTS.get(stage)
    if kind is not None and seconds >= _SHORTEST_SEGMENT:
        segment = Segment(kind, began - context.began, seconds)
        context.learn(segments=(*context.facts.segments, segment))


def _started(context: IterationContext) -> IterationStarted:
    return IterationStarted(
        context.plan.procedure,
        context.number,
        context.limits.max_iterations,
        context.state.attempt,
        context.plan.mode,
        context.task.task,
        context.task.spec,
        context.agent.name,
        context.agent.program.prints_events,
        context.agent.program.adapter.name,
    )


def pre_hooks(context: IterationContext) -> None:
    """Run the `pre_iteration` hooks. A hook that objects skips the iteration."""
    if hooks.are_set(context.plan, Moment.PRE_ITERATION):
        context.enter(IterationStatus.PRE_HOOKS)
        context.outcome = context.run_hooks(Moment.PRE_ITERATION)


def assemble_prompt(context: IterationContext) -> None:
    """Read the prompt files again and join them."""
    if context.outcome is not None:
        return
    box = context.services.notes
    waiting = box.waiting() if box is not None else []
    try:
        context.iteration.prompt, context.notes = prompt_with_notes(
            context.plan, waiting, context.state.feedback, context.number
        )
    except PromptError as error:
        prompt_failed(context, error)
        return
    context.prompt = context.iteration.prompt.encode("utf-8", "surrogateescape")
    context.services.emit(PromptAssembled(context.number, len(context.prompt)))
    if len(context.notes) < len(waiting):
        left = len(waiting) - len(context.notes)
        trouble = f"max_prompt_size has no room for {left} of {len(waiting)} notes: they wait"
        context.services.emit(NoteTrouble(context.number, trouble))


def start_agent(context: IterationContext) -> None:
    """Run the agent to its end, with the prompt on its standard input."""
    if context.outcome is not None:
        return
    context.enter(IterationStatus.EXECUTING)
    if context.services.tracker is not None:
        context.services.tracker.refresh()
    protect.before_agent(context)
    if context.services.interrupts.received:
        interrupted(context)
        return
    note_tasks(context)
    context.services.note_program()
    try:
        run_agent(context)
    except PromptError as error:  # no room on the disk for the prompt
        prompt_failed(context, error)


def interrupted(context: IterationContext) -> None:
    """End the iteration without its agent: a signal came while rooda prepared it."""
    interrupts = context.services.interrupts
    name = signal_name(interrupts.received[0])
    if not interrupts.reported:
        interrupts.reported = True
        context.services.emit(InterruptSeen(name))
    context.outcome = Outcome(Verdict.INTERRUPTED, reason=name)


def prompt_failed(context: IterationContext, error: PromptError) -> None:
    """End the run: the next iteration would have the same trouble."""
    advice = context.plan.flag_names.advice(error.hint)
    context.services.emit(PromptFailed(context.number, str(error), advice))
    reason = f"prompt assembly: {error}"
    context.outcome = Outcome(Verdict.ABORT, FailureKind.PROMPT, reason)


def require_changes(context: IterationContext) -> None:
    """Count an iteration without changes as failed, where the user wants that.

    An agent that signals that the work is done needs no changes.
    """
    wanted = context.plan.values[GIT_REQUIRE_CHANGES]
    if not wanted or context.decided.verdict is not Verdict.CONTINUE:
        return
    if not context.changed_anything and not context.state.touched:
        reason = "No changes detected"
        seen = "the files and HEAD are as they were before the iteration"
        context.outcome = Outcome(Verdict.FAILURE, FailureKind.NO_CHANGES, reason, evidence=seen)


def require_file(context: IterationContext) -> None:
    """Count an iteration that ends the run without the expected file as failed."""
    name = context.plan.values[EXPECTED_FILE]
    if name is None or not context.decided.is_good or not _is_last(context):
        return
    path = Path(name)
    try:
        is_written = bool(read_named(path, _ENOUGH, context.plan.sight).strip())
        why = "" if is_written else "the file is empty"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        shown = shown_from(context.plan.working_dir, path)
        reason = f"the run would end without {shown}: {why}"
        context.outcome = Outcome(Verdict.FAILURE, FailureKind.NO_FILE, reason, evidence=str(path))


def commit(context: IterationContext) -> None:
    """Commit the work of a good iteration."""
    if not context.plan.values[GIT_COMMIT] or not context.decided.is_good:
        return
    context.others_may_change_files()
    context.services.note_program()  # a hook of the commit is one
    note_user_changes(context.services, context.number)
    publisher = Publisher(context.plan, context.number, context.services)
    context.outcome, words = publisher.commit(
        context.decided, _message(context), context.seen.left_out, context.failed_before
    )
    context.learn(commit=publisher.made)
    context.add_feedback(words)


def _message(context: IterationContext) -> str:
    """Return the message of the commit."""
    result = context.facts.result
    names = {
        "headline": context.facts.headline or "",
        "procedure": context.plan.procedure,
        "mode": context.plan.mode,
        "iteration": str(context.number),
        "run": context.services.run,
        "summary": one_line(without_signals((result.summary if result else None) or "")),
        "task": one_line(context.task.task),
    }
    names = {name: context.services.masker.text(words) for name, words in names.items()}
    return commit_message(context.plan.values[GIT_MESSAGE], names)


def push(context: IterationContext) -> None:
    """Push after every iteration that ran, a failed one too."""
    if context.plan.values[GIT_PUSH] and _ran(context.decided) and not context.refusal:
        context.others_may_change_files()  # a push takes minutes if the network is slow
        if protect.refuse_push(context, is_last=_is_last(context)):
            return
        publisher = Publisher(context.plan, context.number, context.services)
        with without_agent(context.services, context.number):
            context.add_feedback(publisher.push(is_last=_is_last(context)))


def publish(context: IterationContext) -> None:
    """Let the user's command publish every iteration that ran; if it refuses, the run ends."""
    if context.plan.values[GIT_PUBLISH] is None or not _ran(context.decided) or context.refusal:
        return
    context.others_may_change_files()
    made = context.facts.commit
    commit = context.seen.head if made is None else made.commit
    with without_agent(context.services, context.number):
        refused = publish_command.publish(context.plan, context.services, context.number, commit)
    context.outcome = refused or context.decided


def _ran(outcome: Outcome) -> bool:
    """Return whether the agent has worked to the end of the iteration, well or not."""
    ends = (Verdict.CONTINUE, Verdict.COMPLETE, Verdict.FAILURE)
    return outcome.verdict in ends and not outcome.skipped


def _is_last(context: IterationContext) -> bool:
    """Return whether the run ends after this iteration, as far as rooda can tell now."""
    outcome, limits = context.decided, context.limits
    if outcome.verdict is Verdict.COMPLETE:
        return True
    is_at_maximum = limits.max_iterations is not None and context.number >= limits.max_iterations
    if outcome.verdict is not Verdict.FAILURE:
        return is_at_maximum
    is_refused = outcome.kind is FailureKind.NOT_DONE
    is_aborted = (
        context.state.consecutive_failures + 1 >= limits.failure_threshold
        or context.state.refusals + is_refused >= MOST_REFUSALS
    )
    return is_aborted or (is_at_maximum and not limits.retry)


def post_hooks(context: IterationContext) -> None:
    """Run the `post_iteration` hooks. An objection makes a good iteration a failure."""
    outcome = context.decided
    ended = outcome.verdict not in (Verdict.INTERRUPTED, Verdict.LIMITED) and not outcome.skipped
    if ended and hooks.are_set(context.plan, Moment.POST_ITERATION):
        context.enter(IterationStatus.POST_HOOKS)
        objection = context.run_hooks(Moment.POST_ITERATION, outcome)
        context.outcome = _with_objection(outcome, objection)


def failure_hooks(context: IterationContext) -> None:
    """Run the `on_failure` hooks."""
    outcome = context.decided
    failed = outcome.verdict in (Verdict.FAILURE, Verdict.ABORT)
    if failed and hooks.are_set(context.plan, Moment.ON_FAILURE):
        context.enter(IterationStatus.POST_HOOKS)
        objection = context.run_hooks(Moment.ON_FAILURE, outcome)
        context.outcome = _with_objection(outcome, objection)


def _with_objection(outcome: Outcome, objection: Outcome | None) -> Outcome:
    """The outcome after hooks have run. A failure stays the failure that it was."""
    if objection is None or outcome.verdict is Verdict.ABORT:
        return outcome
    if objection.verdict is Verdict.INTERRUPTED:
        return outcome  # the iteration keeps its outcome; the run ends all the same
    if outcome.verdict is Verdict.FAILURE and objection.verdict is Verdict.FAILURE:
        return outcome
    return objection


STAGES: tuple[Callable[[IterationContext], None], ...] = (
    pre_hooks,
    check_tree,
    assemble_prompt,
    start_agent,
    check_tree,
    find_changes,
    protect.guard_files,
    read_tasks,
    read_signals,
    check_tree,  # what the first look has refused makes a good outcome a failure
    protect.require_protected,
    check_done,
    run_verify,
    check_tree,
    refuse_success,
    require_changes,
    require_file,
    run_clean_check,
    check_tree,
    protect.guard_files_again,
    confirm_success,
    commit,
    check_tree,
    push,
    publish,
    post_hooks,
    failure_hooks,
    check_tree,
)
_SHORTEST_SEGMENT = 0.001  # seconds
_SEGMENTS: Mapping[Callable[[IterationContext], None], SegmentKind] = {
    pre_hooks: SegmentKind.HOOKS,
    start_agent: SegmentKind.AGENT,
    check_done: SegmentKind.VERIFY,
    run_verify: SegmentKind.VERIFY,
    run_clean_check: SegmentKind.VERIFY,
    commit: SegmentKind.COMMIT,
    push: SegmentKind.PUSH,
    publish: SegmentKind.PUSH,
    post_hooks: SegmentKind.HOOKS,
    failure_hooks: SegmentKind.HOOKS,
}
