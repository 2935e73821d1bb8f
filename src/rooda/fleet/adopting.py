"""Queues runs again from git alone, when the database is lost or is another one."""

import secrets

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from rooda.fleet.adding import Added
from rooda.fleet.fence import Record, Unreachable, scratch_remote
from rooda.fleet.looking import unreachable
from rooda.fleet.model import Batch, Run, State, Task
from rooda.fleet.place import Place
from rooda.fleet.store import Progress, Store
from rooda.workspace.tools import Tools

_OWNER = "adopt"


class Published(Struct, frozen=True):
    """What the record tells of the run so far (`result.json`)."""

    state: State = State.WORKING
    reason: str = ""
    iteration: int = 0
    max_iterations: int | None = None
    cost: float = 0.0
    unknown_costs: int = 0
    headline: str = ""


class Adopted(Struct, frozen=True):
    """A run that is in the database again; git did not have the values of some of its flags."""

    run: Run
    left_out: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    added: Added
    published: Published


def adopt_runs(store: Store, place: Place, tools: Tools) -> list[Adopted]:
    """Add the runs that git has and the database has not; return them. Raises InvalidInput."""
    known = {run.run for run in store.runs(place.project)}
    found: dict[str, _Found] = {}
    with scratch_remote(place.remote, tools) as remote:
        try:
            for name in remote.list_records():
                record = None if name in known else remote.fetch(name)
                read = None if record is None else _read(record)
                if read is not None:
                    found[name] = read
        except Unreachable as error:
            raise unreachable(place, error) from None
    batches: dict[str, list[_Found]] = {}
    for one in found.values():
        batches.setdefault(one.added.batch.name, []).append(one)
    for several in batches.values():
        _add(store, place.project, several)
    return [
        Adopted(run, found[run.run].added.left_out)
        for run in store.runs(place.project)
        if run.run in found
    ]


def _read(record: Record) -> _Found | None:
    """Return what a record tells; None if a program other than rooda wrote it."""
    try:
        added = json.decode(record.task, type=Added)
        published = json.decode(record.result, type=Published) if record.result else Published()
    except (DecodeError, ValidationError):
        return None
    return _Found(added, replace(published, iteration=record.iteration))


def _add(store: Store, project: str, several: list[_Found]) -> None:
    several = sorted(several, key=lambda one: one.added.number)
    batch = several[0].added.batch
    tasks = [_task(one) for one in several]
    try:
        runs = store.add(project, batch, tasks)
    except IntegrityError:  # the database has runs of this batch
        runs = store.add(project, _renamed(batch), tasks)
    published = {one.added.task.name: one.published for one in several}
    for run in runs:
        _bring_up_to_date(store, run, published[run.run])


def _task(found: _Found) -> Task:
    """Return the task; one that has ended waits for nothing."""
    task = found.added.task
    return replace(task, after=()) if found.published.state.is_end else task


def _renamed(batch: Batch) -> Batch:
    return replace(batch, name=f"{batch.name}-{secrets.token_hex(2)}")


def _bring_up_to_date(store: Store, run: Run, published: Published) -> None:
    """Write into the row what git has: iterations, cost, and how the run ended."""
    project, name, turn = run.project, run.run, run.turn
    if store.begin(project, name, turn, _OWNER, "") is None:  # it waits for other runs
        return
    progress = Progress(
        published.iteration,
        published.cost,
        published.unknown_costs,
        published.max_iterations,
        published.headline,
    )
    store.advance(project, name, _OWNER, progress)
    if published.state.is_end:
        store.end(project, name, turn, _OWNER, published.state, published.reason)
    else:
        store.wait(project, name, turn, _OWNER, 0.0, "")
