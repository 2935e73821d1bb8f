"""Where the files of a run are: `.rooda/runs/<run>/<iteration>/`."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rooda.workspace.state_folder import STATE_FOLDER, is_run, place_of

_RUNS: Final = "runs"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def run_folder(workspace: Path, run: str) -> Path:
    """The folder of a run, whether or not it is there."""
    return workspace / STATE_FOLDER / _RUNS / _checked(run)


def iteration_folder(workspace: Path, run: str, number: int, attempt: int = 1) -> Path:
    """The folder of one attempt at one iteration, whether or not it is there."""
    return workspace / STATE_FOLDER / place_of(_checked(run), number, attempt)


def run_folders(workspace: Path) -> list[str]:
    """The runs that have a folder. Raises OSError."""
    try:
        with _runs(workspace) as fd, os.scandir(fd) as entries:
            return sorted(
                entry.name
                for entry in entries
                if is_run(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def size_on_disk(workspace: Path, run: str) -> int:
    """The bytes of a run on disk, without the holes in transcripts; unreadable files count 0."""
    folder = run_folder(workspace, run)
    size, waiting = 0, [str(folder)] if _is_ours(folder) else []
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return size


def _is_ours(folder: Path) -> bool:
    """Return whether no link leads to the folder of a run; False if rooda may not look."""
    try:
        return not any(one.is_symlink() for one in (folder, *folder.parents[:2]))
    except OSError:
        return False


def remove_run(workspace: Path, run: str) -> None:
    """Delete the folder of a run; the target of a link stays. Raises OSError."""
    name = _checked(run)
    with contextlib.suppress(FileNotFoundError), _runs(workspace) as fd:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=fd)
            return
        try:
            shutil.rmtree(name, dir_fd=fd)
        except RecursionError:
            raise OSError("folders are nested too deeply") from None


@contextlib.contextmanager
def _runs(workspace: Path) -> Iterator[int]:
    """The folder of all runs, reached without following any link below the workspace."""
    top = os.open(workspace / STATE_FOLDER, _FOLDER)
    try:
        fd = os.open(_RUNS, _FOLDER, dir_fd=top)
    finally:
        os.close(top)
    try:
        yield fd
    finally:
        os.close(fd)


def _checked(run: str) -> str:
    if not is_run(run):
        raise ValueError(f"not the name of a run: {run!r}")
    return run
