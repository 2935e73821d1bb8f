"""Which uncommitted files are the user's: those that change while a run waits."""

from pathlib import Path

from rooda.world.git.noted_files import NotedFiles
from rooda.world.git.user_changes import Uncommitted, UserFiles


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
