"""What the fleet knows of its runs, in one database for all workers.

Every change names what it expects (the turn, the worker), so that a process that was asleep for an
hour changes nothing. Times are those of the database: the clock of a machine may be wrong.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from rooda.base.controls import storable
from rooda.fleet.run_model import Batch, FleetTask, Order, Run, RunProgress, RunState
from rooda.fleet.store.accounts import Accounts
from rooda.fleet.store.tables import (
    BATCHES,
    RUNS,
    FleetDatabase,
    KnownRun,
    batch_of,
    checked,
    columns_of,
    known_row,
    new_life,
    new_row,
    run_of,
    text_of,
)
from rooda.fleet.store.workers import Workers

_STOPPED = "stopped by the user"


class NameTaken(Exception):  # noqa: N818 - says what was found
    """The project has runs with these names already."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


class Dismissed(Exception):  # noqa: N818 - says what happened
    """Another worker declared this one dead: what it wanted to note is not noted."""


class FleetStore:
    """The tables of one database. Raises SQLAlchemyError if the database is away.

    A row that rooda did not write is an error too. A worker has `leave_out`: it hears of such a
    run or worker, once, and goes on with the others.
    """

    def __init__(self, url: str, leave_out: Callable[[str], object] | None = None) -> None:
        self._database = FleetDatabase(url, leave_out)
        self.accounts = Accounts(self._database)
        self.workers = Workers(self._database)

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def now(self) -> float:
        """Return the time of the database, in seconds since 1970."""
        with self._database.engine.connect() as connection:
            return self._database.now(connection)

    # Runs, for the user's commands.

    def add(self, project: str, batch: Batch, tasks: Sequence[FleetTask]) -> None:
        """Add a run for each task, all or none. Raises NameTaken."""
        with self._database.engine.begin() as connection:
            names = [task.name for task in tasks]
            taken = connection.execute(
                sa.select(RUNS.c.run).where(RUNS.c.project == project, RUNS.c.run.in_(names))
            )
            if found := sorted(row.run for row in taken):
                raise NameTaken(found)
            now = self._database.now(connection)
            last = _last_number(connection, project)
            connection.execute(
                sa.insert(BATCHES),
                {"project": project, "batch": batch.name, "data": text_of(batch)},
            )
            rows = [
                new_row(project, batch, task, last + place, now)
                for place, task in enumerate(tasks, 1)
            ]
            connection.execute(sa.insert(RUNS), rows)

    def restore(self, project: str, runs: Sequence[KnownRun]) -> set[str]:
        """Add rows for runs that are not there; return the names of those that were added."""
        with self._database.engine.begin() as connection:
            now = self._database.now(connection)
            last = _last_number(connection, project)
            rows = connection.execute(sa.select(RUNS.c.run).where(RUNS.c.project == project))
            present = {row.run for row in rows}
            new = [run for run in runs if run.task.name not in present]
            kept = connection.execute(
                sa.select(BATCHES.c.batch).where(BATCHES.c.project == project)
            )
            batches = {run.batch.name: run.batch for run in new}
            for name in batches.keys() - {row.batch for row in kept}:
                data = {"project": project, "batch": name, "data": text_of(batches[name])}
                connection.execute(sa.insert(BATCHES), data)
            for number, run in enumerate(new, last + 1):
                connection.execute(sa.insert(RUNS), known_row(project, run, number, now))
        return {run.task.name for run in new}

    def runs(self, project: str) -> list[Run]:
        """Return the runs of a project in the order in which they were added."""
        return self._runs(RUNS.c.project == project)

    def run(self, project: str, name: str) -> Run | None:
        """Return one run; None if there is none of this name."""
        found = self._runs(sa.and_(RUNS.c.project == project, RUNS.c.run == name))
        return found[0] if found else None

    def order(self, project: str, name: str, order: Order) -> None:
        """Ask for the stop of a run. One that waits is stopped at once."""
        is_at_work = RUNS.c.state == RunState.WORKING
        with self._database.engine.begin() as connection:
            # One change: between two, the run could go from the queue to a worker.
            self._update(
                connection,
                _is(project, name)
                & (is_at_work | RUNS.c.state.in_([RunState.QUEUED, RunState.BLOCKED])),
                ordered=sa.case((is_at_work, order), else_=Order.NONE),
                reason=sa.case((is_at_work, RUNS.c.reason), else_=_STOPPED),
                turn=sa.case((is_at_work, RUNS.c.turn), else_=RUNS.c.turn + 1),
                state=sa.case((is_at_work, RUNS.c.state), else_=RunState.STOPPED),
            )

    def retry(self, project: str, name: str, task: FleetTask) -> bool:
        """Queue a run again that has ended, with this task; return whether it had.

        One that has done nothing yet waits for the runs in `after`.
        """
        first = RunState.BLOCKED if task.after else RunState.QUEUED
        with self._database.engine.begin() as connection:
            return self._update(
                connection,
                _is(project, name)
                & RUNS.c.state.in_([state for state in RunState if state.is_end]),
                state=sa.case((RUNS.c.iteration > 0, RunState.QUEUED), else_=first),
                task=text_of(task),
                reason="",
                ordered=Order.NONE,
                ended="",
                not_before=0.0,
                turn=RUNS.c.turn + 1,
                life=new_life(),
            )

    def set_budget(self, project: str, batch: Batch, most: float) -> None:
        """Set what all runs of a batch may cost together."""
        with self._database.engine.begin() as connection:
            _write_batch(connection, project, replace(batch, max_cost=most))

    def set_ended(self, project: str, name: str, words: str) -> None:
        """Note what became of the branch of a run: merged, a pull request, a conflict."""
        with self._database.engine.begin() as connection:
            self._update(connection, _is(project, name), ended=words)

    def forget(self, project: str, name: str) -> bool:
        """Delete the row of a run that is not at work; return whether it was there.

        The last run of a batch takes the batch with it. Until then, the batch remembers the cost.
        """
        gone = self.run(project, name)
        with self._database.engine.begin() as connection:
            done = connection.execute(
                sa.delete(RUNS).where(_is(project, name), RUNS.c.state != RunState.WORKING)
            )
            same = sa.and_(RUNS.c.project == BATCHES.c.project, RUNS.c.batch == BATCHES.c.batch)
            connection.execute(
                sa.delete(BATCHES).where(
                    BATCHES.c.project == project, ~sa.exists().where(same).correlate(BATCHES)
                )
            )
            if done.rowcount and gone is not None and gone.cost:
                cost = gone.batch.forgotten_cost + gone.cost
                _write_batch(connection, project, replace(gone.batch, forgotten_cost=cost))
            return done.rowcount > 0

    # Runs, for workers.

    def ready(self, project: str) -> list[Run]:
        """Return the runs whose turn is due, and was not given to the queue yet.

        Releases the runs that may start. The time is that of the database, as everywhere here.
        """
        self._release(project)
        return self._runs(
            sa.and_(
                RUNS.c.project == project,
                RUNS.c.state == RunState.QUEUED,
                RUNS.c.enqueued < RUNS.c.turn,
                RUNS.c.not_before <= self.now(),
            )
        )

    def set_enqueued(self, project: str, turns: Iterable[tuple[str, int]]) -> None:
        """Note that the queue has been given these turns of runs."""
        with self._database.engine.begin() as connection:
            for name, turn in turns:
                connection.execute(
                    sa.update(RUNS)
                    .where(_is(project, name), RUNS.c.enqueued < turn)
                    .values(enqueued=turn)
                )

    def given(self, project: str) -> list[Run]:
        """Return the runs whose turn was given to the queue, and has not ended."""
        return self._runs(
            sa.and_(
                RUNS.c.project == project,
                RUNS.c.state.in_([RunState.QUEUED, RunState.WORKING]),
                RUNS.c.enqueued >= RUNS.c.turn,
            )
        )

    def queue_again(self, project: str, name: str, turn: int) -> bool:
        """End a turn that the queue has lost; return whether it had not ended."""
        with self._database.engine.begin() as connection:
            return self._update(
                connection,
                _is(project, name)
                & (RUNS.c.turn == turn)
                & RUNS.c.state.in_([RunState.QUEUED, RunState.WORKING]),
                state=RunState.QUEUED,
                turn=turn + 1,
                reason="queued again: the queue had lost it",
            )

    def begin(self, project: str, name: str, turn: int, worker: str, where: str) -> Run | None:
        """Note that a worker has this turn now; None if it is no turn of the run any more.

        Raises Dismissed if the worker was declared dead: another one may have the turn.
        """
        may_start = RUNS.c.state.in_([RunState.QUEUED, RunState.WORKING])
        with self._database.engine.begin() as connection:
            if not self._update(
                connection,
                _is(project, name) & (RUNS.c.turn == turn) & may_start,
                state=RunState.WORKING,
                worker=worker,
                place=where,
                reason="",
            ):
                return None
            if not self.workers.may_work(connection, worker):
                raise Dismissed(f"another worker declared {worker} dead: it did not answer")
        return self.run(project, name)

    def advance(self, project: str, name: str, worker: str, progress: RunProgress) -> None:
        """Note an iteration that was published, unless another worker has the run now."""
        with self._database.engine.begin() as connection:
            self._update(
                connection,
                _is(project, name)
                & (RUNS.c.worker == worker)
                & (RUNS.c.iteration <= progress.iteration),
                **columns_of(progress),
            )

    def explain(self, project: str, name: str, worker: str, reason: str) -> None:
        """Note what a run at work waits for; empty words: for nothing any more."""
        with self._database.engine.begin() as connection:
            self._update(connection, _is(project, name) & (RUNS.c.worker == worker), reason=reason)

    def wait(
        self, project: str, name: str, turn: int, worker: str, seconds: float, reason: str
    ) -> bool:
        """End this turn; the next one begins after so many seconds, unless the user wants no more.

        A run that the user stops meanwhile does not wait for the end of a limit first.
        """
        is_stopped = RUNS.c.ordered != Order.NONE
        with self._database.engine.begin() as connection:
            not_before = self._database.now(connection) + seconds if seconds else 0.0
            return self._update(
                connection,
                _is(project, name) & (RUNS.c.turn == turn) & (RUNS.c.worker == worker),
                state=sa.case((is_stopped, RunState.STOPPED), else_=RunState.QUEUED),
                reason=sa.case((is_stopped, _STOPPED), else_=storable(reason)),
                ordered=Order.NONE,
                turn=turn + 1,
                not_before=not_before,
            )

    def end(
        self,
        project: str,
        name: str,
        turn: int,
        worker: str,
        state: RunState,
        reason: str,
        ended: str = "",
    ) -> bool:
        """End the run; `ended` tells what became of its branch, such as a pull request."""
        with self._database.engine.begin() as connection:
            return self._update(
                connection,
                _is(project, name) & (RUNS.c.turn == turn) & (RUNS.c.worker == worker),
                state=state,
                reason=reason,
                ended=ended,
                ordered=Order.NONE,
                turn=turn + 1,
            )

    def spent(self, project: str, batch: str) -> tuple[float, int]:
        """Return the known cost of a batch so far, and how many iterations told none."""
        data = sa.select(BATCHES.c.data).where(
            BATCHES.c.project == project, BATCHES.c.batch == batch
        )
        sums = sa.select(
            sa.func.coalesce(sa.func.sum(RUNS.c.cost), 0.0),
            sa.func.coalesce(sa.func.sum(RUNS.c.unknown_costs), 0),
        ).where(RUNS.c.project == project, RUNS.c.batch == batch)
        with self._database.engine.connect() as connection:
            cost, unknown = connection.execute(sums).one()
            forgotten = batch_of(connection.execute(data).scalar_one(), batch).forgotten_cost
            return forgotten + float(cost), int(unknown)

    # What the methods above share.

    def _update(
        self, connection: sa.Connection, where: sa.ColumnElement[bool], **values: Any
    ) -> bool:
        values["changed"] = self._database.now(connection)
        known = {
            name: storable(value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        return connection.execute(sa.update(RUNS).where(where).values(**known)).rowcount > 0

    def _release(self, project: str) -> None:
        """Queue the runs that wait for others which have all ended as success."""
        blocked = self._runs(sa.and_(RUNS.c.project == project, RUNS.c.state == RunState.BLOCKED))
        if not blocked:
            return
        with self._database.engine.begin() as connection:
            rows = connection.execute(
                sa.select(RUNS.c.run).where(
                    RUNS.c.project == project, RUNS.c.state == RunState.SUCCESS
                )
            )
            done = {row.run for row in rows}
            for run in blocked:
                if done.issuperset(run.task.after):
                    self._update(
                        connection,
                        _is(project, run.run) & (RUNS.c.state == RunState.BLOCKED),
                        state=RunState.QUEUED,
                        reason="",
                    )

    def _runs(self, where: sa.ColumnElement[bool]) -> list[Run]:
        both = RUNS.join(
            BATCHES,
            sa.and_(RUNS.c.project == BATCHES.c.project, RUNS.c.batch == BATCHES.c.batch),
        )
        chosen = (
            sa.select(RUNS, BATCHES.c.data)
            .select_from(both)
            .where(where)
            .order_by(RUNS.c.number, RUNS.c.run)
        )
        with self._database.engine.connect() as connection:
            return self._database.readable(run_of, connection.execute(chosen).mappings())


def _is(project: str, name: str) -> sa.ColumnElement[bool]:
    return sa.and_(RUNS.c.project == project, RUNS.c.run == name)


def _last_number(connection: sa.Connection, project: str) -> int:
    highest = sa.select(sa.func.coalesce(sa.func.max(RUNS.c.number), 0))
    return checked(
        connection.execute(highest.where(RUNS.c.project == project)).scalar_one(),
        int,
        "the column `number` of a run",
    )


def _write_batch(connection: sa.Connection, project: str, batch: Batch) -> None:
    connection.execute(
        sa.update(BATCHES)
        .where(BATCHES.c.project == project, BATCHES.c.batch == batch.name)
        .values(data=text_of(batch))
    )
