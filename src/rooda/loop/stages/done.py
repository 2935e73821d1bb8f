"""Decides whether the work is done where the agent's word is not enough (`done_when`)."""

from msgspec.structs import replace

from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.context import IterationContext
from rooda.loop.events.verify import DoneCheckEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.stages import verify
from rooda.loop.stages.doneness import Answer, about_removed, by_command, by_tasks
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    DONE_WHEN,
    SHOW_AI_OUTPUT,
    SIGNALS_CONFIRM,
    SIGNALS_SUCCESS,
    VERIFY_TIMEOUT,
)
from rooda.plan.settings.text_kinds import BY_SIGNAL, done_command
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.tasks.standing import TaskLedger, TaskStanding
from rooda.world.tasks.task_file import Task, TaskFile, TaskFileError
from rooda.world.tools import Finished

# Reads the task file before and after the agent, which may change it, remove it or forge it.


def standing_of(plan: Plan, ledger: TaskLedger) -> TaskStanding | None:
    """Return where the run stands with its tasks now; None if it has no task file."""
    return None if plan.tasks is None else _standing(ledger, *_read(plan.tasks))


def note_tasks(context: IterationContext) -> None:
    """Note the tasks before the agent starts: what is gone after it, the agent has removed."""
    if context.plan.tasks is not None:
        context.tasks_before, _ = _read(context.plan.tasks)


def read_tasks(context: IterationContext) -> None:
    """Find out what the agent did to the tasks."""
    file = context.plan.tasks
    if file is None or not context.is_started:
        return
    now, trouble = _read(file)
    context.ledger = context.ledger.after_agent(context.tasks_before, now, file.read_done())
    context.standing = _standing(context.ledger, now, trouble)
    context.learn(tasks=context.standing.known_count)


def _read(file: TaskFile) -> tuple[tuple[Task, ...], str]:
    """Return the tasks, and why rooda can't read them."""
    try:
        return file.read(), ""
    except TaskFileError as error:
        return (), f"{file.shown} {error}"


def _standing(ledger: TaskLedger, tasks: tuple[Task, ...], trouble: str) -> TaskStanding:
    return replace(ledger.standing(tasks), trouble=trouble)


# -- stages ------------------------------------------------------------------------------------


def check_done(context: IterationContext) -> None:
    """Find out whether the work is done; if it is, the run ends, with or without the signal."""
    plan, outcome = context.plan, context.decided
    if plan.values[DONE_WHEN] == BY_SIGNAL or not outcome.is_good:
        return
    if done_command(plan.values[DONE_WHEN]) is not None:
        context.others_may_change_files()
    answer = _answer(plan, context.services, context.standing, context.number)
    if answer.interrupted:
        context.outcome = Outcome(Verdict.INTERRUPTED, reason=answer.why)
    elif answer.is_done:
        context.outcome = replace(outcome, verdict=Verdict.COMPLETE, done=answer.why)
    elif outcome.verdict is Verdict.COMPLETE:
        context.not_done = answer
    elif context.standing is not None and context.standing.removed:
        context.add_feedback(about_removed(context.standing, _file(plan)))


def refuse_success(context: IterationContext) -> None:
    """Count a SUCCESS as failed if the work is not done. verify has run: its words matter too."""
    answer = context.not_done
    if answer is None:
        return
    word = context.plan.values[SIGNALS_SUCCESS]
    context.add_feedback(f"You signaled {word}, but {answer.why}{answer.advice}")
    if context.decided.verdict is Verdict.COMPLETE:
        kind, evidence = FailureKind.NOT_DONE, answer.evidence
        context.outcome = Outcome(Verdict.FAILURE, kind, answer.why, evidence=evidence)


def done_before(plan: Plan, services: Services, ledger: TaskLedger) -> Outcome | None:
    """Return the outcome of a run whose work is done before its first iteration."""
    if plan.values[DONE_WHEN] == BY_SIGNAL or services.interrupts.received:
        return None
    answer = _answer(plan, services, standing_of(plan, ledger), 0)
    if answer.interrupted:
        return Outcome(Verdict.INTERRUPTED, reason=answer.why)
    words = f"nothing to do, {answer.why}"
    return Outcome(Verdict.COMPLETE, done=words) if answer.is_done else None


# -- answers -----------------------------------------------------------------------------------


def _answer(plan: Plan, services: Services, standing: TaskStanding | None, number: int) -> Answer:
    command = done_command(plan.values[DONE_WHEN])
    if command is not None:
        return by_command(command, _run(plan, services, command, number))
    return by_tasks(standing or TaskStanding(trouble="there is no task file"), _file(plan))


def _file(plan: Plan) -> str:
    return "" if plan.tasks is None else plan.tasks.shown


def _run(plan: Plan, services: Services, command: str, number: int) -> Finished:
    timeout = plan.values[VERIFY_TIMEOUT]
    finished = verify.run_command(plan, services, command, timeout, "done_when")
    if not finished.was_interrupted:
        services.emit(
            DoneCheckEnded(
                iteration=number,
                command=without_secret_values(command),
                exit_code=finished.exit_code,
                error=finished.error,
                duration=finished.duration,
                output=finished.last_words(verify.SHOWN),
                cleaned_up=finished.cleaned_up,
                is_shown=plan.values[SHOW_AI_OUTPUT],
            )
        )
    return finished


# The stage that asks for several iterations in a row with SUCCESS (`signals.confirm`).


_WORDS = (
    "An earlier iteration reported that the work is complete. Check this yourself: compare the "
    "work with the task, and try it out. If something is missing or wrong, go on with it. If "
    "nothing is, report again that the work is complete."
)


def confirm_success(context: IterationContext) -> None:
    """Let the run go on until enough iterations in a row have signaled SUCCESS."""
    needed, outcome = context.plan.values[SIGNALS_CONFIRM], context.decided
    if needed == 1 or outcome.verdict is not Verdict.COMPLETE:
        return
    number = context.state.successes + 1
    outcome = replace(outcome, successes=number)
    if number < needed:
        outcome = replace(outcome, verdict=Verdict.CONTINUE)
        context.add_feedback(_WORDS)
    context.outcome = outcome
