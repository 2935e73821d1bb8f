"""`.rooda`: rooda's own folder in the workspace. It keeps itself private and out of git.

The prompt is a file in it, so that an agent may read it whenever and however it likes: a file
needs no writer, can't deadlock with an agent that prints before it reads, and stays as evidence.
"""

import errno
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

STATE_FOLDER = ".rooda"

_NAME = "prompt.md"


def make_state_folder(workspace: Path) -> Path:
    """Create `.rooda`, private, ignoring itself. Raises OSError where that is not possible."""
    folder = workspace / STATE_FOLDER
    if folder.is_symlink():  # whatever is behind it is not ours
        raise OSError(errno.ELOOP, "is a symbolic link; move it away", str(folder))
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.EEXIST, "is not a folder; move it away", str(folder)) from None
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def open_prompt(workspace: Path, prompt: bytes, on_trouble: Callable[[OSError], None]) -> IO[bytes]:
    """The prompt, open for reading at its beginning.

    An agent may have deleted the folder or filled the disk since the run began: then it is made
    anew, or the prompt goes to the system's temporary folder, which may fail as well (OSError).
    """
    try:
        path = make_state_folder(workspace) / _NAME
        path.unlink(missing_ok=True)  # an earlier reader keeps its own file
        # One descriptor for both: by its name it could be another run's by now.
        return _filled(path.open("x+b"), prompt)
    except OSError as error:
        on_trouble(error)
        return _filled(tempfile.TemporaryFile(), prompt)


def _filled(file: IO[bytes], prompt: bytes) -> IO[bytes]:
    try:
        file.write(prompt)
        file.flush()
        file.seek(0)
    except OSError:
        file.close()
        raise
    return file
