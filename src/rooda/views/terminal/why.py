"""Why a run or an iteration ended: rule, evidence, counters, and where the limits were set."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from rooda.base.controls import one_line
from rooda.base.times import format_duration
from rooda.base.widths import width
from rooda.loop.stops import StopRule, known_rule
from rooda.record.json_objects import iteration_object, run_object
from rooda.record.rows import IterationRow, RunRow
from rooda.views.model.open_tasks import still_open, tasks_line
from rooda.views.terminal.iteration_view import named_attempts, printed
from rooda.views.terminal.run_view import grouped_waits
from rooda.views.terminal.table import named_lines, plain_table
from rooda.views.wording.sentences import waits_now
from rooda.world.agents.failure_kinds import known_kind

_RUNNING = "It is running: there is no verdict yet. `rooda follow` shows what it does."
_INTERRUPTED = "It was interrupted before it ended: there is no verdict."


def of_run(run: RunRow, last: IterationRow | None, room: int | None) -> str:
    """Why the run ended, and what its last iteration had to do with it.

    `room` is the width of the terminal; None if it is no terminal.
    """
    name = f"Run {run.run} ({run.procedure})"
    if run.status == "running":
        waits = waits_now(run)
        reason = one_line(run.waits[-1].reason) if waits and run.waits else ""
        because = f"Reason: {reason}" if reason else ""
        lines = [f"{name} is still running.", waits, because, _tasks(run)]
        return "\n".join(filter(None, lines)) + "\n" + _last(last)
    code = run.exit_code
    ended = f"ended as {run.status}" + ("" if code is None else f", exit code {code}")
    rule = known_rule(run.rule)
    lines = [f"{name} {ended}."]
    if run.rule is None:
        lines.append("No rule decided: rooda itself was killed, or the machine went down.")
    else:
        lines.append(f"Rule: {run.rule}. {_sentence(run, rule)}")
    if run.ended_because and run.rule is not None:
        lines.append(f"Reason: {one_line(run.ended_because)}")
    lines += filter(None, [_tasks(run)])
    if run.signal:
        lines.append(f"Signal to rooda: {run.signal}")
    lines += _waits(run)
    text = "\n".join(lines) + "\n"
    keys = (*(rule.row.settings if rule else ()), *(_keys(last) if last is not None else ()))
    return text + _last(last) + limits(run, keys, room)


def _sentence(run: RunRow, rule: StopRule | None) -> str:
    """What the rule means; a success that leaves tasks open is only a claim of the agent."""
    if rule is None:
        return ""
    unfinished = still_open(run)
    return rule.row.doubt.format(tasks=unfinished) if unfinished else rule.row.sentence


def _tasks(run: RunRow) -> str:
    words = tasks_line(run)
    return f"Tasks: {words}" if words else ""


def of_last(last: IterationRow) -> str:
    """How the last iteration ended, of a run whose end is decided elsewhere."""
    return _verdict(last)


def _last(last: IterationRow | None) -> str:
    return "" if last is None else "\n" + _verdict(last)


def of_iteration(run: RunRow, one: IterationRow, room: int | None) -> str:
    """Why the iteration ended as it did."""
    return _verdict(one) + limits(run, _keys(one), room)


def _keys(one: IterationRow) -> Sequence[str]:
    """The settings that its verdict hangs on."""
    if one.verdict == "done" or one.successes:
        return StopRule.SIGNAL.row.settings
    kind = known_kind(one.kind)
    return (*(kind.row.settings if kind else ()), "failure_threshold", "max_attempts")


def _verdict(one: IterationRow) -> str:
    status = one.status
    lines = [f"Iteration {one.number}: {status}."]
    if one.verdict is None:
        is_over = status in ("interrupted", "skipped")
        lines.append(_INTERRUPTED if is_over else _RUNNING)
        return "\n".join(lines) + "\n"
    if one.kind is not None:
        kind = known_kind(one.kind)
        lines.append(f"Kind: {one.kind} ({kind.row.sentence if kind else ''})")
    if one.reason:
        lines.append(f"Reason: {one_line(one.reason)}")
    if one.evidence:
        lines.append(f"Evidence: {one_line(one.evidence)}")
    exit_code = one.result.exit_code if one.result is not None else None
    if exit_code is not None:
        killed = one.failure.signal if one.failure is not None else None
        name = f" ({killed})" if killed else ""
        against = ", overridden by the signal" if one.despite_exit else ""
        lines.append(f"Exit code of the agent: {exit_code}{name}{against}")
    if one.signal:
        again = f" ({one.successes} of {one.confirm} in a row)" if one.successes else ""
        lines.append(f"Signal of the agent: {one.signal}{again}")
    lines += [f"Sandbox: {one_line(found.sentence)}: {found.names}" for found in one.unsafe_tree]
    lines += [f"Protected files {change.end}: {change.story}" for change in one.protected]
    lines += [*_passed(one), *_advice(one), *_attempts(one)]
    before, after, most = one.failures_before, one.failures_after, one.threshold
    lines.append(f"Failures in a row: {before} before, {after} after, of {most}")
    if one.returned_to is not None:
        lines.append(f"Its tree is the one of iteration {one.returned_to}: no progress")
    if one.duration is not None:
        lines.append(f"Took: {format_duration(one.duration)}")
    return "\n".join(lines) + "\n" + _check(one)


def _passed(one: IterationRow) -> list[str]:
    """The check that passed, or that there was none when the agent said that it is done."""
    lines = []
    if one.verify is not None and not one.verify.error:
        took = format_duration(one.verify.duration)
        flaky = f" on try {one.verify.tries} (flaky)" if one.verify.is_flaky else ""
        lines.append(f"Verify: passed{flaky} after {took} ({one_line(one.verify.command)})")
    elif one.verify is None and one.clean_check is None and one.verdict == "done":
        lines.append("Verify: did not run; only the agent says that the work is done")
    if one.tests_lost is not None:
        lines.append(f"Tests lost: {one_line(one.tests_lost.loss.words)}")
    if one.clean_check is not None and not one.clean_check.error:
        took = format_duration(one.clean_check.duration)
        lines.append(f"Clean copy: passed after {took} ({one_line(one.clean_check.command)})")
    return lines


def _check(one: IterationRow) -> str:
    """The end of what a failed check printed."""
    text = ""
    for check, title in ((one.verify, "Verify"), (one.clean_check, "The check in a clean copy")):
        if check is not None and check.error:
            text += f"\n{title} printed ({one_line(check.command)}):\n{printed(check.output)}"
    return text


def _waits(run: RunRow) -> list[str]:
    """What the run has waited for."""
    return [
        f"Waited: {one_line(group.cause)}, {group}: {one_line(group.last.reason)}"
        for group in grouped_waits(run.waits or ())
    ]


def _advice(one: IterationRow) -> list[str]:
    """What is odd about it, and what to try."""
    lines = []
    if (one.same_failures or 0) > 1:
        lines.append(f"The same failure {one.same_failures} times in a row")
    if one.incomplete:
        lines.append("Its output ends without the result that a good end has")
    suggestion = one.failure.suggestion if one.failure is not None else ""
    return [*lines, f"Try: {one_line(suggestion)}"] if suggestion else lines


def _attempts(one: IterationRow) -> list[str]:
    """Why there was more than one attempt at it."""
    return [
        f"{name}: {earlier.status}"
        + (f" ({earlier.kind}: {one_line(earlier.reason or '')})" if earlier.kind else "")
        for name, earlier in named_attempts(one.earlier_attempts or ())
    ]


def limits(run: RunRow, keys: Sequence[str], room: int | None) -> str:
    """The settings with these keys, and where each came from."""
    wanted = {f"loop.{key}" for key in keys}
    values = {one.name: one.value for one in run.settings or ()}
    # The one takes the other's place.
    is_retried = values.get("loop.max_attempts", "none") != "none"
    wanted.discard("loop.failure_threshold" if is_retried else "loop.max_attempts")
    rows = [
        (one.name, one.value, f"({one.origin})") for one in run.settings or () if one.name in wanted
    ]
    table = plain_table((), [("", *row) for row in rows], room=None)
    if room is not None and any(width(line) > room for line in table.splitlines()):
        named = [(f"  {name}", f"{value} {origin}") for name, value, origin in rows]
        table = named_lines(named, room=room)
    return f"\nLimits and settings:\n{table}" if rows else ""


def as_object(run: RunRow, one: IterationRow | None) -> dict[str, Any]:
    """The same for programs."""
    keys = (
        *("run", "procedure", "status", "rule", "reason", "exit_code", "signal", "waits"),
        *("tasks", "tasks_left"),
    )
    whole = run_object(run)
    last = None if one is None else iteration_object(one)
    return {key: whole[key] for key in keys} | {
        "iteration": last and {key: last[key] for key in _ITERATION_KEYS},
        "settings": [asdict(one) for one in run.settings or ()],
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
    "verify",
    "protected",
    "tests_lost",
    "clean_check",
    "successes",
    "confirm",
    "tasks",
)
