"""The loop of a run: iterations until a stop rule holds."""

import contextlib
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.events.agent import AgentChanged, NotesWaiting
from rooda.loop.events.run import RunEnded, RunStarted, StopRequested, TasksLeft
from rooda.loop.iteration import run_iteration
from rooda.loop.next_steps import commands_at_end, resuming
from rooda.loop.outcome import Verdict
from rooda.loop.publish.publisher import whose_work
from rooda.loop.run_facts import RunFacts
from rooda.loop.services import Services
from rooda.loop.stages import hooks
from rooda.loop.stages.changes import report_tree
from rooda.loop.stages.checks import Baseline, run_baseline
from rooda.loop.stages.done import done_before, standing_of
from rooda.loop.stages.hooks import HookPayload, Moment
from rooda.loop.stages.tree_check import look, report_hard_links
from rooda.loop.state import Limits, State, Status, limits_of
from rooda.loop.stops import ExitCodes, Stop, StopRule, exit_code, stop
from rooda.loop.waiting import next_wait, note_disk, note_outage, note_user_changes, wait
from rooda.loop.waits import AgentHold, UsageLimit, choose, failure_pause, first_free, hold_of
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    EXIT_CODE_AGENT,
    EXIT_CODE_GIT,
    EXIT_CODE_REQUIRED,
    EXIT_CODE_VERIFY,
    KEEP_PROCESSES,
    MAX_ITERS_EXIT_CODE,
    SIGNALS_CONFIRM,
    SIGNALS_SUCCESS,
    VERIFY_CLEAN,
)
from rooda.world.git.clean_copy import remove_copies
from rooda.world.git.git import GitError
from rooda.world.process.events import InterruptSeen
from rooda.world.process.exits import signal_name
from rooda.world.state.folder import place_of
from rooda.world.testresults.results import TestResults
from rooda.world.tools import Deadline


def run_loop(plan: Plan, services: Services, state: State | None = None) -> RunEnded:
    """Iterate until a stop condition holds. With a state, an earlier run goes on."""
    began = services.monotonic()
    limits = _limits(plan, services, state)
    resumed_at = None if state is None else state.iteration + 1
    state = state or State()
    before = state.elapsed
    services.tools.keep = plan.values[KEEP_PROCESSES]
    if limits.max_duration is not None:
        end = began + limits.max_duration - before
        services.tools.deadline = Deadline(lambda: end - services.monotonic(), limits.max_duration)
    standing = standing_of(plan, state.ledger)
    services.emit(
        RunStarted(
            plan.procedure,
            limits.max_iterations,
            without_secret_values(plan.agent.command.text),
            services.run,
            str(plan.workspace),
            resumed_at,
            limits.once,
            before,
            state.cost,
            None if standing is None else standing.known_count,
        )
    )
    report_hard_links(services)
    state = _prepare(plan, services, replace(state, tests=_tests_before(services)))
    state = _check_before(plan, services, state)
    has_task = False
    while True:
        now = services.now()
        state = replace(
            state,
            elapsed=before + services.monotonic() - began,
            interrupted=bool(services.interrupts.received),
            stopping=services.interrupts.end_wanted,
            missing=plan.missing_file(),
            tasks=standing_of(plan, state.ledger),
        )
        state = note_disk(state, plan.disk_shortage())
        state = note_outage(
            state, plan.agents[state.agent], limits.patience, now, services.chance()
        )
        state = replace(state, blocked=_blocked(plan, state, now))
        if (found := stop(state, limits)) is not None:
            break
        if (pause := next_wait(state, limits.patience, services)) is not None:
            state = wait(plan, services, state, pause, limits)
            continue
        state = replace(state, agent=_change_agent(plan, services, state))
        state = replace(state, uncommitted=_uncommitted(services, state))
        if not has_task or state.attempt == 1:  # a retry is about the same task
            state, has_task = replace(state, task=plan.work.now()), True
        state = run_iteration(plan, state, services).state
    if found.rule is StopRule.STOPPED:
        services.emit(StopRequested())
    if found.rule is StopRule.INTERRUPTED and not (
        services.interrupts.reported or _was_interrupted(state)
    ):
        # The signal came between two programs, where no watch reports it.
        services.emit(InterruptSeen(signal_name(services.interrupts.received[0])))
    total = before + services.monotonic() - began
    ended = _ended(plan, limits, state, found, services, total)
    services.interrupts.acknowledge()
    with services.tools.noting():
        note_user_changes(services, state.iteration + 1)  # if a signal has ended a wait
    story = HookPayload(state.iteration or None, str(ended.status), _story_of(ended))
    hooks.run(Moment.LOOP_END, plan, services, story)
    look(services, state.iteration, place_of(services.run, state.iteration, state.attempt))
    _report_tasks(plan, services, state, found)
    _report_notes(services)
    services.emit(ended)
    return ended


