"""Where the files of a run are: `runs/<run>/<iteration>/` in the state folder."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rooda.workspace.state_folder import StateFolder, is_run, place_of

_RUNS: Final = "runs"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def run_folder(state: StateFolder, run: str) -> Path:
    """The folder of a run, whether or not it is there."""
    return state / _RUNS / _checked(run)


def iteration_folder(state: StateFolder, run: str, number: int, attempt: int = 1) -> Path:
    """The folder of one attempt at one iteration, whether or not it is there."""
    return state / place_of(_checked(run), number, attempt)


def run_folders(state: StateFolder) -> list[str]:
    """The runs that have a folder. Raises OSError."""
    try:
        with _runs(state) as fd, os.scandir(fd) as entries:
            return sorted(
                entry.name
                for entry in entries
                if is_run(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def size_on_disk(state: StateFolder, run: str) -> int:
    """The bytes of a run on disk, without the holes in transcripts; unreadable files count 0."""
    folder = run_folder(state, run)
    return size_below(folder) if _is_ours(folder) else 0


def size_below(folder: Path) -> int:
    """The bytes of a folder on disk; unreadable files count 0."""
    size, waiting = 0, [str(folder)]
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


def remove_run(state: StateFolder, run: str) -> None:
    """Delete the folder of a run; the target of a link stays. Raises OSError."""
    name = _checked(run)
    with contextlib.suppress(FileNotFoundError), _runs(state) as fd:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=fd)
            return
        try:
            shutil.rmtree(name, dir_fd=fd)
        except RecursionError:
            raise OSError("folders are nested too deeply") from None


@contextlib.contextmanager
def _runs(state: StateFolder) -> Iterator[int]:
    """The folder of all runs, reached without following any link below the state folder."""
    top = os.open(state, _FOLDER)
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
