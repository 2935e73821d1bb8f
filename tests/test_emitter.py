"""Events reach every listener, and no listener can end a run."""

from rooda.loop.emitter import Emitter, Stamped
from rooda.loop.run_events import ListenerFailed, RunStarted
from rooda.text.event import Event

STARTED = RunStarted("work", 3, "agent")


class Broken:
    """Raises whatever it is told to, every time."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def __call__(self, _: Stamped) -> None:
        self.calls += 1
        raise self.error


def test_a_listener_that_breaks_is_left_out_and_the_others_are_told() -> None:
    heard: list[Event] = []
    broken = Broken(ValueError("no such colour"))
    emitter = Emitter([broken, lambda stamped: heard.append(stamped.event)])
    emitter(STARTED)
    emitter(STARTED)
    failed = ListenerFailed("Broken", "ValueError: no such colour")
    assert heard == [failed, STARTED, STARTED]
    assert broken.calls == 1
    assert emitter.failures == [broken.error]


def test_a_listener_that_can_not_write_is_told_of_once_and_tried_again() -> None:
    heard: list[Event] = []
    broken = Broken(OSError(28, "No space left on device"))
    emitter = Emitter([broken, lambda stamped: heard.append(stamped.event)])
    emitter(STARTED)
    emitter(STARTED)
    assert [type(event) for event in heard] == [ListenerFailed, RunStarted, RunStarted]
    assert broken.calls == 3, "two events and the news of its own failure"
    assert emitter.failures == [], "a full disk is no bug of ours"
