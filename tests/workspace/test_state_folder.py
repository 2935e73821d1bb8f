"""`.rooda` and its folders, created by several commands at the same moment."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rooda.workspace.state_folder import make_folders
from support.states import state_of

_AT_ONCE = 8


def test_commands_that_create_the_folder_at_the_same_moment_all_succeed(tmp_path: Path) -> None:
    for number in range(40):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        start = threading.Barrier(_AT_ONCE)

        def create(workspace: Path = workspace, start: threading.Barrier = start) -> str:
            start.wait()
            return make_folders(state_of(workspace), "notes/deep")

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            made = [one.result() for one in [pool.submit(create) for _ in range(_AT_ONCE)]]
        assert made == [str(state_of(workspace) / "notes/deep")] * _AT_ONCE
        assert [one.name for one in state_of(workspace).iterdir()] == ["notes"]


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = Path(make_folders(state_of(tmp_path)))
    (folder / "notes").symlink_to(outside)
    made = Path(make_folders(state_of(tmp_path), "notes"))
    assert not made.is_symlink()
    assert made.is_dir()
    assert list(outside.iterdir()) == []


def test_a_file_that_appears_in_place_of_the_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.mkdir

    def slow(self: Path, mode: int = 0o777, **words: bool) -> None:
        if self.name == "notes":
            self.symlink_to(tmp_path)
        real(self, mode, **words)

    monkeypatch.setattr(Path, "mkdir", slow)
    with pytest.raises(FileExistsError):
        make_folders(state_of(tmp_path), "notes")
