"""A record comes to the place of its work tree: after a move, and from version 0.1."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.record.settle import import_old_record, settled
from rooda.record.store import Store
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import tree_key
from rooda.world.state.lock import Lock
from rooda.world.state.record_place import RecordPlace, known_places
from rooda.world.state.user_notes import new_note, waiting_notes
from support.record import RUN, a_run, an_iteration
from support.states import record_at, remember, state_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "below").mkdir(parents=True)
    return folder


def record(state: StateFolder) -> None:
    """Write a run with two iterations and their files, as a run does."""
    with contextlib.closing(Store(state, print)) as store:
        store.save(run=a_run(status="success"))
        for number in (1, 2):
            store.save(iteration=an_iteration(number))
            folder = state / f"runs/{RUN}/{number}"
            folder.mkdir(parents=True)
            (folder / "stdout.log").write_text(f"said {number}")
    (state / f"runs/{RUN}/session.log").write_text("a log")


def settle(folder: Path) -> tuple[RecordPlace | None, list[str]]:
    told: list[str] = []
    return settled(folder, os.environ, told.append), told


def numbers(state: StateFolder) -> list[int]:
    return [row.number for row in RecordReader(state).iterations(RUN)]


# -- moved -----------------------------------------------------------------------------------


def test_record_of_a_moved_tree_comes_along_and_one_line_says_so(
    tmp_path: Path, tree: Path
) -> None:
    record(state_of(tree))
    remember(tree)
    moved = tree.rename(tmp_path / "moved")
    place, told = settle(moved / "below")
    assert place == record_at(moved)
    assert told == [f"This work tree was moved from {tree}: its record came along."]
    assert not state_of(tree).exists()
    assert numbers(state_of(moved)) == [1, 2]
    assert settle(moved) == (record_at(moved), [])
    assert known_places(os.environ) == [record_at(moved)]


def test_record_stays_where_it_is_while_a_run_is_at_work(tmp_path: Path, tree: Path) -> None:
    record(state_of(tree))
    remember(tree)
    state = state_of(tree)
    lock = Lock(tree, state=state)
    moved = tree.rename(tmp_path / "moved")
    assert settle(moved) == (RecordPlace(moved, state, tree), [])
    lock.close()
    assert settle(moved)[0] == record_at(moved)


def test_folder_without_a_record_has_none(tree: Path) -> None:
    assert settle(tree) == (None, [])
    assert settled(tree, {}, print) is None


# -- version 0.1 -----------------------------------------------------------------------------


@pytest.fixture
def old(tree: Path) -> StateFolder:
    """A record of version 0.1."""
    folder = StateFolder(tree / ".rooda")
    record(folder)
    new_note(folder, "a note")
    (folder / f"runs/{RUN}/link").symlink_to("/etc/passwd")
    os.mkfifo(folder / f"runs/{RUN}/pipe")
    return folder


@pytest.fixture
def listed(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The entry of the work tree in the user's list of version 0.1."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    entry = tmp_path / "xdg/rooda/trees" / tree_key(tree)
    entry.parent.mkdir(parents=True)
    entry.write_bytes(os.fsencode(tree))
    return entry


def test_old_record_of_a_known_tree_is_taken_over(
    tree: Path, old: StateFolder, listed: Path
) -> None:
    place, (line,) = settle(tree / "below")
    assert place == record_at(tree)
    assert line.startswith(f"rooda took the record in {old} over.")
    state = state_of(tree)
    assert numbers(state) == [1, 2]
    assert RecordReader(state).run().run == RUN
    assert (state / f"runs/{RUN}/2/stdout.log").read_text() == "said 2"
    assert (state / f"runs/{RUN}/session.log").read_text() == "a log"
    assert [note.text for note in waiting_notes(state)] == ["a note"]
    assert {path.name for path in (state / f"runs/{RUN}").iterdir()} == {"1", "2", "session.log"}
    assert numbers(old) == [1, 2]  # the user deletes it
    assert settle(tree) == (place, [])
    assert listed.exists()


@pytest.mark.parametrize("how", ["missing", "of another tree", "a link"])
def test_old_record_that_may_be_forged_is_not_taken_over(
    tree: Path, old: StateFolder, listed: Path, how: str
) -> None:
    listed.unlink()
    if how == "of another tree":
        listed.write_bytes(os.fsencode(tree.parent))
    elif how == "a link":
        (tree / "list").write_bytes(os.fsencode(tree))
        listed.symlink_to(tree / "list")
    place, (line,) = settle(tree)
    assert place is None
    assert "rooda record import .rooda" in line
    assert old.exists()
    assert not state_of(tree).exists()


def test_link_in_place_of_the_old_folder_is_not_followed(
    tmp_path: Path, tree: Path, old: StateFolder, listed: Path
) -> None:
    old.rename(tmp_path / "elsewhere")
    old.symlink_to(tmp_path / "elsewhere")
    assert settle(tree) == (None, [])
    assert listed.exists()


def test_broken_old_record_is_named_and_nothing_is_lost(
    tree: Path, old: StateFolder, listed: Path
) -> None:
    (old / "rooda.db").write_bytes(b"garbage " * 500)
    place, (line,) = settle(tree)
    assert place is None
    assert f"The record of rooda 0.1 in {old} can't be taken over: its database" in line
    assert listed.exists()


def test_nearer_new_record_hides_an_old_one_above(tree: Path, old: StateFolder) -> None:
    record(state_of(tree / "below"))
    assert settle(tree / "below") == (record_at(tree / "below"), [])
    assert old.exists()


def test_import_adds_to_a_record_and_replaces_runs_of_the_same_name(
    tree: Path, old: StateFolder
) -> None:
    with contextlib.closing(Store(state_of(tree), print)) as store:
        store.save(run=a_run("another", "success"))
        store.save(run=a_run(RUN, "aborted"))
    import_old_record(old, record_at(tree))
    reader = RecordReader(state_of(tree))
    assert {row.run: row.status for row in reader.runs()} == {"another": "success", RUN: "success"}


def test_import_takes_no_notes_from_behind_a_link(
    tmp_path: Path, tree: Path, old: StateFolder
) -> None:
    (old / "notes").rename(tmp_path / "elsewhere")
    (old / "notes").symlink_to(tmp_path / "elsewhere")
    import_old_record(old, record_at(tree))
    assert numbers(state_of(tree)) == [1, 2]
    assert waiting_notes(state_of(tree)) == []


def test_import_waits_for_no_run_of_the_old_version(tree: Path, old: StateFolder) -> None:
    lock = Lock(tree, state=old)
    with pytest.raises(StoreError, match="a run is at work"):
        import_old_record(old, record_at(tree))
    lock.close()
    shutil.rmtree(old / "runs")
    import_old_record(old, record_at(tree))
    assert numbers(state_of(tree)) == [1, 2]
