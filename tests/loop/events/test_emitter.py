"""Events reach each listener, and no listener can end a run."""

from rooda.base.event import Event
from rooda.loop.events.emitter import Emitter, Stamped
from rooda.loop.events.run import ListenerFailed, RunStarted

STARTED = RunStarted("work", 3, "agent")


class Broken:
    """A listener that raises its error at each call."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def __call__(self, _: Stamped) -> None:
        self.calls += 1
        raise self.error


def test_listener_that_raises_is_removed_and_the_others_get_all_events() -> None:
    received: list[Event] = []
    broken = Broken(ValueError("no such colour"))
    emitter = Emitter([broken, lambda stamped: received.append(stamped.event)])
    emitter(STARTED)
    emitter(STARTED)
    failed = ListenerFailed("Broken", "ValueError: no such colour")
    assert received == [failed, STARTED, STARTED]
    assert broken.calls == 1
    assert emitter.failures == [broken.error]


def test_listener_that_cannot_write_is_reported_once_and_retried() -> None:
    received: list[Event] = []
    broken = Broken(OSError(28, "No space left on device"))
    emitter = Emitter([broken, lambda stamped: received.append(stamped.event)])
    emitter(STARTED)
    emitter(STARTED)
    assert [type(event) for event in received] == [ListenerFailed, RunStarted, RunStarted]
    assert broken.calls == 3, "two events, and the report of the failure itself"
    assert emitter.failures == [], "a full disk is no bug of rooda"
