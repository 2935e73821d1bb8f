"""When a run ends. A stop condition is a function in the tuple; the first that speaks decides."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from rooda.loop.outcome import FailureKind, Outcome, Verdict
from rooda.loop.state import Limits, State, Status
from rooda.text.numbers import count
from rooda.text.times import format_duration


class Rule(StrEnum):
    """What ended a run."""

    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    SIGNAL = "signal"
    NOT_STARTED = "not-started"
    REQUIRED_FILE = "required-file"
    HOOK = "hook"
    STALL = "stall"
    AUTH = "auth"
    USAGE = "usage"
    LIMIT = "limit"
    MAX_OUTAGE_WAIT = "max-outage-wait"
    MAX_COST = "max-cost"
    MAX_TOKENS = "max-tokens"
    MAX_DURATION = "max-duration"
    FAILURE_THRESHOLD = "failure-threshold"
    MAX_ITERATIONS = "max-iterations"


class Stop(Struct, frozen=True):
    """The status that a run ends with, and the rule that decided."""

    status: Status
    rule: Rule
    reason: str = ""


class ExitCodes(Struct, frozen=True):
    """The exit codes that are a matter of policy."""

    at_maximum: int = 2
    agent: int = 1
    verify: int = 1
    git: int = 1
    required_file: int = 1


def exit_code(found: Stop, last: Outcome | None, codes: ExitCodes) -> int:
    """The exit code of a run; of one that was aborted it depends on what failed."""
    match found:
        case Stop(status=Status.SUCCESS):
            return 0
        case Stop(status=Status.INTERRUPTED):
            return 130
        case Stop(status=Status.MAX_ITERS):
            return codes.at_maximum
        case Stop(rule=Rule.REQUIRED_FILE):
            return codes.required_file
        case Stop(rule=rule) if last is not None and rule in _OF_THE_LAST:
            return _code_of(last.kind, codes)
        case _:
            return 1


_OF_THE_LAST = (
    Rule.FAILURE_THRESHOLD,
    Rule.NOT_STARTED,
    Rule.AUTH,
    Rule.USAGE,
    Rule.LIMIT,
    Rule.MAX_OUTAGE_WAIT,
)
_RULES = {
    FailureKind.HOOK: Rule.HOOK,
    FailureKind.AUTH: Rule.AUTH,
    FailureKind.USAGE: Rule.USAGE,
}


def _code_of(kind: FailureKind | None, codes: ExitCodes) -> int:
    match kind:
        case FailureKind.VERIFY:
            return codes.verify
        case FailureKind.COMMIT:
            return codes.git
        case FailureKind.HOOK | FailureKind.PROMPT:
            return 1
        case _:
            return codes.agent


def interrupted(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001 - one form for all
    """The user asked for it."""
    last = state.last.verdict if state.last else None
    if state.interrupted or last is Verdict.INTERRUPTED:
        return Stop(Status.INTERRUPTED, Rule.INTERRUPTED)
    return None


def done(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """The agent said that the job is done."""
    if state.last and state.last.verdict is Verdict.COMPLETE:
        return Stop(Status.SUCCESS, Rule.SIGNAL)
    return None


def impossible(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """The agent or its prompt is not to be had, or somebody says that this is the end."""
    if state.last and state.last.verdict is Verdict.ABORT:
        kind = state.last.kind
        rule = Rule.NOT_STARTED if kind is None else _RULES.get(kind, Rule.NOT_STARTED)
        return Stop(Status.ABORTED, rule, state.last.reason)
    return None


def limit(state: State, limits: Limits) -> Stop | None:
    """No agent can work, and nobody waits for that, or nobody waits any longer."""
    if state.blocked is None or state.blocked.outage:
        return None
    reason = f"usage limit of {state.blocked.name}: {state.blocked.evidence}"
    if not limits.patience.wait_for_limits:
        return Stop(Status.ABORTED, Rule.LIMIT, f"{reason} (wait_for_limits is off)")
    most = limits.patience.max_limit_wait
    if most is not None and state.limit_waited >= most:
        waited = f"waited {format_duration(most)} (max_limit_wait)"
        return Stop(Status.ABORTED, Rule.LIMIT, f"{reason}; {waited}")
    return None


def max_outage_wait(state: State, limits: Limits) -> Stop | None:
    """No agent can work because of an outage, and that lasts for longer than the run waits."""
    blocked, most = state.blocked, limits.patience.max_outage_wait
    if blocked is None or not blocked.outage or most is None or state.outage_lasted < most:
        return None
    reason = (
        f"outage of {blocked.name} ({blocked.outage}) lasts for {format_duration(most)} or longer "
        f"(max_outage_wait): {blocked.evidence}"
    )
    return Stop(Status.ABORTED, Rule.MAX_OUTAGE_WAIT, reason)


def max_cost(state: State, limits: Limits) -> Stop | None:
    """The run has cost as much as it may."""
    if limits.max_cost is not None and state.cost >= limits.max_cost:
        spent = f"${state.cost:.2f} of ${limits.max_cost:.2f} spent (max_cost)"
        return Stop(Status.ABORTED, Rule.MAX_COST, spent)
    return None


def max_tokens(state: State, limits: Limits) -> Stop | None:
    """The run has used as many tokens as it may."""
    if limits.max_tokens is not None and state.tokens >= limits.max_tokens:
        used = f"{state.tokens:,} of {limits.max_tokens:,} tokens used (max_tokens)"
        return Stop(Status.ABORTED, Rule.MAX_TOKENS, used)
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


def stall(state: State, limits: Limits) -> Stop | None:
    """Too many iterations in a row got nowhere."""
    if limits.stall_threshold is not None and state.idle >= limits.stall_threshold:
        words = f"{count(state.idle, 'iteration')} without progress (stall_threshold)"
        return Stop(Status.ABORTED, Rule.STALL, words)
    return None


def max_iterations(state: State, limits: Limits) -> Stop | None:
    """As many iterations as were asked for."""
    if limits.max_iterations is not None and state.iteration >= limits.max_iterations:
        return Stop(Status.MAX_ITERS, Rule.MAX_ITERATIONS)
    return None


def stopped(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """Somebody asked for an end after the iteration (`rooda stop`)."""
    if state.stopping:
        return Stop(Status.INTERRUPTED, Rule.STOPPED, "stopped by `rooda stop`")
    return None


def required_file(state: State, limits: Limits) -> Stop | None:  # noqa: ARG001
    """What the next iteration needs is not there."""
    if state.missing:
        return Stop(Status.ABORTED, Rule.REQUIRED_FILE, state.missing)
    return None


CONDITIONS: tuple[Callable[[State, Limits], Stop | None], ...] = (
    interrupted,
    done,
    impossible,
    max_duration,
    max_cost,
    max_tokens,
    failure_threshold,
    stall,
    max_iterations,
    stopped,
    required_file,
    limit,
    max_outage_wait,
)


def stop(state: State, limits: Limits) -> Stop | None:
    """The first condition that holds, or None: go on."""
    return next((found for rule in CONDITIONS if (found := rule(state, limits))), None)
