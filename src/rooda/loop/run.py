"""The run itself: iterations until a stop condition holds."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rooda.config.plan import Plan
from rooda.config.sensitive import without_secret_values
from rooda.config.settings import (
    BACKOFF,
    EXIT_CODE_AGENT,
    EXIT_CODE_GIT,
    EXIT_CODE_REQUIRED,
    EXIT_CODE_VERIFY,
    FAILURE_THRESHOLD,
    ITERATION_TIMEOUT,
    LIMIT_WAIT,
    MAX_ATTEMPTS,
    MAX_BACKOFF,
    MAX_COST,
    MAX_DURATION,
    MAX_ITERS_EXIT_CODE,
    MAX_LIMIT_WAIT,
    MAX_OUTAGE_WAIT,
    MAX_TOKENS,
    PARSE_TESTS,
    REQUIRED_FILE,
    REQUIRED_MESSAGE,
    SIGNALS_SUCCESS,
    STALL_THRESHOLD,
    TEST_REPORTS,
    WAIT_FOR_LIMITS,
)
from rooda.config.work import Work
from rooda.iteration.config import IterationConfig
from rooda.iteration.executor import IterationExecutor
from rooda.iteration.types import Iteration
from rooda.loop import agent_events, events, hooks
from rooda.loop.course import Course
from rooda.loop.edge import Edge
from rooda.loop.hooks import Moment, Story
from rooda.loop.iterate import iterate
from rooda.loop.looks import Looks
from rooda.loop.outcome import Verdict
from rooda.loop.state import Limits, State, Status
from rooda.loop.stops import ExitCodes, Rule, Stop, exit_code, stop
from rooda.loop.waiting import next_wait, note_outage, wait
from rooda.loop.waits import Limited, Patience, choose, first_free
from rooda.process.events import InterruptSeen
from rooda.process.exits import signal_name
from rooda.workspace.tools import Deadline


def limits_of(plan: Plan) -> Limits:
    """What ends a run of this plan."""
    values = plan.values
    attempts = values[MAX_ATTEMPTS]
    return Limits(
        values.iterations.maximum,
        values[FAILURE_THRESHOLD] if attempts is None else attempts,
        values[MAX_DURATION],
        values[STALL_THRESHOLD],
        retry=attempts is not None,
        max_cost=values[MAX_COST],
        max_tokens=values[MAX_TOKENS],
        patience=Patience(
            values[WAIT_FOR_LIMITS],
            values[MAX_LIMIT_WAIT],
            values[LIMIT_WAIT],
            values[BACKOFF],
            values[MAX_BACKOFF],
            values[MAX_OUTAGE_WAIT],
        ),
    )


def run(plan: Plan, edge: Edge, state: State | None = None) -> events.RunEnded:
    """Iterate until a stop condition holds. With a state, an earlier run goes on."""
    began = edge.monotonic()
    limits = limits_of(plan)
    resumed_at = None if state is None else state.iteration + 1
    state = state or State()
    before = state.elapsed
    if limits.max_duration is not None:
        end = began + limits.max_duration - before
        edge.tools.deadline = Deadline(lambda: end - edge.monotonic(), limits.max_duration)
    edge.emit(
        events.RunStarted(
            plan.procedure,
            limits.max_iterations,
            without_secret_values(plan.agent.command.text),
            edge.run,
            str(plan.workspace),
            resumed_at,
        )
    )
    looks, executor = Looks(edge), _executor(plan, edge)
    state = _prepare(plan, edge, looks, state)
    work: Work | None = None
    using = 0
    while True:
        now = edge.now()
        state = replace(
            state,
            elapsed=before + edge.monotonic() - began,
            interrupted=bool(edge.interrupts.received),
            stopping=edge.interrupts.end_wanted,
            missing=_missing(plan),
        )
        state = note_outage(state, plan.agents[using], limits.patience, now, edge.chance())
        state = replace(state, blocked=_blocked(plan, state, now))
        if (found := stop(state, limits)) is not None:
            break
        if (pause := next_wait(state, limits.patience, edge)) is not None:
            state = wait(plan, edge, state, pause, limits)
            continue
        using = _change_agent(plan, edge, state, using)
        iteration = Iteration(state.iteration + 1)
        if work is None or state.attempt == 1:  # a retry is about the same
            work = plan.work.now()
        state = iterate(Course(plan, limits, state, edge, executor, looks, iteration, using, work))
    if found.rule is Rule.STOPPED:
        edge.emit(events.StopRequested())
    if found.rule is Rule.INTERRUPTED and not (edge.interrupts.told or _was_interrupted(state)):
        # Between two programs nobody watches, so nobody has said it yet.
        edge.emit(InterruptSeen(signal_name(edge.interrupts.received[0])))
    total = before + edge.monotonic() - began
    ended = _ended(plan, limits, state, found, edge, total)
    edge.interrupts.acknowledge()
    story = Story(state.iteration or None, str(ended.status), _story_of(ended))
    hooks.run(Moment.LOOP_END, plan, edge, story)
    edge.emit(ended)
    return ended


def _blocked(plan: Plan, state: State, now: datetime) -> Limited | None:
    """The limit or outage that is over first, if no agent can work now."""
    if not state.limited:
        return None
    return first_free(_commands(plan), state.limited, now.timestamp())


def _commands(plan: Plan) -> list[str]:
    return [agent.command.text for agent in plan.agents]


def _change_agent(plan: Plan, edge: Edge, state: State, using: int) -> int:
    """The agent whose turn it is: the first that no usage limit and no outage holds."""
    if not state.limited and using == 0:
        return 0
    chosen = choose(_commands(plan), state.limited, edge.now().timestamp()) or 0
    if chosen != using:
        before, now = plan.agents[using].name, plan.agents[chosen].name
        is_back = chosen < using
        reason = "it can work again" if is_back else f"{before} can't work now"
        edge.emit(agent_events.AgentChanged(state.iteration + 1, before, now, reason))
    return chosen


def _executor(plan: Plan, edge: Edge) -> IterationExecutor:
    values = plan.values
    config = IterationConfig(
        timeout=values[ITERATION_TIMEOUT],
        working_dir=plan.working_dir,
        env_vars=plan.environ,
        track_file_changes=edge.tracker is not None,
        parse_tests=values[PARSE_TESTS],
        test_reports=values[TEST_REPORTS],
    )
    last = edge.history.get_last(1)
    tests = last[0].result.test_results if last and last[0].result else None
    return IterationExecutor(config, edge.tracker, tests)


def _prepare(plan: Plan, edge: Edge, looks: Looks, state: State) -> State:
    """A look at the tree as it is now, and the hooks before the first iteration."""
    if edge.tracker is not None:
        is_new = not state.trees
        seen = edge.tracker.snapshot("0" if is_new else None)
        if seen is not None and is_new:
            looks.tell(0, seen)
            state = replace(state, trees=((seen.tree, 0),) if seen.tree else ())
    if hooks.are_set(plan, Moment.LOOP_START):
        if edge.tracker is not None:
            edge.tracker.forget()
        story = Story(None, str(Status.RUNNING), {})
        objection = hooks.run(Moment.LOOP_START, plan, edge, story)
        if objection is not None and objection.verdict is Verdict.ABORT:
            state = replace(state, last=objection)
    return state


def _missing(plan: Plan) -> str:
    """What to say of a file that has to be there and is not."""
    name = plan.values[REQUIRED_FILE]
    if name is None or Path(name).is_file():
        return ""
    return plan.values[REQUIRED_MESSAGE] or f"{name} is missing (required_file)"


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


def _story_of(ended: events.RunEnded) -> dict[str, object]:
    return {
        "reason": ended.reason,
        "rule": str(ended.rule),
        "exit_code": ended.exit_code,
        "iterations": ended.iterations,
    }


def _ended(
    plan: Plan, limits: Limits, state: State, found: Stop, edge: Edge, total: float
) -> events.RunEnded:
    received = edge.interrupts.received
    return events.RunEnded(
        status=found.status,
        rule=found.rule,
        reason=found.reason,
        exit_code=exit_code(found, state.last, _exit_codes(plan)),
        iterations=state.iteration,
        consecutive_failures=state.consecutive_failures,
        threshold=limits.failure_threshold,
        max_iterations=limits.max_iterations,
        promise_signal=plan.values[SIGNALS_SUCCESS] if found.rule is Rule.SIGNAL else None,
        signal=signal_name(received[0]) if received else None,
        total=total,
        stats=state.stats,
        tokens=state.tokens,
        cost=state.cost,
        resume=edge.continuing(found.rule),
    )
