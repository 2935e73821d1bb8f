"""A run of the fleet in words: its state, its iterations, its cost. Pure.

What agents, branches and databases say goes through `one_line` where it is printed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rooda.base.colors import Color
from rooda.base.numbers import count, money
from rooda.base.times import DAY
from rooda.fleet.run_model import Order, Run, RunProgress, RunState
from rooda.loop.result import IterationStatus
from rooda.loop.stops import StopRule
from rooda.run.outcome import LastAttempt, RunOutcome

_ENDS = {
    RunState.FAILED: "failed",
    RunState.STOPPED: "stopped",
    RunState.CONFLICT: "conflict",
    RunState.SET_ASIDE: "set aside",
}
_COLORS = {
    RunState.SUCCESS: Color.GOOD,
    RunState.FAILED: Color.BAD,
    RunState.CONFLICT: Color.BAD,
    RunState.SET_ASIDE: Color.BAD,
    RunState.STOPPED: Color.WARNING,
    RunState.QUEUED: Color.QUIET,
    RunState.BLOCKED: Color.QUIET,
}
FAILED = "failed: "  # the beginning of the headline of an iteration that failed
NO_REQUEST = "no pull request"
BATCH_SPENT = "the batch has cost"
# What `retry` needs after a limit has ended a run, by words of the reason.
_NEW_LIMITS = {
    BATCH_SPENT: " --max-cost USD (of all runs that were added with it)",
    f"({StopRule.MAX_COST.row.next.limit})": " --run-max-cost USD",
    StopRule.MAX_ITERATIONS.row.reason: " -n N",
}
_ORDERS = {Order.STOP: "stops after this iteration", Order.NOW: "stops now"}


def state_words(run: Run, states: Mapping[str, RunState], now: float) -> str:
    """Return where a run is; `states` are those of all runs of the project, by their names."""
    match run.state:
        case RunState.WORKING:
            words = f"waiting: {run.reason}" if run.reason else "working"
            return _ORDERS.get(run.order, words)
        case RunState.QUEUED:
            return _queued(run, now)
        case RunState.BLOCKED:
            return _blocked(run, states)
        case RunState.SUCCESS:
            return run.ended or f"branch only: git merge {run.branch}"
        case ended:
            words = _ENDS[ended]
            if run.ended:
                return run.ended
            if run.reason.startswith(words):
                return run.reason
            return f"{words}: {run.reason}" if run.reason else words


def _queued(run: Run, now: float) -> str:
    if run.not_before > now:
        why = f": {run.reason}" if run.reason else ""
        return f"waiting until {time_of(run.not_before, now)}{why}"
    labels = f" for a worker with {label_words(run.task.labels)}" if run.task.labels else ""
    return f"queued{labels}: {run.reason}" if run.reason else f"queued{labels}"


def label_words(labels: Sequence[str]) -> str:
    """Return `the label gpu`, or `the labels gpu, big`."""
    return f"the {'label' if len(labels) == 1 else 'labels'} {', '.join(labels)}"


def _blocked(run: Run, states: Mapping[str, RunState]) -> str:
    """Return what a run waits for, and why it will not start by itself."""
    left = [name for name in run.task.after if states.get(name) is not RunState.SUCCESS]
    lost = [f"{name} {_lost(states.get(name))}" for name in left if _is_lost(states.get(name))]
    if lost:
        return f"blocked: {', '.join(lost)}"
    return f"after {', '.join(left or run.task.after)}"


def _is_lost(state: RunState | None) -> bool:
    return state is None or (state.is_end and state is not RunState.SUCCESS)


def _lost(state: RunState | None) -> str:
    if state is None:
        return "is gone"
    return {RunState.FAILED: "failed", RunState.CONFLICT: "has a conflict"}.get(
        state, f"was {_ENDS.get(state, state)}"
    )


def next_words(run: Run) -> str:
    """Return the command that goes on after the end of a run; empty if there is none to name."""
    name = run.run
    if run.state is RunState.SUCCESS:
        if run.ended.startswith(NO_REQUEST):
            return f"git push origin {run.branch} && gh pr create --head {run.branch}"
        is_out = run.ended.startswith(("conflict", "verify failed"))
        return f"rooda fleet retry {name} --onto BRANCH" if is_out else ""
    if not run.state.is_end:
        return ""
    flag = next((flag for sign, flag in _NEW_LIMITS.items() if sign in run.reason), "")
    return f"rooda fleet retry {name}{flag}"


def color_of(run: Run) -> Color | None:
    """Return the color of the state."""
    if run.state is RunState.SUCCESS and run.ended.startswith("conflict"):
        return Color.BAD
    return _COLORS.get(run.state)


def iteration_words(run: Run) -> str:
    """Return `3/20`, or `3` if there is no limit; "" before the first one."""
    if not run.iteration and (run.state is not RunState.WORKING or not run.max_iterations):
        return ""
    return f"{run.iteration}/{run.max_iterations}" if run.max_iterations else f"{run.iteration}"


def progress_of(outcome: RunOutcome) -> RunProgress:
    """Return how far a run is after an iteration."""
    return RunProgress(
        iteration=outcome.iteration,
        max_iterations=outcome.max_iterations,
        cost=outcome.cost or 0.0,
        unknown_costs=outcome.costs_unknown,
        headline=headline_of(outcome.last),
    )


def headline_of(last: LastAttempt | None) -> str:
    """Return what an agent says of its iteration; if that failed, first of all why."""
    if last is None or last.status == IterationStatus.COMPLETED:
        return "" if last is None else last.headline
    return FAILED + "; ".join(filter(None, (last.reason or last.status, last.headline)))


def cost_words(cost: float, unknown: int, iterations: int = 0) -> str:
    """Return `$1.20`, `$1.20 + 2 unknown`, or `unknown` if no iteration told its cost."""
    if not unknown:
        return money(cost) if cost or iterations else ""
    return f"{money(cost)} + {unknown} unknown" if cost else "unknown"


def total_words(runs: Sequence[Run]) -> str:
    """Return `12 runs: 3 at work, 2 waiting, 5 success, 2 failed; $12.34 in all`."""
    groups = {
        "at work": [RunState.WORKING],
        "waiting": [RunState.QUEUED, RunState.BLOCKED],
        **{str(state): [state] for state in (RunState.SUCCESS, RunState.FAILED, RunState.STOPPED)},
        "conflict": [RunState.CONFLICT],
        "set aside": [RunState.SET_ASIDE],
    }
    counts = {name: sum(run.state in states for run in runs) for name, states in groups.items()}
    parts = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"{count(len(runs), 'run')}: {parts}; {_cost_in_all(runs)}"


def _cost_in_all(runs: Sequence[Run]) -> str:
    cost = sum(run.cost for run in runs)
    unknown = sum(run.unknown_costs for run in runs)
    if unknown and not cost:
        return f"cost unknown ({count(unknown, 'iteration')} told none)"
    told = f" ({count(unknown, 'iteration')} told no cost)" if unknown else ""
    return f"{money(cost)} in all{told}"


def budget_words(runs: Sequence[Run]) -> list[str]:
    """Return a line for each batch that has a budget."""
    found = []
    for batch in {run.batch.name: run.batch for run in runs}.values():
        if batch.max_cost is None:
            continue
        own = [run for run in runs if run.batch.name == batch.name]
        cost = batch.forgotten_cost + sum(run.cost for run in own)
        unknown = sum(run.unknown_costs for run in own)
        told = f"; {count(unknown, 'iteration')} told no cost" if unknown else ""
        words = f"{money(cost)} of {money(batch.max_cost)}{told}"
        found.append(f"Batch {batch.name}: {words}")
    return found


def time_of(moment: float, now: float) -> str:
    """Return the local time of day, with the day if it is not within a day: `03:10`."""
    local = datetime.fromtimestamp(moment).astimezone()
    day = "" if abs(moment - now) < DAY else f"{local:%a} {local.day} {local:%b} "
    return f"{day}{local:%H:%M}"
