"""`.rooda` and its folders, created by several commands at the same moment."""

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rooda.world.state.folder import make_folders, make_state_folder
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


def test_a_folder_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    state = state_of(tmp_path)
    state.mkdir(parents=True, mode=0o755)
    make_state_folder(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
