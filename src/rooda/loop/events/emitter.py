"""Pass each event on to every listener."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.run import ListenerFailed


class Stamped(Struct, frozen=True):
    """An event with its time: wall clock, seconds since the run began, number of the iteration."""

    event: Event
    at: datetime
    elapsed: float
    iteration: int | None = None


Listener = Callable[[Stamped], None]


class Emitter:
    """Adds the time to events and passes them on to the listeners, in order.

    If a listener can't write (a full disk), the emitter reports that once and keeps calling it. Any
    other exception is a bug in rooda, which must not end a night's work: the emitter removes the
    listener, reports that to the others, and keeps the error in `failures`.

    Listeners that are views get the events without secrets, as `mask` returns them.
    """

    def __init__(
        self,
        listeners: Iterable[Listener] = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        monotonic: Callable[[], float] = time.monotonic,
        mask: Callable[[Event], Event] = lambda event: event,
    ) -> None:
        self.failures: list[Exception] = []
        self._listeners = list(listeners)
        self._now = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._iteration: int | None = None
        self._in_trouble: set[int] = set()
        self._mask = mask
        self._views: set[int] = set()

    def add(self, listener: Listener) -> None:
        """Add a listener for the events from now on."""
        self._listeners.append(listener)

    def add_view(self, listener: Listener) -> None:
        """Add a listener that shows events to people, or writes them into a log."""
        self._views.add(id(listener))
        self.add(listener)

    def __call__(self, event: Event) -> None:
        """Pass an event on to every listener."""
        if isinstance(event, IterationStarted):
            self._iteration = event.iteration
        elapsed = self._monotonic() - self._began
        stamped = Stamped(event, self._now(), elapsed, self._iteration)
        masked = replace(stamped, event=self._mask(event)) if self._views else stamped
        for listener in list(self._listeners):
            try:
                listener(masked if id(listener) in self._views else stamped)
            except OSError as error:
                if id(listener) not in self._in_trouble:
                    self._in_trouble.add(id(listener))
                    self(ListenerFailed(type(listener).__name__, str(error)))
            except Exception as error:  # noqa: BLE001 - the run goes on after any error
                self._listeners.remove(listener)
                self.failures.append(error)
                self(ListenerFailed(type(listener).__name__, f"{type(error).__name__}: {error}"))
        if isinstance(event, IterationEnded):
            self._iteration = None
