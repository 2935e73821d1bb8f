"""What the user may want to do after a run: commands, and one sentence before them. Pure.

Commands contain only rooda's own values: names of runs, numbers and commits.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from rooda.loop.next_steps import NextCommand, following
from rooda.loop.state import Status
from rooda.loop.stops import StopRule, known_rule
from rooda.record.rows import RunRow
from rooda.views.model.summary import RunSummary
from rooda.views.wording.sentences import short
from rooda.world.agents.failure_kinds import known_kind


def next_hint(run: RunSummary) -> str:
    """Return one sentence before the commands."""
    if run.is_running:
        return "The run is at work; this is how it stands now."
    if run.status == Status.SUCCESS:
        if run.is_doubtful:
            return (
                "Tasks are left, but rooda can't resume a run that ended as success: start a new "
                "one. With `done_when: tasks`, rooda refuses SUCCESS while tasks are open."
            )
        return "A run that ended as success has nothing to resume."
    last = run.iterations[-1] if run.iterations else None
    kind = known_kind(last.kind) if last else None
    return kind.row.hint if kind else ""


def next_commands(run: RunSummary, row: RunRow, *, has_start: bool) -> Iterator[NextCommand]:
    """Yield the commands that the user may want to run next, the most useful first.

    `has_start`: there is a snapshot of the work tree before the run.
    """
    name, numbers = run.run, [one.number for one in run.iterations]
    kept = {one.number for one in run.iterations if one.is_kept}
    failed = [one for one in run.iterations if one.is_failed]
    if run.is_running:
        yield NextCommand("Watch it", "rooda follow")
        yield NextCommand("End it after the current iteration", "rooda stop")
    else:
        yield from _first(run, row)
    is_changed = any(one.files and one.is_kept for one in run.iterations)
    yield from _git_commands(run, can_diff=has_start and is_changed)
    if failed and not run.is_running:
        number = failed[-1].number
        yield NextCommand(f"Read what failed in iteration {number}", f"rooda show {name} {number}")
    rule = "the limits and rules" if run.is_running else "the rule that decided, and the limits"
    yield NextCommand(f"See {rule}", f"rooda why {name}")
    looked = next((note for note in run.notes if note.is_in_diff), None)
    if looked is not None and looked.iteration in kept:
        yield NextCommand(
            f"Look at the change of iteration {looked.iteration}",
            f"rooda diff {name} {looked.iteration}",
        )
    proven = run.proof.iteration
    if not run.is_running and proven in kept and proven != numbers[-1]:
        yield NextCommand("Go back to the last proven work tree", f"rooda restore {name} {proven}")
    elif not run.is_running and has_start and any(one.files for one in run.iterations):
        yield NextCommand("Go back to the work tree before the run", f"rooda restore {name} 0")


def _first(run: RunSummary, row: RunRow) -> Iterator[NextCommand]:
    """Yield the command that continues the run; a limit that ended it is raised."""
    if "state" in row.unreadable:
        return  # rooda can't resume it
    settings = {one.name: one.value for one in row.settings or ()}

    def value_of(limit: str) -> float | None:
        maximum = run.max_iterations
        is_maximum = limit == StopRule.MAX_ITERATIONS.row.next.limit
        return maximum if is_maximum else _number(settings.get(f"loop.{limit}", ""))

    rule = known_rule(run.rule)
    if run.status == Status.SUCCESS and (rule is None or rule.row.status is not Status.SUCCESS):
        return
    found = following(row.known_commands, rule, value_of)
    if found is not None:
        number = row.state.iteration + 1 if row.state else 1
        counted = "; failures count from 0" if run.status == Status.ABORTED else ""
        yield replace(found, why=found.why.format(number=number, counted=counted))


def _number(value: str) -> float | None:
    """Return the number of a limit in the record, such as `$5.00` or `28800s`."""
    try:
        return float(value.removeprefix("$").removesuffix("s").replace(",", ""))
    except ValueError:
        return None


def _git_commands(run: RunSummary, *, can_diff: bool) -> Iterator[NextCommand]:
    """Yield how to read the work: the commits, and the whole run as one diff."""
    first, last = short(run.first_commit), short(run.last_commit)
    has_commits = first and last and first != last
    if has_commits:
        commits = f"Read the {run.commits} commits" if run.commits > 1 else "Read the commit"
        yield NextCommand(commits, f"git log --oneline --stat {first}..{last}")
    is_left = _is_work_left_uncommitted(run)
    if has_commits and not (is_left and can_diff):
        what = "commits" if is_left else "whole run"
        yield NextCommand(f"Review the {what} as one diff", f"git diff {first}..{last}")
    elif can_diff:
        how = ", also what is not committed" if has_commits else " as one diff"
        yield NextCommand(f"Review the whole run{how}", f"rooda diff {run.run}")


def _is_work_left_uncommitted(run: RunSummary) -> bool:
    """Return whether files may be changed that no commit of the run has.

    A commit of rooda has all that the run changed; one of the agent may have only its own part.
    """
    for one in reversed(run.iterations):
        if one.commit:
            return False
        if one.files and not one.commits:
            return True
    return False
