"""When a run ends: the stop rules, one row each. The first rule that holds decides.

A row has all that rooda says and does about a rule: its status and exit code, the words of the
terminal, the logs, `rooda show` and `rooda why`, and how the user continues the run.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Literal, Self

from msgspec import Struct

from rooda.base.numbers import count
from rooda.base.times import format_duration
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.state import Limits, State, Status
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.tasks.standing import some

MOST_REFUSALS = 3  # of SUCCESS in a row
_CALM = (FailureKind.NOT_DONE, FailureKind.SIGNAL)  # the agent says that it is done, or blocked
_MORE_ITERATIONS = 10  # that rooda proposes to a user whose run has reached its maximum

# Each check returns the reason why the run ends ("" if the rule says it all), or None: go on.


def _interrupted(state: State, _: Limits) -> str | None:
    last = state.last.verdict if state.last else None
    return "" if state.interrupted or last is Verdict.INTERRUPTED else None


def _signal(state: State, _: Limits) -> str | None:
    return "" if state.last and state.last.verdict is Verdict.COMPLETE else None


def _done(state: State, _: Limits) -> str | None:
    last = state.last
    return last.done or None if last and last.verdict is Verdict.COMPLETE else None


def _not_done(state: State, limits: Limits) -> str | None:
    if state.refusals < MOST_REFUSALS or state.last is None:
        return None
    signaled = f"the agent signaled {limits.success} {state.refusals} times in a row"
    return f"{signaled}, but {state.last.reason}"


def _blocked_tasks(state: State, limits: Limits) -> str | None:
    """An iteration that failed for another reason leaves something that an agent can repair."""
    last, tasks = state.last, state.tasks
    is_calm = last is None or last.is_good or last.kind in _CALM
    if not limits.by_tasks or tasks is None or not tasks.is_blocked or not is_calm:
        return None
    return f"only blocked tasks are left: {some(tasks.blocked)}"


def _aborted_by(*kinds: FailureKind) -> Callable[[State, Limits], str | None]:
    """Return a check: one of these failures, or any if none is given, has ended the run."""

    def check(state: State, _: Limits) -> str | None:
        last = state.last
        is_aborted = last is not None and last.verdict is Verdict.ABORT
        return last.reason if last and is_aborted and (not kinds or last.kind in kinds) else None

    return check


def _max_duration(state: State, limits: Limits) -> str | None:
    if limits.max_duration is None or state.elapsed < limits.max_duration:
        return None
    return f"max_duration of {format_duration(limits.max_duration)} reached"


def _max_cost(state: State, limits: Limits) -> str | None:
    if limits.max_cost is None or state.cost < limits.max_cost:
        return None
    return f"${state.cost:.2f} of ${limits.max_cost:.2f} spent (max_cost)"


def _max_tokens(state: State, limits: Limits) -> str | None:
    if limits.max_tokens is None or state.tokens < limits.max_tokens:
        return None
    return f"{state.tokens:,} of {limits.max_tokens:,} tokens used (max_tokens)"


def _failure_threshold(state: State, limits: Limits) -> str | None:
    return "" if state.consecutive_failures >= limits.failure_threshold else None


def _stall(state: State, limits: Limits) -> str | None:
    if limits.stall_threshold is None or state.idle < limits.stall_threshold:
        return None
    return f"{count(state.idle, 'iteration')} without progress (stall_threshold)"


def _once(state: State, limits: Limits) -> str | None:
    return "" if limits.once and state.last is not None and state.last.is_good else None


def _max_iterations(state: State, limits: Limits) -> str | None:
    maximum = limits.max_iterations
    return "" if maximum is not None and state.iteration >= maximum else None


def _stopped(state: State, _: Limits) -> str | None:
    return "stopped by `rooda stop`" if state.stopping else None


def _required_file(state: State, _: Limits) -> str | None:
    return state.missing or None


def _limit(state: State, limits: Limits) -> str | None:
    if state.blocked is None or state.blocked.outage:
        return None
    reason = f"usage limit of {state.blocked.name}: {state.blocked.evidence}"
    if not limits.patience.wait_for_limits:
        return f"{reason} (wait_for_limits is off)"
    most = limits.patience.max_limit_wait
    if most is None or state.limit_waited < most:
        return None
    return f"{reason}; waited {format_duration(most)} (max_limit_wait)"


def _paused(state: State, limits: Limits) -> str | None:
    return "" if limits.pause_at is not None and state.iteration >= limits.pause_at else None


def _max_outage_wait(state: State, limits: Limits) -> str | None:
    blocked, most = state.blocked, limits.patience.max_outage_wait
    if blocked is None or not blocked.outage or most is None or state.outage_lasted < most:
        return None
    return (
        f"outage of {blocked.name} ({blocked.outage}) lasts for {format_duration(most)} or longer "
        f"(max_outage_wait): {blocked.evidence}"
    )


def _min_free_disk(state: State, limits: Limits) -> str | None:
    most = limits.patience.max_outage_wait
    if state.disk is None or most is None or state.disk_lasted < most:
        return None
    return f"{state.disk}; waited {format_duration(most)} (max_outage_wait)"


class NextStep(Struct, frozen=True):
    """How the user continues a run that a rule ended.

    `why` is the purpose of the command. `limit` is the limit that ended the run, and `raised`
    returns a higher value for it, as its flag takes it.
    """

    why: str = "Continue at iteration {number}{counted}"
    limit: str = ""
    raised: Callable[[float], str] = str


def _ten_more(maximum: float) -> str:
    return f"{maximum + _MORE_ITERATIONS:.0f}"


def _twice(value: float) -> str:
    return f"{2 * value:.12g}"


def _twice_the_time(seconds: float) -> str:
    return f"{2 * seconds:.12g}s"


class StopRow(Struct, frozen=True):
    """One stop rule.

    `status` is how the run ends. `sentence` is what the rule means, and `settings` are the keys
    that govern it. `exit_code` is for a run that is aborted: of the last failure's kind, of the
    required file, or 1; a run that is paused has 0. `reason` is for a rule whose check gives none,
    in the record and in the session log; `{failures}` are those in a row, `{last}` is the last one.

    `line` ends the run in the terminal, with the facts of `RunEnded`. `logged` is the message of
    the log if it is not that of the status. `story` is what happened, for `rooda show` and the
    report; `views/wording/sentences.py` knows its facts. `doubt` takes the place of the sentence
    if `{tasks}` are open: the run is a success by the word of the agent alone. `next` is how the
    user continues the run. `recounts` are the fields of `State` that start again from their
    defaults when the user resumes an aborted run.

    `is_claim`: the agent signaled that the work is done. `is_break`: in a fleet, the run usually
    continues by itself.
    """

    name: str
    status: Status
    check: Callable[[State, Limits], str | None]
    sentence: str
    settings: tuple[str, ...] = ()
    exit_code: Literal["one", "last_failure", "required_file", "zero"] = "one"
    reason: str = ""
    line: str = "ERROR: Aborting: {reason} ({completed})"
    logged: str = ""
    story: str = "{sentence} {reason}"
    doubt: str = ""
    next: NextStep = NextStep()
    recounts: tuple[str, ...] = ()
    is_claim: bool = False
    is_break: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the run ended as the user asked for."""
        return self.status is Status.SUCCESS or self.exit_code == "zero"