def _limits(plan: Plan, services: Services, state: State | None) -> Limits:
    """Return the limits of the run, and of this start of it: where it pauses."""
    limits = limits_of(plan)
    if services.pause_after is None:
        return limits
    done = 0 if state is None else state.iteration
    return replace(limits, pause_at=done + services.pause_after)


def _report_tasks(plan: Plan, services: Services, state: State, found: Stop) -> None:
    """Name the tasks that nothing will finish: blocked ones, and open ones of a finished run.

    And those that an agent removed: who reads the file can't see them.
    """
    tasks = state.tasks
    if plan.tasks is None or tasks is None:
        return
    is_claimed = found.rule.row.is_claim
    names = tasks.unfinished if is_claimed else tasks.gone
    left = TasksLeft(names, tasks.blocked, plan.tasks.shown, is_claimed)
    if left.lists():
        services.emit(left)


def _report_notes(services: Services) -> None:
    """Name the notes of the user that no agent has got."""
    if services.notes is not None and (left := services.notes.unheard()):
        services.emit(NotesWaiting(len(left)))


def _blocked(plan: Plan, state: State, now: datetime) -> UsageLimit | None:
    """The limit or outage that is over first, if no agent can work now."""
    if not state.limited:
        return None
    return first_free(_commands(plan), state.limited, now.timestamp())


def _commands(plan: Plan) -> list[str]:
    return [agent.command.text for agent in plan.agents]


def _change_agent(plan: Plan, services: Services, state: State) -> int:
    """The agent whose turn it is: the first that no usage limit and no outage holds."""
    using = state.agent
    if not state.limited and using == 0:
        return 0
    chosen = choose(_commands(plan), state.limited, services.now().timestamp()) or 0
    if chosen != using:
        before, now = plan.agents[using].name, plan.agents[chosen].name
        is_back = chosen < using
        reason = "it can work again" if is_back else f"{before} can't work now"
        services.emit(AgentChanged(state.iteration + 1, before, now, reason))
    return chosen


def _uncommitted(services: Services, state: State) -> tuple[int, ...]:
    """The failed iterations whose work is uncommitted; others may have committed or undone it."""
    if state.uncommitted and services.user_files is not None:
        with contextlib.suppress(GitError):
            return whose_work(services, state.uncommitted, services.user_files.left_by_run())
    return state.uncommitted


def _tests_before(services: Services) -> TestResults | None:
    """The tests of the last iteration of an earlier start."""
    last = services.history.get_last(1)
    return last[0].result.test_results if last and last[0].result else None


def _prepare(plan: Plan, services: Services, state: State) -> State:
    """A look at the tree as it is now, and the hooks before the first iteration."""
    if plan.values[VERIFY_CLEAN] is not None and services.pin is not None:
        remove_copies(services.pin.top)
    if services.tracker is not None:
        is_new = not state.trees
        seen = services.tracker.snapshot("0" if is_new else None)
        if is_new:
            report_tree(services, 0, seen)
            state = replace(state, trees=((seen.tree, 0),) if seen.tree else ())
    if hooks.are_set(plan, Moment.LOOP_START):
        if services.tracker is not None:
            services.tracker.forget()
        story = HookPayload(None, str(Status.RUNNING), {})
        objection = hooks.run(Moment.LOOP_START, plan, services, story)
        if objection is not None and objection.verdict is Verdict.ABORT:
            state = replace(state, last=objection)
    return state


