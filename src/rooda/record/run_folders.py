"""Where the files of a run are: `runs/<run>/<iteration>/` in the state folder."""

import contextlib
import os
from pathlib import Path
from typing import Final

from rooda.world.files.beneath import Beneath
from rooda.world.state.folder import StateFolder, is_run, place_of

_RUNS: Final = "runs"


def run_folder(state: StateFolder, run: str) -> Path:
    """The folder of a run, whether or not it is there."""
    return state / _RUNS / _checked(run)


def iteration_folder(state: StateFolder, run: str, number: int, attempt: int = 1) -> Path:
    """The folder of one attempt at one iteration, whether or not it is there."""
    return state / place_of(_checked(run), number, attempt)


def run_folders(state: StateFolder) -> list[str]:
    """The runs that have a folder. Raises OSError."""
    try:
        with os.scandir(state / _RUNS) as entries:
            folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return sorted(filter(is_run, folders))


def size_on_disk(state: StateFolder, run: str) -> int:
    """The bytes of a run on disk, without the holes in transcripts; unreadable files count 0."""
    return size_below(run_folder(state, run))


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


def remove_run(state: StateFolder, run: str) -> None:
    """Delete the folder of a run. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        Beneath(state / _RUNS).remove(_checked(run))


def _checked(run: str) -> str:
    if not is_run(run):
        raise ValueError(f"not the name of a run: {run!r}")
    return run
