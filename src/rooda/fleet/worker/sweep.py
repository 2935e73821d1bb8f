"""Looks now and then for runs that the queue has lost, and for old rows that no worker needs."""

from msgspec import Struct

from rooda.fleet.run_model import Run
from rooda.fleet.store.store import FleetStore
from rooda.fleet.worker.durable import Durable, Turn

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
