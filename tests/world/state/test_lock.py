"""The note of a run that holds the lock."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rooda.world.state.lock import Lock
from rooda.world.state.lock_note import LockNote, read_note
from support.states import state_of

NOTE = LockNote("20260101-101010-abcdef", "build", 1, 2.0, "2026-01-01", "/workspace")
OTHER = b"a file of the user\n"


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Lock]:
    lock = Lock(tmp_path, state=state_of(tmp_path))
    lock.write(NOTE)
    yield lock
    lock.close()


def test_a_note_about_the_next_agent_is_written_to_the_same_file(
    lock: Lock, tmp_path: Path
) -> None:
    path = state_of(tmp_path) / "run.json"
    before = path.stat().st_ino
    for agent in ((7, 1.0), (4194304, 123456789.5), (8, 2.0)):
        lock.note_agent(*agent)
        note = read_note(state_of(tmp_path))
        assert note is not None
        assert note.agents == (agent,)
    assert path.stat().st_ino == before


def _linked(path: Path) -> None:
    path.unlink()
    path.hardlink_to(path.parent.with_name("other"))


def _replaced(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def _behind_a_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.parent.rename(elsewhere)
    path.parent.mkdir()
    path.symlink_to(elsewhere / "run.json")


HARM: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "made huge": lambda path: os.truncate(path, 1 << 40),
    "replaced": _replaced,
    "another file of the user": _linked,
    "behind a link": _behind_a_link,
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_file_that_is_not_as_rooda_left_it_gets_replaced(
    harm: Callable[[Path], object], lock: Lock, tmp_path: Path
) -> None:
    path = state_of(tmp_path) / "run.json"
    other = path.parent.with_name("other")
    other.write_bytes(OTHER)
    harm(path)
    lock.note_agent(7, 1.0)
    note = read_note(state_of(tmp_path))
    assert note is not None
    assert note.agents == ((7, 1.0),)
    assert path.stat().st_size < 4096
    assert other.read_bytes() == OTHER
