"""Why a run or an iteration ended: rule, evidence, counters, and who set the limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from rooda.text.controls import one_line
from rooda.text.times import format_duration
from rooda.views.history import grouped_waits, named_attempts, waited
from rooda.views.table import render_table

Object = Mapping[str, Any]

_RULES = {
    "signal": "The agent signaled that the work is done, and nothing spoke against it.",
    "max-iterations": "As many iterations ran as were asked for.",
    "failure-threshold": "Too many iterations failed in a row.",
    "max-duration": "The run was at work for as long as it may be.",
    "stall": "Too many iterations in a row got nowhere.",
    "interrupted": "Somebody stopped it.",
    "stopped": "Somebody asked for it with `rooda stop`.",
    "not-started": "The agent could not be started, or its prompt could not be made.",
    "hook": "A hook said that this is the end.",
    "required-file": "A file that has to be there is missing.",
    "auth": "The agent is not logged in, or its key is refused: only a person can mend that.",
    "usage": "The agent refuses how it was called: only a person can mend that.",
    "limit": "The agent's usage limit is reached, and the run does not wait (any longer) for it.",
    "max-outage-wait": "The agent's service was overloaded or out of reach for longer than the run "
    "waits for that. `--resume` goes on, with as much time again.",
    "max-cost": "The run has cost as much as it may.",
    "max-tokens": "The run has used as many tokens as it may.",
}
# The settings that a rule looks at.
_LIMITS = {
    "max-iterations": ("default_max_iterations", "iteration_mode"),
    "failure-threshold": ("failure_threshold", "max_attempts"),
    "max-duration": ("max_duration",),
    "stall": ("stall_threshold",),
    "signal": ("signals.success", "signals.streams", "signals.match"),
    "not-started": ("ai_cmd", "ai_cmd_alias"),
    "required-file": ("required_file",),
    "auth": ("ai_cmd", "ai_cmd_alias"),
    "usage": ("ai_cmd", "ai_cmd_alias"),
    "limit": ("wait_for_limits", "max_limit_wait", "limit_wait", "ai_cmd_fallbacks"),
    "max-outage-wait": ("max_outage_wait", "backoff", "max_backoff", "ai_cmd_fallbacks"),
    "max-cost": ("max_cost",),
    "max-tokens": ("max_tokens",),
}
_OF_KIND = {
    "exit": ("ignore_exit_status",),
    "crash": ("ignore_exit_status",),
    "signal": ("signals.failure", "signals.streams", "signals.match"),
    "timeout": (
        "iteration_timeout",
        "idle_timeout",
        "first_output_timeout",
        "max_duration",
        "result_grace",
    ),
    "verify": ("verify.command", "verify.when", "verify.timeout"),
    "no-changes": ("git.require_changes",),
    "commit": ("git.commit", "git.commit_timeout"),
    "hook": ("hooks.pre_iteration", "hooks.post_iteration", "hooks.on_failure"),
    "budget": ("max_cost", "max_tokens"),
    "limit": ("wait_for_limits", "max_limit_wait", "limit_wait", "ai_cmd_fallbacks"),
    "overloaded": ("max_outage_wait", "backoff", "max_backoff", "ai_cmd_fallbacks"),
    "offline": ("max_outage_wait", "backoff", "max_backoff", "ai_cmd_fallbacks"),
    "startup": ("backoff", "max_backoff"),
    "auth": ("ai_cmd", "ai_cmd_alias"),
    "usage": ("ai_cmd", "ai_cmd_alias"),
}
_KINDS = {
    "exit": "its exit code is not 0",
    "crash": "a signal ended it, or it was lost",
    "signal": "the agent says that it is blocked",
    "timeout": "a clock ran out",
    "not-started": "the agent could not be started",
    "prompt": "the prompt could not be put together",
    "verify": "the loop's own check failed",
    "no-changes": "nothing changed",
    "commit": "the work could not be committed",
    "hook": "a hook objected",
    "budget": "the run has used what it may",
    "limit": "the agent's usage limit is reached; that is no failure",
    "overloaded": "the agent's service is overloaded, broken, or takes no more requests for the "
    "moment; that is no failure",
    "offline": "the agent could not reach its service; that is no failure",
    "auth": "the agent is not logged in, or its key is refused",
    "context": "the prompt, or the work, is too long for the model",
    "usage": "the agent refuses a flag, a model, or the user it runs as",
    "startup": "the agent ended before its first event",
    "empty": "it reports success, said nothing and changed nothing",
}


def of_run(run: Object, last: Object | None) -> str:
    """Why the run ended, and what its last iteration had to do with it."""
    name = f"Run {run['run']} ({run['procedure']})"
    if run["status"] == "running":
        return f"{name} is still at work.\n{_last(last)}"
    code = run["exit_code"]
    ended = f"ended as {run['status']}" + ("" if code is None else f", exit code {code}")
    rule = run["rule"]
    lines = [f"{name} {ended}."]
    if rule is None:
        lines.append("No rule decided: rooda itself was killed, or the machine went down.")
    else:
        lines.append(f"Rule: {rule}. {_RULES.get(rule, '')}")
    if run["reason"] and rule is not None:
        lines.append(f"Reason: {one_line(run['reason'])}")
    if run["signal"]:
        lines.append(f"Signal to rooda: {run['signal']}")
    lines += _waits(run)
    text = "\n".join(lines) + "\n"
    keys = (*_LIMITS.get(rule or "", ()), *(_keys(last) if last is not None else ()))
    return text + _last(last) + limits(run, keys)


def _last(last: Object | None) -> str:
    return "" if last is None else "\n" + _verdict(last)


def of_iteration(run: Object, one: Object) -> str:
    """Why the iteration ended as it did."""
    return _verdict(one) + limits(run, _keys(one))


def _keys(one: Object) -> Sequence[str]:
    """The settings that its verdict hangs on."""
    if one["verdict"] == "done":
        return _LIMITS["signal"]
    return (*_OF_KIND.get(one["kind"] or "", ()), "failure_threshold", "max_attempts")


def _verdict(one: Object) -> str:
    status = one["status"]
    lines = [f"Iteration {one['number']}: {status}."]
    if one["verdict"] is None:
        lines.append("It was cut off before its end: there is no verdict.")
        return "\n".join(lines) + "\n"
    kind = one["kind"]
    if kind is not None:
        lines.append(f"Kind: {kind} ({_KINDS.get(kind, '')})")
    if one["reason"]:
        lines.append(f"Reason: {one_line(one['reason'])}")
    if one["evidence"]:
        lines.append(f"Evidence: {one_line(one['evidence'])}")
    exit_code = (one["result"] or {}).get("exit_code")
    if exit_code is not None:
        against = ", overridden by the signal" if one["despite_exit"] else ""
        lines.append(f"Exit code: {exit_code}{against}")
    if one["signal"]:
        lines.append(f"Signal of the agent: {one['signal']}")
    lines += [*_advice(one), *_attempts(one)]
    before, after, most = one["failures_before"], one["failures_after"], one["threshold"]
    lines.append(f"Failures in a row: {before} before, {after} after, of {most}")
    if one["returned_to"] is not None:
        lines.append(f"Its tree is the one of iteration {one['returned_to']}: no progress")
    if one["duration"] is not None:
        lines.append(f"Took: {format_duration(one['duration'])}")
    return "\n".join(lines) + "\n"


def _waits(run: Object) -> list[str]:
    """What the run has waited for."""
    return [
        f"Waited: {wait['kind']} of {one_line(str(wait['what']))}, "
        f"{waited(wait)}: {one_line(wait['reason'])}"
        for wait in grouped_waits(run["waits"] or [])
    ]


def _advice(one: Object) -> list[str]:
    """What is odd about it, and what to try."""
    lines = []
    if (one["same_failures"] or 0) > 1:
        lines.append(f"The same failure {one['same_failures']} times in a row")
    if one["incomplete"]:
        lines.append("Its output ends without the result that a good end has")
    suggestion = (one["failure"] or {}).get("suggestion")
    return [*lines, f"Try: {one_line(suggestion)}"] if suggestion else lines


def _attempts(one: Object) -> list[str]:
    """Why there was more than one attempt at it."""
    return [
        f"{name}: {earlier['status']}"
        + (f" ({earlier['kind']}: {one_line(earlier['reason'] or '')})" if earlier["kind"] else "")
        for name, earlier in named_attempts(one["earlier_attempts"] or [])
    ]


def limits(run: Object, keys: Sequence[str]) -> str:
    """The settings with these keys, and where each came from."""
    wanted = {f"loop.{key}" for key in keys}
    values = {name: value for name, value, _ in run["settings"] or []}
    # The one takes the other's place.
    is_retried = values.get("loop.max_attempts", "none") != "none"
    wanted.discard("loop.failure_threshold" if is_retried else "loop.max_attempts")
    rows = [
        (name, str(value), f"({origin})")
        for name, value, origin in run["settings"] or []
        if name in wanted
    ]
    table = render_table((), [("", *row) for row in rows])
    return f"\nLimits and settings:\n{table}" if rows else ""


def as_object(run: Object, one: Object | None) -> dict[str, Any]:
    """The same for programs."""
    keys = ("run", "procedure", "status", "rule", "reason", "exit_code", "signal", "waits")
    return {key: run[key] for key in keys} | {
        "iteration": one and {key: one[key] for key in _ITERATION_KEYS},
        "settings": [
            {"name": name, "value": value, "origin": origin}
            for name, value, origin in run["settings"] or []
        ],
    }


_ITERATION_KEYS = (
    "number",
    "status",
    "verdict",
    "kind",
    "reason",
    "evidence",
    "signal",
    "despite_exit",
    "failures_before",
    "failures_after",
    "threshold",
    "returned_to",
    "agent",
    "same_failures",
    "incomplete",
    "earlier_attempts",
    "failure",
)
