"""The paths that stand for the user's untracked files, and the list that a resumed run reads."""

import os
from pathlib import Path

import pytest

from rooda.world.git.git import Git
from rooda.world.git.noted_files import NotedFiles, Uncommitted, UserFiles, covering
from rooda.world.tools import Tools
from support.gitrepo import repository
from support.tables import each_row


@each_row(
    "names,others,paths",
    [
        (["a"], ["b"], ["a"]),
        (["d/a", "d/b", "d/e/c"], ["x"], ["d"]),
        (["d/a", "d/e/b", "d/e/c"], ["d/x"], ["d/a", "d/e"]),
        (["d/a", "d/e/b"], ["d/e/x"], ["d/a", "d/e/b"]),
        (["nested/", "d/nested/"], ["d/x"], ["nested", "d/nested"]),
        ([], ["a"], []),
    ],
)
def test_folder_stands_for_its_files_unless_it_contains_others(
    names: list[str], others: list[str], paths: list[str]
) -> None:
    assert covering(names, others) == paths


@pytest.mark.real
def test_list_survives_being_saved_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    repo = repository(tmp_path / "work")
    odd = os.fsdecode(b"\xff\n")
    repo.write(odd, "mine")
    repo.write("mine", "mine")
    found = NotedFiles.find(repo.path, Git(repo.path, Tools()), lambda: False)
    again = NotedFiles.restored(repo.path, found.saved())
    repo.write("mine", "other")
    (repo.path / odd).touch()
    for one in (found, again):
        assert list(one.unchanged([odd, "mine", "unknown"])) == [odd]
    for damaged in (b"x\0", b"zz zz\0name\0"):
        with pytest.raises(ValueError, match=r"zip|literal"):
            NotedFiles.restored(Path(), damaged)


# Which uncommitted files are the user's: those that change while a run waits.


def _files(top: Path, *, tracked: tuple[str, ...], leaves_tracked: bool = True) -> UserFiles:
    def find() -> Uncommitted:
        names = {*tracked, *(path.name for path in top.iterdir())}
        files = NotedFiles.note(top, sorted(names), lambda: False)
        return Uncommitted(files, frozenset(tracked))

    return UserFiles(find, NotedFiles(top), leaves_tracked=leaves_tracked)


def test_files_that_change_during_a_wait_are_the_users_until_they_change_again(
    tmp_path: Path,
) -> None:
    for name in ("README", "gone", "agents"):
        (tmp_path / name).write_text("before")
    files = _files(tmp_path, tracked=("README", "gone"))
    files.begin_wait()
    (tmp_path / "README").write_text("user")
    (tmp_path / "gone").unlink()
    (tmp_path / "notes").write_text("user")
    (tmp_path / "agents").write_text("before")  # the same content
    assert files.end_wait() == ["README", "gone", "notes"]
    assert files.tracked == {"README", "gone"}
    assert list(files.left_by_run()) == ["agents"]
    assert files.end_wait() == [], "the wait is over"
    (tmp_path / "notes").write_text("agent")
    assert list(files.known.unchanged(["README", "gone", "notes"])) == ["README", "gone"]
    files.begin_wait()
    (tmp_path / "README").write_text("user again")
    assert files.end_wait() == [], "rooda names a file once"
    assert list(files.known.unchanged(["README"])) == ["README"]


def test_tracked_files_are_the_runs_if_the_settings_say_so(tmp_path: Path) -> None:
    files = _files(tmp_path, tracked=("README",), leaves_tracked=False)
    (tmp_path / "README").write_text("before")
    files.begin_wait()
    (tmp_path / "README").write_text("user")
    assert files.end_wait() == []
