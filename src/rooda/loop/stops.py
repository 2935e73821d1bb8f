"""When a run ends. A stop condition is a function in the tuple; the first that speaks decides."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from rooda.loop.outcome import Verdict
from rooda.loop.state import Limits, State, Status
from rooda.text.durations import format_duration


class Rule(StrEnum):
    """What ended a run."""

    INTERRUPTED = "interrupted"
    SIGNAL = "signal"
    NOT_STARTED = "not-started"
    MAX_DURATION = "max-duration"
    FAILURE_THRESHOLD = "failure-threshold"
    MAX_ITERATIONS = "max-iterations"


@dataclass(frozen=True, slots=True)
class Stop:
    """The status that a run ends with, and the rule that decided."""

    status: Status
    rule: Rule
    reason: str = ""


def exit_code(status: Status, *, at_maximum: int) -> int:
    """The exit code of a run; only the one at the maximum is a matter of policy."""
    codes = {Status.SUCCESS: 0, Status.ABORTED: 1, Status.INTERRUPTED: 130}
    return codes.get(status, at_maximum)


def interrupted(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001 - one form for all
    """The user asked for it."""
    last = state.last.verdict if state.last else None
    if state.interrupted or last is Verdict.INTERRUPTED:
        return Stop(Status.INTERRUPTED, Rule.INTERRUPTED)
    return None


def done(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """The agent said that the job is done."""
    if state.last and state.last.verdict is Verdict.DONE:
        return Stop(Status.SUCCESS, Rule.SIGNAL)
    return None


def impossible(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """The agent can't be started, or the prompt can't be made: no use in trying again."""
    if state.last and state.last.verdict is Verdict.ABORT:
        return Stop(Status.ABORTED, Rule.NOT_STARTED, state.last.reason)
    return None


def max_duration(state: State, limits: Limits) -> Stop | None:
    """The run has been at work for as long as it may."""
    if limits.max_duration is not None and state.elapsed >= limits.max_duration:
        reason = f"max_duration of {format_duration(limits.max_duration)} reached"
        return Stop(Status.ABORTED, Rule.MAX_DURATION, reason)
    return None


def failure_threshold(state: State, limits: Limits) -> Stop | None:
    """Too many failures in a row. Looked at before the maximum of iterations."""
    if state.consecutive_failures >= limits.failure_threshold:
        return Stop(Status.ABORTED, Rule.FAILURE_THRESHOLD)
    return None


def max_iterations(state: State, limits: Limits) -> Stop | None:
    """As many iterations as were asked for."""
    if limits.max_iterations is not None and state.iteration >= limits.max_iterations:
        return Stop(Status.MAX_ITERS, Rule.MAX_ITERATIONS)
    return None


CONDITIONS: tuple[Callable[[State, Limits], Stop | None], ...] = (
    interrupted,
    done,
    impossible,
    max_duration,
    failure_threshold,
    max_iterations,
)


def stop(state: State, limits: Limits) -> Stop | None:
    """The first condition that holds, or None: go on."""
    return next((found for rule in CONDITIONS if (found := rule(state, limits))), None)
