"""Hand what happens to everybody who listens."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct

from rooda.loop.iteration_events import IterationEnded, IterationStarted
from rooda.loop.run_events import ListenerFailed
from rooda.text.event import Event


class Stamped(Struct, frozen=True):
    """An event, and when it happened: wall clock, seconds since the run began, iteration if any."""

    event: Event
    at: datetime
    elapsed: float
    iteration: int | None = None


Listener = Callable[[Stamped], None]


class Emitter:
    """Stamps events and hands them to the listeners, in order.

    One that can't write (a full disk) is told of once and tried again. Any other exception is an
    error of ours, and no reason to end a night's work: the listener is left out from then on, the
    others are told, and `failures` keeps the error for the report.
    """

    def __init__(
        self,
        listeners: Iterable[Listener] = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures: list[Exception] = []
        self._listeners = list(listeners)
        self._now = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._iteration: int | None = None
        self._in_trouble: set[int] = set()

    def add(self, listener: Listener) -> None:
        """Let one more listener hear what comes."""
        self._listeners.append(listener)

    def __call__(self, event: Event) -> None:
        """Tell everybody."""
        if isinstance(event, IterationStarted):
            self._iteration = event.iteration
        elapsed = self._monotonic() - self._began
        stamped = Stamped(event, self._now(), elapsed, self._iteration)
        for listener in list(self._listeners):
            try:
                listener(stamped)
            except OSError as error:
                if id(listener) not in self._in_trouble:
                    self._in_trouble.add(id(listener))
                    self(ListenerFailed(type(listener).__name__, str(error)))
            except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
                self._listeners.remove(listener)
                self.failures.append(error)
                self(ListenerFailed(type(listener).__name__, f"{type(error).__name__}: {error}"))
        if isinstance(event, IterationEnded):
            self._iteration = None
