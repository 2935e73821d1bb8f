"""Which runs can still go on by themselves. Pure."""

from collections.abc import Collection, Iterable, Mapping

from rooda.fleet.run_model import Run, RunState


def going_on(runs: Iterable[Run], labels: Collection[str] | None = None) -> list[Run]:
    """Return the runs that a worker with these labels can still bring to an end; None: any worker.

    A run can't if it waits for one that did not end as success, or for one that needs other labels.
    """
    every = {run.run: run for run in runs}
    stuck = {run.run for run in every.values() if not _fits(run, labels) and not run.state.is_end}
    while more := [
        run.run
        for run in every.values()
        if run.state is RunState.BLOCKED and run.run not in stuck and _is_lost(run, every, stuck)
    ]:
        stuck.update(more)
    return [run for run in every.values() if not run.state.is_end and run.run not in stuck]


def _fits(run: Run, labels: Collection[str] | None) -> bool:
    is_elsewhere = run.state is RunState.WORKING  # a worker has it already
    return labels is None or is_elsewhere or set(run.task.labels) <= set(labels)


def _is_lost(run: Run, every: Mapping[str, Run], stuck: Collection[str]) -> bool:
    for name in run.task.after:
        other = every.get(name)
        if other is None or name in stuck:
            return True
        if other.state.is_end and other.state is not RunState.SUCCESS:
            return True
    return False
