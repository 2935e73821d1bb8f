"""Write a report: whole or not at all, and never through a link that an agent has planted."""

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from rooda.world.git.work_tree import leads_out
from rooda.world.state.folder import StateFolder, make_folders, new_file
from rooda.world.state.record_place import RecordPlace

# Writing there is the user's wish, and nothing there may be replaced: `/dev/stdout`.
_DEVICES = ("/dev/", "/proc/")


class LinkedAwayError(OSError):
    """A link leads from the work tree to a place outside of it."""


def default_path(state: StateFolder, run: str) -> Path:
    """Return where the page of a run is without another wish; it goes when the run is pruned."""
    return state / "runs" / run / "report.html"


def write_default(place: RecordPlace, run: str, pieces: Iterable[str]) -> Path:
    """Write the page of a run into the folder of the run. Raises OSError."""
    make_folders(place.state, f"runs/{run}")
    path = default_path(place.state, run)
    write_whole(path, pieces, place)
    return path


def write_whole(
    path: Path, pieces: Iterable[str], place: RecordPlace, trees: Sequence[Path] = ()
) -> None:
    """Write the file in one step, so that a reader sees the old one or the new one.

    What is in its place is replaced, also a link. `trees` are other folders than the work tree in
    which agents may have made links. Raises OSError, and then nothing has changed.
    """
    if str(path).startswith(_DEVICES):
        with path.open("wb", buffering=0) as device:
            for piece in pieces:
                _write(device, piece.encode("utf-8", "replace"))
        return
    if leads_out(path.parent, place.tree, *trees):
        message = "a link in the work tree leads out of it"
        raise LinkedAwayError(errno.ELOOP, message, str(path.parent))
    if not path.parent.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        _write_draft(path, pieces, place.state)
    except OSError as error:  # the user knows nothing of the draft that it may name
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _write_draft(path: Path, pieces: Iterable[str], state: StateFolder) -> None:
    """Write a draft, and put it in the place of the file."""
    draft, file = _open_draft(path, state)
    try:
        with file:
            for piece in pieces:
                _write(file, piece.encode("utf-8", "replace"))
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _open_draft(path: Path, state: StateFolder) -> tuple[Path, IO[bytes]]:
    """Return a new file on the same disk: in the state folder, which no agent sees, if it can.

    Otherwise it is beside the file that it will replace.
    """
    with contextlib.suppress(OSError):
        name = f"report.{os.getpid()}.draft"
        file = new_file(state, name)
        if os.fstat(file.fileno()).st_dev == path.parent.stat().st_dev:
            return state / name, file
        file.close()
        (state / name).unlink()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    return draft, os.fdopen(os.open(draft, flags, 0o600), "r+b", buffering=0)


def _write(file: IO[bytes], content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
