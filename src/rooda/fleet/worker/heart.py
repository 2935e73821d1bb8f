"""The heart of a slot process: it beats, looks after the other workers, and feeds the queue."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from rooda.fleet.crash_points import is_off
from rooda.fleet.run_model import Run
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.workers import ALIVE, WorkerRow
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.durable import Durable, Turn

# Which workers are alive, without any clock but the observer's own monotonic one.
#
# A worker counts its beats in the database. An observer that has been in touch with the database
# all the time, and has not seen the number of another worker change for one TTL, declares that one
# dead.


class _Seen(Struct):
    beats: int
    since: float  # the observer's time when it first saw this number


class Observer:
    """What one worker has seen of the others. Pure: the caller says what time it is."""

    def __init__(self, own: str, ttl: float) -> None:
        self._own = own
        self._ttl = ttl
        self._seen: dict[str, _Seen] = {}
        self._last: float | None = None

    def look(self, workers: Iterable[WorkerRow], now: float) -> list[WorkerRow]:
        """Return the workers that have been silent for one TTL of unbroken contact.

        A gap in this worker's own contact starts the time of all others again: the database or
        the network may have been away for them too, or this process was asleep.
        """
        if self._last is not None and now - self._last > self._ttl / 2:
            self._seen.clear()
        self._last = now
        alive = {one.id: one for one in workers if one.state == ALIVE and one.id != self._own}
        self._seen = {name: seen for name, seen in self._seen.items() if name in alive}
        silent = []
        for name, worker in alive.items():
            seen = self._seen.get(name)
            if seen is None or seen.beats != worker.beats:
                self._seen[name] = _Seen(worker.beats, now)
            elif now - seen.since > self._ttl:
                silent.append(worker)
        return silent


# Looks now and then for runs that the queue has lost, and for old rows that no worker needs.


_PRUNE_EVERY = 3600.0  # seconds
_KEPT = 24 * 3600.0  # seconds for which the queue keeps a turn that has ended


class Sweep(Struct):
    """What one worker does for all: any number of workers may do it at once."""

    store: FleetStore
    durable: Durable
    project: str
    every: float  # seconds between two looks
    next_look: float = 0.0
    next_prune: float = 0.0

    def step(self, now: float) -> None:
        """Do what is due at this time of the caller's own clock."""
        if now >= self.next_look:
            self.next_look = now + self.every
            self.queue_lost_runs()
        if now >= self.next_prune:
            self.next_prune = now + _PRUNE_EVERY
            self.durable.prune(self.store.now() - _KEPT)

    def queue_lost_runs(self) -> None:
        """Queue the runs again whose turn is neither in the queue nor at work.

        Its workflow failed, was cancelled or deleted.
        """
        given = self.store.given(self.project)  # first: what ends meanwhile has a new turn then
        turns = {run.run: turn_of(run) for run in given}
        waiting = self.durable.waiting([turn.key for turn in turns.values()])
        for run in given:
            if turns[run.run].key not in waiting:
                self.store.queue_again(run.project, run.run, run.turn)


def turn_of(run: Run) -> Turn:
    """Return the turn of a run that comes next, or is at work."""
    task = run.task
    return Turn(run.project, run.run, run.turn, task.labels, task.priority, run.life)


_SLOWEST = 1.0  # seconds between two beats
_BEATS_PER_TTL = 6


class Heart(Struct, frozen=True):
    """What one slot process does all the time. `on_death`: it was declared dead."""

    store: FleetStore
    durable: Durable
    control: Control
    project: str
    worker: str
    ttl: float
    on_death: Callable[[str], object]

    def run(self, stopped: threading.Event) -> None:
        """Beat until the process ends. Without the database, wait for it: agents go on.

        The queue has a thread of its own: when the database was away, DBOS waits for up to a
        minute after it is back, and a worker that did not beat meanwhile would count as dead.
        """
        observer = Observer(self.worker, self.ttl)
        sweep = Sweep(self.store, self.durable, self.project, max(self.ttl, _SLOWEST))
        threading.Thread(
            target=self._repeat, args=[stopped, lambda: self._serve_queue(sweep)], daemon=True
        ).start()
        self._repeat(stopped, lambda: self._beat(observer))

    def _repeat(self, stopped: threading.Event, act: Callable[[], object]) -> None:
        """Act again and again, whatever happens."""
        pause = 0.0  # the first beat feeds the queue: it comes at once
        last_words = ""
        while not stopped.wait(pause):
            pause = min(_SLOWEST, self.ttl / _BEATS_PER_TTL)
            try:
                act()
            except (SQLAlchemyError, OSError):
                pass  # the database is away: the next beat tries again
            except Exception as error:  # noqa: BLE001 - a worker without a heart would be unnoticed
                words = "".join(traceback.format_exception_only(error))
                if words != last_words:
                    traceback.print_exc()
                last_words = words

    def _beat(self, observer: Observer) -> None:
        if not self.store.workers.beat(self.worker) and not is_off("self-check"):
            self.on_death("another worker declared this one dead: it did not answer")
        workers = self.store.workers.all(self.project)
        for silent in observer.look(workers, time.monotonic()):
            self.store.workers.declare_dead(silent.id, silent.beats)
        self._obey()

    def _serve_queue(self, sweep: Sweep) -> None:
        self.durable.recover(self._alive)
        self._feed_queue()
        sweep.step(time.monotonic())

    def _alive(self) -> set[str]:
        return {one.id for one in self.store.workers.all(self.project) if one.state == ALIVE}

    def _feed_queue(self) -> None:
        """Put turns into the queue that are not there yet, and listen to new queues."""
        ready = self.store.ready(self.project)
        if ready:
            for run in ready:
                self.durable.enqueue(turn_of(run))
            self.store.set_enqueued(self.project, [(run.run, run.turn) for run in ready])
        self.durable.listen()

    def _obey(self) -> None:
        at_work = self.control.at_work
        if at_work is not None:
            run = self.store.run(self.project, at_work.run)
            if run is not None and run.turn == at_work.turn:
                self.control.obey(at_work, run.order)
