"""What a summary says on single lines of plain text, for the terminal. Pure.

Names of files, commands and words of the agent are in them as they are: a view cleans them.
"""

from collections.abc import Iterator, Mapping

from rooda.base.numbers import count, money
from rooda.base.times import MINUTE, format_duration
from rooda.loop.publish.commit_message import named_iterations
from rooda.loop.wait_kinds import WaitKind
from rooda.views.model.summary import (
    IterationSummary,
    Proof,
    ProofState,
    RunSummary,
    SpanKind,
    TestCounts,
    VerifySummary,
)
from rooda.views.wording.labels import (
    WORK_NAMES,
    brief_duration,
    brief_number,
    clock,
    day,
    money_of,
)
from rooda.views.wording.sentences import own_story, short, what_failed


def outcome_line(run: RunSummary) -> str:
    """Return how the run ended, in one sentence."""
    name = f"{run.project}: {run.procedure}" if run.project else run.procedure
    if run.is_running:
        return f"{name} has been running for {brief(run.seconds)}."
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    return f"{name} ended as {run.status}{code} after {brief(run.seconds)}."


def brief(seconds: float) -> str:
    """Return a duration as it is read best: `0.4s`, `7h39m`."""
    return format_duration(seconds) if seconds < MINUTE else brief_duration(seconds)


def proof_line(proof: Proof) -> str:
    """Return what is proven of the last state."""
    if proof.state is ProofState.NOT_CHECKED:
        return f"not checked. {proof.after}"
    if proof.iteration is None:
        return f"not proven: {proof.command}. {proof.after}"
    commit = proof.commit or proof.head
    where = f"commit {commit}" if commit else "not committed"
    tests = f"{counts(proof.tests)} tests, " if proof.tests else ""
    passed = f"after iteration {proof.iteration}: {tests}{where} ({proof.command})"
    if proof.state is ProofState.PASSED:
        return f"verify passed {passed}"
    return f"not proven. {proof.after} Verify passed last {passed}"


def counts(tests: TestCounts | None) -> str:
    """Return `26/26`; "" if no tests ran."""
    return f"{tests.passed}/{tests.total}" if tests else ""


def tests_line(run: RunSummary) -> str:
    """Return the last tests with the first beside them: `4 to 26 passed, 1 failed`; "" if none."""
    first, last = run.tests_first, run.tests_last
    if first is None or last is None:
        return ""
    begin = f"{first.passed} to " if first.iteration != last.iteration else ""
    bad = f", {last.failed} failed" if last.failed else ""
    skipped = f", {last.skipped} skipped" if last.skipped else ""
    number = run.iterations[-1].number if run.iterations else last.iteration
    when = f" (after iteration {last.iteration})" if last.iteration != number else ""
    return f"{begin}{last.passed} passed{bad}{skipped}{when}"


def time_line(run: RunSummary) -> str:
    """Return the time from start to end, and how the run spent it; waiting is told apart."""
    until = day(run.ended_at) if run.ended_at else "now" if run.is_running else "?"
    begin, end = day(run.started_at), until
    if begin.rpartition(" ")[0] == end.rpartition(" ")[0]:
        end = clock(run.ended_at)
    parts = [*_working(run.times), *_waiting(run)]
    spent = f": {', '.join(parts)}" if parts else ""
    return f"{brief(run.seconds)} ({begin} to {end}){spent}"


def _working(times: Mapping[SpanKind | WaitKind, float]) -> Iterator[str]:
    for kind, seconds in times.items():
        if isinstance(kind, SpanKind) and kind in WORK_NAMES and seconds >= 1:
            yield f"{WORK_NAMES[kind]} {brief(seconds)}"


def _waiting(run: RunSummary) -> Iterator[str]:
    parts = {kind.row.label: run.times.get(kind, 0.0) for kind in WaitKind}
    known = [f"{name} {brief(seconds)}" for name, seconds in parts.items() if seconds > 0]
    if known:
        yield f"waiting {brief(run.waited)} ({', '.join(known)})"


def cost_line(run: RunSummary) -> str:
    """Return `$15.21, 20.3 M tokens (claude-sonnet-4-5)`; "" if the agent told none of it."""
    known = [money_of(run)] if run.cost is not None else []
    known += [f"{brief_number(run.tokens.total)} tokens"] if run.tokens and run.tokens.total else []
    models = f" ({', '.join(run.models)})" if run.models else ""
    return f"{', '.join(known)}{models}" if known else ", ".join(run.models)


