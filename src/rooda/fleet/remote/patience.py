"""Try again while the remote is away."""

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from rooda.fleet.remote.fence import BrokenRecord
from rooda.fleet.remote.server import Unreachable

_LONGEST = 60.0  # seconds between two tries
_LOOK_EVERY = 0.2  # seconds between two looks at whether the caller should stop

T = TypeVar("T")


def until_reached(
    act: Callable[[], T],
    *,
    is_stopped: Callable[[], bool],
    tell: Callable[[str], object],
    first: float = 1.0,
) -> T:
    """Return what `act` returns; try again after growing waits while it raises Unreachable.

    `tell` gets the reason of each wait, and an empty text when the remote is back. Raises
    Unreachable when the caller should stop; every other error at once.
    """
    was_away = False
    for wait in _waits(first):
        try:
            found = act()
        except BrokenRecord:
            raise
        except Unreachable as error:
            was_away = True
            tell(f"{error}; next try in {wait:.0f} s")
            if is_stopped() or _rest(wait, is_stopped):
                raise
            continue
        if was_away:
            tell("")
        return found
    raise AssertionError  # the waits have no end


def _waits(first: float) -> Iterator[float]:
    wait = first
    while True:
        yield wait
        wait = min(_LONGEST, 2 * wait)


def _rest(seconds: float, is_stopped: Callable[[], bool]) -> bool:
    """Wait; return whether the caller should stop."""
    pause = threading.Event()
    left = seconds
    while left > 0:
        pause.wait(min(_LOOK_EVERY, left))
        left -= _LOOK_EVERY
        if is_stopped():
            return True
    return False