class StopRule(StrEnum):
    """What ended a run. The order is the order in which the rules are checked."""

    row: StopRow

    def __new__(cls, row: StopRow) -> Self:
        """Return the member of one row."""
        rule = str.__new__(cls, row.name)
        rule._value_ = row.name
        rule.row = row
        return rule

    INTERRUPTED = StopRow(
        "interrupted",
        Status.INTERRUPTED,
        _interrupted,
        "A signal stopped rooda: Ctrl+C, `rooda stop --now` or `kill`.",
        reason="interrupted by the user",
        line="Interrupted ({completed})",
        story="A signal stopped rooda at {time}{interrupt}: Ctrl+C, `rooda stop --now` or `kill`.",
    )
    DONE = StopRow(
        "done",
        Status.SUCCESS,
        _done,  # before the signal, which may have come too
        "The work is done, and no check failed.",
        settings=("done_when", "tasks", "signals.confirm"),
        line="Completed: {reason} ({done}, {total})",
    )
    SIGNAL = StopRow(
        "signal",
        Status.SUCCESS,
        _signal,
        "The agent signaled that the work is done, and no check failed.",
        settings=(
            "done_when",
            "signals.success",
            "signals.streams",
            "signals.match",
            "signals.confirm",
        ),
        reason="the agent signaled that the work is done",
        line="Completed: AI signaled {signal} ({done}, {total})",
        story="The agent signaled {signal} in iteration {number}{most}{in_a_row}{checks}. {tasks}",
        doubt="The agent signaled that the work is done, but {tasks}",
        is_claim=True,
    )
    HOOK = StopRow(
        "hook",
        Status.ABORTED,
        _aborted_by(FailureKind.HOOK),
        "A hook ended the run.",
    )
    BASELINE = StopRow(
        "verify-baseline",
        Status.ABORTED,
        _aborted_by(FailureKind.VERIFY),
        "Before the first iteration, the check could not run, or it failed although it is required "
        "to pass.",
        settings=("verify.command", "verify.baseline"),
    )
    AUTH = StopRow(
        "auth",
        Status.ABORTED,
        _aborted_by(FailureKind.AUTH),
        "The agent is not logged in, or its key is rejected. "
        "Log in or correct the key, then resume.",
        settings=FailureKind.AUTH.row.settings,
        exit_code="last_failure",
    )
    USAGE = StopRow(
        "usage",
        Status.ABORTED,
        _aborted_by(FailureKind.USAGE),
        "The agent rejected its command line. Correct ai_cmd, then resume.",
        settings=FailureKind.USAGE.row.settings,
        exit_code="last_failure",
    )
    REFUSED = StopRow(
        "refused",
        Status.ABORTED,
        _aborted_by(FailureKind.PUBLISH),
        "The command that publishes the work refused the last iteration.",
        settings=FailureKind.PUBLISH.row.settings,
        exit_code="last_failure",
    )
    NOT_STARTED = StopRow(
        "not-started",
        Status.ABORTED,
        _aborted_by(),  # after the rules above: any other failure that ends a run
        "The agent could not be started, or its prompt could not be made.",
        settings=("ai_cmd", "ai_cmd_alias"),
        exit_code="last_failure",
    )
    MAX_DURATION = StopRow(
        "max-duration",
        Status.ABORTED,
        _max_duration,
        "The run was at work for as long as it may be.",
        settings=("max_duration",),
        next=NextStep("Continue with twice the max_duration", "max_duration", _twice_the_time),
    )
    MAX_COST = StopRow(
        "max-cost",
        Status.ABORTED,
        _max_cost,
        "The run has cost as much as it may.",
        settings=("max_cost",),
        next=NextStep("Continue with twice the max_cost", "max_cost", _twice),
    )
    MAX_TOKENS = StopRow(
        "max-tokens",
        Status.ABORTED,
        _max_tokens,
        "The run has used as many tokens as it may.",
        settings=("max_tokens",),
        next=NextStep("Continue with twice the max_tokens", "max_tokens", _twice),
    )
    NOT_DONE = StopRow(
        "not-done",
        Status.ABORTED,
        _not_done,  # before failure-threshold: it says more
        "The agent signaled again and again that the work is done, but it is not.",
        settings=FailureKind.NOT_DONE.row.settings,
        exit_code="last_failure",
        recounts=("refusals",),
        is_claim=True,
    )
    BLOCKED_TASKS = StopRow(
        "blocked-tasks",
        Status.ABORTED,
        _blocked_tasks,
        "Only a person can unblock the tasks that are left. Do that, then resume.",
        settings=FailureKind.NOT_DONE.row.settings,
    )
    FAILURE_THRESHOLD = StopRow(
        "failure-threshold",
        Status.ABORTED,
        _failure_threshold,  # before max-iterations: a run whose last iterations failed is aborted
        "Too many iterations failed in a row.",
        settings=("failure_threshold", "max_attempts"),
        exit_code="last_failure",
        reason="{failures} in a row{last}",
        line="ERROR: Aborting after {failures} ({completed})",
        story="{failures} in a row reached {threshold}. Nothing ran after {time}.",
        recounts=("consecutive_failures", "backoffs"),
    )
    STALL = StopRow(
        "stall",
        Status.ABORTED,
        _stall,
        "Too many iterations in a row got nowhere.",
        settings=("stall_threshold",),
        recounts=("idle",),
    )
    ONCE = StopRow(
        "once",
        Status.SUCCESS,
        _once,
        "The run has one iteration, and it succeeded.",
        settings=("iteration_mode",),
        reason="the one iteration succeeded",
        line="Completed ({done}, {total})",
    )
    MAX_ITERATIONS = StopRow(
        "max-iterations",
        Status.MAX_ITERS,
        _max_iterations,
        "As many iterations ran as were asked for.",
        settings=("default_max_iterations", "iteration_mode"),
        reason="the maximum of iterations was reached",
        line="Reached max iterations: {maximum} ({total})",
        story="{iterations} ran; {claim}.",
        next=NextStep("Continue with ten more", "max_iterations", _ten_more),
    )
    STOPPED = StopRow(
        "stopped",
        Status.INTERRUPTED,
        _stopped,
        "The user asked for it with `rooda stop`.",
        line="Stopped ({completed})",
        story="The user ended it with `rooda stop` at {time}.",
    )
    REQUIRED_FILE = StopRow(
        "required-file",
        Status.ABORTED,
        _required_file,
        "A file that has to be there is missing.",
        settings=("required_file",),
        exit_code="required_file",
    )
    LIMIT = StopRow(
        "limit",
        Status.ABORTED,
        _limit,
        "The agent's usage limit is reached, and the run does not wait (any longer) for it.",
        settings=FailureKind.LIMIT.row.settings,
        exit_code="last_failure",
        recounts=("limited",),
        is_break=True,
    )
    MAX_OUTAGE_WAIT = StopRow(
        "max-outage-wait",
        Status.ABORTED,
        _max_outage_wait,
        "The agent's service was overloaded or out of reach for longer than the run "
        "waits for that. A resumed run waits as long again.",
        settings=FailureKind.OFFLINE.row.settings,
        exit_code="last_failure",
        is_break=True,
    )
    PAUSED = StopRow(
        "paused",
        Status.INTERRUPTED,
        _paused,  # no rule above ends the run here
        "The program that started rooda asked for this many iterations (`--pause-after`).",
        exit_code="zero",
        reason="paused after the iterations that were asked for",
        line="Paused ({completed})",
        logged="Loop paused",
        is_break=True,
    )
    MIN_FREE_DISK = StopRow(
        "min-free-disk",
        Status.ABORTED,
        _min_free_disk,  # the last one: a run that pauses here needs no disk space now
        "There was too little disk space for the next iteration, for longer than the run waits "
        "for that. Free some space, then resume.",
        settings=("min_free_disk", "max_outage_wait"),
    )