def iterations_line(run: RunSummary) -> str:
    """Return `30 (28 good, 2 failed)`."""
    other = f", {run.other} other" if run.other else ""
    return f"{len(run.iterations)} ({run.good} good, {run.failed} failed{other})"


def changes_line(run: RunSummary) -> str:
    """Return `17 files +3563 -97, 27 commits`."""
    files = count(run.files, "file")
    return f"{files}{lines(run.added, run.deleted)}, {count(run.commits, 'commit')}"


def lines(added: int | None, deleted: int | None) -> str:
    """Return ` +120 -14`; "" if that is unknown."""
    return "" if added is None or deleted is None else f" +{added} -{deleted}"


def files_of(one: IterationSummary) -> str:
    """Return `3 +120 -14`, `none`, or `unknown`; "" for an iteration that has no result."""
    if one.files is None:
        return "unknown" if one.is_good or one.is_failed else ""
    return f"{one.files}{lines(one.added, one.deleted)}" if one.files else "none"


def commit_of(one: IterationSummary) -> str:
    """Return the commit of rooda, the later one with the work, or how many the agent made."""
    if one.commit_holds:
        return f"{short(one.commit)} (with {', '.join(map(str, one.commit_holds))})"
    if short(one.held_in):
        return f"in {short(one.held_in)}"
    return short(one.commit) or (f"{one.commits} by agent" if one.commits else "")


def holding_of(one: IterationSummary) -> str:
    """Return which commit contains work of several iterations; "" if none of this one does."""
    if one.commit_holds and short(one.commit):
        others = named_iterations(one.commit_holds)
        return f"{short(one.commit)} also contains the work of {others} (failed)"
    if short(one.held_in):
        return f"{short(one.held_in)}, the commit of iteration {one.held_by}, contains its work"
    return ""


def cost_of(one: IterationSummary) -> str:
    """Return `$0.44`; "" if it is unknown."""
    return "" if one.cost is None else money(one.cost)


def headline_of_row(one: IterationSummary) -> str:
    """Return what the iteration did; of one that is not good, why."""
    if one.is_good:
        success = f"SUCCESS {one.confirmation}" if one.successes else ""
        return ": ".join(filter(None, (success, one.headline)))
    if one.is_failed:
        words = what_failed(one).rstrip(".") if own_story(one) or not one.reason else one.reason
        if one.is_blocked:
            words = one.reason.partition(": ")[2] or one.reason or words  # the agent's own words
        is_named = not one.kind or words.startswith(one.kind)
        return words if is_named else f"{one.kind}: {words}"
    return one.reason or one.headline


def tasks_of(one: IterationSummary) -> str:
    """Return `14/20`; "" without a task file."""
    return f"{one.tasks.done}/{one.tasks.total}" if one.tasks else ""


def signal_of(one: IterationSummary) -> str:
    """Return the signal of the agent; with `signals.confirm` also which one in a row it is."""
    again = f" ({one.confirmation} in a row)" if one.successes else ""
    return f"{one.signal or ''}{again}"


def check_of(check: VerifySummary) -> str:
    """Return how a check ended: `passed after 3.1s (make test)`."""
    ended = check.error or "passed"
    if check.is_flaky:
        ended = f"passed on try {check.tries} (flaky)"
    elif check.tries > 1:
        ended = f"{ended} on each of {check.tries} tries, the last one"
    return f"{ended} after {format_duration(check.seconds)} ({check.command})"


def times_line(one: IterationSummary) -> str:
    """Return how an iteration spent its time: `52m37s: agent 9m, waiting 43m12s`."""
    times: dict[SpanKind | WaitKind, float] = {}
    for span in one.spans:
        times[span.kind] = times.get(span.kind, 0.0) + span.seconds
    parts = [
        f"{WORK_NAMES[kind]} {format_duration(seconds)}"
        for kind, seconds in times.items()
        if isinstance(kind, SpanKind) and kind in WORK_NAMES and seconds >= 0.05  # noqa: PLR2004 - it would be 0.0s
    ]
    parts += [f"waiting {format_duration(one.waited)}"] if one.waited else []
    spent = f": {', '.join(parts)}" if parts else ""
    return f"{format_duration(one.wall)}{spent}"


def tests_of(one: IterationSummary) -> str:
    """Return `9 of 12 passed (-2), 3 failed`; "" if no tests ran."""
    tests = one.tests
    if tests is None:
        return ""
    gained = f" ({one.tests_gained:+})" if one.tests_gained else ""
    bad = f", {tests.failed} failed" if tests.failed else ""
    skipped = f", {tests.skipped} skipped" if tests.skipped else ""
    return f"{tests.passed} of {tests.total} passed{gained}{bad}{skipped}"