def _check_before(plan: Plan, services: Services, state: State) -> State:
    """Run the check once, and find out whether there is work to do, before any agent has started.

    If the check fails, there is.
    """
    is_new = (state.iteration, state.attempt) == (0, 1)
    if not is_new or state.last is not None or plan.missing_file():
        return state
    baseline = _baseline(plan, services)
    state = replace(
        state,
        last=baseline.outcome,
        census=baseline.census,
        failed_before=baseline.failure,
    )
    if baseline.outcome is None and not baseline.failed:
        done = done_before(plan, services, state.ledger)
        if done is not None and done.is_good and not baseline.ran:  # the check has to pass as well
            proof = _baseline(plan, services, is_needed=True)
            done = None if proof.failed and proof.outcome is None else proof.outcome or done
        state = replace(state, last=done)
    return state


def _baseline(plan: Plan, services: Services, *, is_needed: bool = False) -> Baseline:
    """The check before the first iteration; its changes to files are not those of an agent."""
    if services.interrupts.received:
        return Baseline()
    if services.tracker is not None:
        services.tracker.forget()
    return run_baseline(plan, services, is_needed=is_needed)


def _exit_codes(plan: Plan) -> ExitCodes:
    values = plan.values
    return ExitCodes(
        values[MAX_ITERS_EXIT_CODE],
        values[EXIT_CODE_AGENT],
        values[EXIT_CODE_VERIFY],
        values[EXIT_CODE_GIT],
        values[EXIT_CODE_REQUIRED],
    )


def _was_interrupted(state: State) -> bool:
    return state.last is not None and state.last.verdict is Verdict.INTERRUPTED


def _story_of(ended: RunEnded) -> dict[str, object]:
    return {
        "reason": ended.reason,
        "rule": ended.facts.rule,
        "exit_code": ended.facts.exit_code,
        "iterations": ended.facts.iterations,
    }


def _hold(state: State, services: Services) -> AgentHold | None:
    """Return the usage limit or outage because of which no agent can work."""
    blocked = state.blocked
    return None if blocked is None else hold_of(blocked, services.accounts.get(blocked.agent, ""))


def _retry_in(state: State, limits: Limits, found: Stop) -> float | None:
    """Return how long a paused run would have waited after its last failure; None if not at all."""
    if found.rule is not StopRule.PAUSED or not state.backoff_due:
        return None
    return failure_pause(state.backoffs, limits.patience) or None


def _next(limits: Limits, found: Stop, services: Services) -> dict[str, Any]:
    """Return the fields of the end that say how the user continues the run."""
    if services.commands is None:
        return {}
    value_of = partial(getattr, limits)
    resumed = resuming(services.commands, found.rule, value_of)
    return {
        "resume": "" if resumed is None else resumed.command,
        "next_commands": commands_at_end(services.commands, found.rule, value_of),
    }


def _ended(
    plan: Plan, limits: Limits, state: State, found: Stop, services: Services, total: float
) -> RunEnded:
    received = services.interrupts.received
    is_claim = found.rule.row.is_claim and found.rule.row.is_good
    facts = RunFacts(
        status=str(found.status),
        rule=str(found.rule),
        exit_code=exit_code(found, state.last, _exit_codes(plan)),
        signal=signal_name(received[0]) if received else None,
        iterations=state.iteration - state.skipped,
        max_iterations=limits.max_iterations,
        consecutive_failures=state.consecutive_failures,
        threshold=limits.failure_threshold,
        total=total,
        stats=state.stats.summary(),
        tokens=state.tokens or None,
        cost=state.cost or None,
        tasks=None if state.tasks is None else state.tasks.known_count,
    )
    return RunEnded(
        facts,
        reason=found.reason,
        promise_signal=plan.values[SIGNALS_SUCCESS] if is_claim else None,
        **_next(limits, found, services),
        limit=_hold(state, services),
        retry_in=_retry_in(state, limits, found),
        successes=state.successes,
        confirm=plan.values[SIGNALS_CONFIRM],
    )