_BY_NAME: dict[str | None, StopRule] = {rule.value: rule for rule in StopRule}


def known_rule(name: str | None) -> StopRule | None:
    """Return the rule with this name; None if this version does not know it."""
    return _BY_NAME.get(name)


class Stop(Struct, frozen=True):
    """The status that a run ends with, the rule that decided, and why it held."""

    status: Status
    rule: StopRule
    reason: str = ""


def reason_of(rule: StopRule, reason: str, failures: int, last_failure: str) -> str:
    """Return why a run ended: what the check of the rule found, else the words of its row."""
    last = f", the last one: {last_failure}" if last_failure else ""
    return reason or rule.row.reason.format(failures=count(failures, "failure"), last=last)


def stop(state: State, limits: Limits) -> Stop | None:
    """Return the first rule that holds, or None: go on."""
    for rule in StopRule:
        reason = rule.row.check(state, limits)
        if reason is not None:
            return Stop(rule.row.status, rule, reason)
    return None


class ExitCodes(Struct, frozen=True):
    """The exit codes that are a matter of policy."""

    at_maximum: int = 2
    agent: int = 1
    verify: int = 1
    git: int = 1
    required_file: int = 1


def exit_code(found: Stop, last: Outcome | None, codes: ExitCodes) -> int:
    """Return the exit code of a run; for an aborted run it depends on what failed."""
    if found.rule.row.exit_code == "zero":
        return 0
    match found.status:
        case Status.SUCCESS:
            return 0
        case Status.INTERRUPTED:
            return 130
        case Status.MAX_ITERS:
            return codes.at_maximum
    match found.rule.row.exit_code:
        case "required_file":
            return codes.required_file
        case "last_failure" if last is not None:
            return _code_of(last.kind, codes)
        case _:
            return 1


def _code_of(kind: FailureKind | None, codes: ExitCodes) -> int:
    match kind.row.exit_code if kind else "agent":
        case "verify":
            return codes.verify
        case "git":
            return codes.git
        case "agent":
            return codes.agent
        case "none":
            return 1
