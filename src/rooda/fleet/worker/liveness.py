"""Which workers are alive, without any clock but the observer's own monotonic one.

A worker counts its beats in the database. An observer that has been in touch with the database all
the time, and has not seen the number of another worker change for one TTL, declares that one dead.
"""

from collections.abc import Iterable

from msgspec import Struct

from rooda.fleet.store.workers import ALIVE, WorkerRow


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
