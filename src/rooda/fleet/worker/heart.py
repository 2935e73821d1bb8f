"""The heart of a slot process: it beats, looks after the other workers, and feeds the queue."""

import threading
import time
import traceback
from collections.abc import Callable

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from rooda.fleet.crash_points import is_off
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.workers import ALIVE
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.durable import Durable
from rooda.fleet.worker.liveness import Observer
from rooda.fleet.worker.sweep import Sweep, turn_of

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
