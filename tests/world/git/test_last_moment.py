"""How long rooda goes on working after a signal."""

import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from rooda.world.git.git import Git, GitInterruptedError
from rooda.world.process.interrupts import Interrupts, Stopwatch
from rooda.world.tools import Tools


class Clock:
    """A clock that each test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def tools(signals: Iterable[int], clock: Clock) -> Tools:
    interrupts = Interrupts()
    interrupts.stopwatch = Stopwatch(clock, clock)
    interrupts.received += signals
    return Tools(interrupts=interrupts)


def test_names_of_many_files_are_read_until_the_last_moment_is_over(tmp_path: Path) -> None:
    clock = Clock()
    git = Git(tmp_path, tools([signal.SIGTERM], clock))
    names = iter(git.while_wanted(map(str, range(10_000))))
    assert next(names) == "0"
    clock.now += 0.3
    assert [next(names) for _ in range(1000)][-1] == "1000"
    clock.now += 0.3
    with pytest.raises(GitInterruptedError):
        list(names)


def test_second_signal_leaves_no_last_moment() -> None:
    clock = Clock()
    assert not tools([], clock).is_over
    assert not tools([signal.SIGTERM], clock).is_over
    assert not tools([signal.SIGHUP, signal.SIGHUP], clock).is_over
    assert tools([signal.SIGINT, signal.SIGINT], clock).is_over


def test_note_for_a_resumed_run_has_a_moment_of_its_own_after_a_second_signal() -> None:
    clock = Clock()
    asked = tools([signal.SIGINT, signal.SIGINT], clock)
    found = []
    with asked.noting():
        found.append(asked.is_over)
        clock.now += 60
        found.append(asked.is_over)
    assert found == [False, True]
    assert asked.is_over
