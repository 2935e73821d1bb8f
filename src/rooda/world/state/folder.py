"""The state folder of a work tree: rooda's own folder, private to the user, outside of the tree.

The prompt is a file in it. A file needs no writer, can't deadlock with an agent that prints before
it reads, and stays as evidence. What the agent prints is in files beside the prompt.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NewType

# A type of its own, so that mypy finds each place that mixes it up with a folder of the work tree.
StateFolder = NewType("StateFolder", Path)
DATABASE = "rooda.db"

PROMPT, STDOUT, STDERR = "prompt.md", "stdout.log", "stderr.log"
ORDER, VERIFY = "order.bin", "verify.log"  # the order of the streams; what `verify` printed
REPLACED = "replaced"  # what the agent had put in place of protected files
CLEAN_CHECK = "verify-clean.log"  # what `verify.clean` printed
# The git folder of an agent in the sandbox: the one in use, and where the user's git stood then.
AGENT_GIT, AGENT_GIT_NOW, AGENT_GIT_BASE = "agent-git", "now", "base.json"
STORE, SNAPSHOTS = "git", "refs/rooda"  # the store of snapshots; in it, a folder for each run
SESSION, UNTRACKED, LEFT = "session.log", "untracked", "left"  # of a whole run


# A run's name is also the name of its folder: no dot at the beginning, and no slash.
_RUN = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")


def is_run(name: str) -> bool:
    """Return whether this can be the name of a run, and so of its folder."""
    return _RUN.fullmatch(name) is not None


def has_left_git(state: StateFolder) -> bool:
    """Return whether a run left the agent's git folder, as only one does that was killed."""
    return (state / AGENT_GIT / AGENT_GIT_NOW / AGENT_GIT_BASE).is_file()


def kept_snapshots(state: StateFolder, run: str) -> frozenset[str]:
    """Return the names of the snapshots that the store has of a run."""
    try:
        return frozenset(os.listdir(state / STORE / SNAPSHOTS / run))  # noqa: PTH208 - names
    except OSError:
        return frozenset()


def place_of(run: str, iteration: int, attempt: int = 1) -> str:
    """Return the folder within the state folder for one attempt at an iteration."""
    number = str(iteration) if attempt == 1 else f"{iteration}.{attempt}"
    return f"runs/{run or 'unnamed'}/{number}"


def earlier_try(number: int) -> str:
    """Return the name of the file with what a failed try of `verify` printed."""
    return f"verify-try-{number}.log"


def keep_file(state: StateFolder, name: str, content: bytes) -> None:
    """Write a file within the state folder. A failure is no error: the file is only evidence."""
    try:
        with new_file(state, name) as file:
            _written(file, content)
    except OSError:
        with contextlib.suppress(OSError):
            remove_file(state, name)


def make_state_folder(state: StateFolder) -> None:
    """Create the state folder, private to the user. Raises OSError if that is not possible."""
    make_folders(state)
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        state.chmod(0o700)


def nearest_folder(state: StateFolder) -> Path:
    """Return the state folder, or the nearest one above it that exists."""
    return next(one for one in (state, *state.parents) if os.path.lexists(one))


def make_folders(state: StateFolder, place: str = "") -> str:
    """Create a folder within the state folder with the folders above it, and return its path.

    Each iteration does this for each of its files, so a folder that is there costs two system
    calls. In a slot of a fleet an agent can put a link in place of the record: rooda does not
    follow it, because the folder behind it may be the user's.
    """
    folder = f"{state}/{place}" if place else str(state)
    if os.path.islink(state):  # noqa: PTH114 - text is faster here
        raise OSError(errno.ELOOP, "is a symbolic link; move it away", str(state))
    if not os.path.isdir(folder):  # noqa: PTH112 - text is faster here
        if os.path.lexists(state) and not state.is_dir():
            raise OSError(errno.EEXIST, "is not a folder; move it away", str(state))
        for one in [*reversed(Path(folder).parents), Path(folder)]:
            if not one.is_dir():
                one.mkdir(mode=0o700, exist_ok=True)  # another rooda may do the same now
    return folder


def open_prompt(
    state: StateFolder, place: str, prompt: bytes, on_trouble: Callable[[OSError], None]
) -> IO[bytes]:
    """Return the prompt as a file, open for reading. `place` is a folder within the state folder.

    An agent may have deleted the folder or filled the disk. Then rooda creates the folder again,
    or writes the prompt to the system's temporary folder. Raises OSError if that fails as well.
    """
    try:
        name = f"{place}/{PROMPT}"
        _filled(new_file(state, name), prompt).close()
        return (state / name).open("rb", buffering=0)
    except OSError as error:
        on_trouble(error)
        try:
            return _filled(tempfile.TemporaryFile(), prompt)
        except OSError:
            raise error from None  # the first error says more


def sealed_file(content: bytes) -> IO[bytes]:
    """Return a file in memory that no program can change. Raises OSError if there is none."""
    if not hasattr(fcntl, "F_ADD_SEALS"):
        raise OSError(errno.ENOSYS, "the system has no sealed files")
    fd = os.memfd_create("prompt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    file = _filled(os.fdopen(fd, "r+b", buffering=0), content)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return file


def open_transcript(
    state: StateFolder, place: str, on_trouble: Callable[[OSError], None]
) -> tuple[IO[bytes], IO[bytes]] | None:
    """Return empty files for both streams; temporary ones, or None, if that is not possible."""
    try:
        folder = make_folders(state, place)
        return _both(lambda name: _open_new(f"{folder}/{name}"))
    except OSError as error:
        on_trouble(error)
    try:
        return _both(lambda _: tempfile.TemporaryFile("a+b", buffering=0))
    except OSError:
        return None


def _both(opened: Callable[[str], IO[bytes]]) -> tuple[IO[bytes], IO[bytes]]:
    first = opened(STDOUT)
    try:
        return first, opened(STDERR)
    except OSError:
        first.close()
        raise


def new_file(state: StateFolder, name: str) -> IO[bytes]:
    """Create a new file of this name, open for reading and appending.

    A process that has the earlier file open keeps that one. Several writers don't overwrite each
    other, because the file is open for appending. The name may contain folders.
    """
    place, _, last = name.rpartition("/")
    return _open_new(f"{make_folders(state, place)}/{last}")


def open_to_append(state: StateFolder, name: str) -> int:
    """Return a descriptor for appending to a file."""
    place, _, last = name.rpartition("/")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(f"{make_folders(state, place)}/{last}", flags, 0o600)


def remove_file(state: StateFolder, name: str) -> None:
    """Delete a file within the state folder."""
    (state / name).unlink(missing_ok=True)


def _open_new(path: Path | str) -> IO[bytes]:
    """Create the file; a process that has the one in its place open keeps that."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        Path(path).unlink()
        fd = os.open(path, flags, 0o600)
    return os.fdopen(fd, "r+b", buffering=0)


def _written(file: IO[bytes], content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.flush()


def _filled(file: IO[bytes], prompt: bytes) -> IO[bytes]:
    try:
        _written(file, prompt)
        file.seek(0)
    except OSError:
        file.close()
        raise
    return file
