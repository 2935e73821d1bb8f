"""The rows of the current run in memory: those not written yet, and those an agent may delete."""

import sqlite3

from rooda.record.rows import IterationRow, RunRow, Value, iteration_values, run_values, stored
from rooda.record.tables import SAVE_ITERATION, SAVE_RUN

MOST_ITERATIONS = 200
MOST_CHARACTERS = 32 * 1024 * 1024

_Key = tuple[Value, ...]  # a run; or a run, a number and an attempt


class RecentRows:
    """The newest rows, within bounds: the oldest iterations make room, never the last one."""

    def __init__(self) -> None:
        self._runs: dict[_Key, tuple[Value, ...]] = {}
        self._iterations: dict[_Key, tuple[Value, ...]] = {}
        self._unsaved: dict[_Key, None] = {}  # in the order of arrival
        self._characters = 0

    def note(self, run: RunRow | None, iteration: IterationRow | None) -> None:
        """Keep these rows; each replaces its earlier version."""
        if run is not None:
            values = run_values(run)
            self._runs[values[:1]] = values
            self._unsaved[values[:1]] = None
        if iteration is not None:
            values = iteration_values(iteration)
            self._drop(values[:3])
            self._iterations[values[:3]] = values
            self._unsaved[values[:3]] = None
            self._characters += _length(values)
            self._make_room()

    def _make_room(self) -> None:
        while len(self._iterations) > 1 and (
            len(self._iterations) > MOST_ITERATIONS or self._characters > MOST_CHARACTERS
        ):
            self._drop(next(iter(self._iterations)))

    def _drop(self, key: _Key) -> None:
        if values := self._iterations.pop(key, None):
            self._characters -= _length(values)
            self._unsaved.pop(key, None)

    def has(self, run: str) -> bool:
        """Whether this is the current run."""
        return (stored(run),) in self._runs

    def write(self, connection: sqlite3.Connection) -> None:
        """Write every row that is not saved yet."""
        for key in self._unsaved:
            if key in self._runs:
                connection.execute(SAVE_RUN, self._runs[key])
            else:
                connection.execute(SAVE_ITERATION, self._iterations[key])

    def settle(self) -> None:
        """Mark every row as saved."""
        self._unsaved.clear()

    def unsettle(self) -> None:
        """Mark every row as not saved."""
        self._unsaved = dict.fromkeys((*self._runs, *self._iterations))


def _length(values: tuple[Value, ...]) -> int:
    return len(str(values[-1]))
