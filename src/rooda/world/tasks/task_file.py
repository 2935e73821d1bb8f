"""The task file of a run (`tasks`): the tasks in it now.

An agent can put anything in its place: a huge file, a pipe, a link. Each form of a task file has
its reader here; Markdown is the only one so far.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from rooda.base.markdown import LONGEST
from rooda.world.files.sight import OutOfSightError, Sight, read_named
from rooda.world.tasks.markdown_tasks import Task, tasks_in

# How the name of a file ends, and what reads it. Every other file is read as Markdown.
_READERS: dict[str, Callable[[str], tuple[Task, ...]]] = {}


class TaskFileError(Exception):
    """rooda can't read the tasks; the message says why."""


class TaskFile(Struct, frozen=True):
    """A file with tasks. `shown` is its name in messages.

    A link may not lead out of `sight`: an agent can make one.
    """

    path: Path
    shown: str
    sight: Sight | None = None

    def read(self) -> tuple[Task, ...]:
        """Return the tasks in the file. Raises TaskFileError."""
        return self._read(self.path)

    def read_done(self) -> tuple[Task, ...]:
        """Return the tasks in `PLAN-DONE.md`, to which agents move tasks; none if there is none."""
        try:
            return self._read(self.path.with_name(f"{self.path.stem}-DONE{self.path.suffix}"))
        except TaskFileError:
            return ()

    def _read(self, path: Path) -> tuple[Task, ...]:
        try:
            data = read_named(path, LONGEST + 1, self.sight)
        except OutOfSightError as error:
            text = f"is a link that leads out of the work tree, to {error.target}"
            raise TaskFileError(text) from None
        except FileNotFoundError:
            raise TaskFileError("does not exist") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise TaskFileError(f"can't be read: {why}") from None
        if len(data) > LONGEST:  # the tasks beyond it would count as gone
            raise TaskFileError(f"is larger than {LONGEST:,} bytes")
        if b"\0" in data:
            raise TaskFileError("is not text in UTF-8")
        return _parsed(path.suffix.lower(), data)


@lru_cache(maxsize=4)  # rooda reads the file several times in an iteration
def _parsed(suffix: str, data: bytes) -> tuple[Task, ...]:
    return _READERS.get(suffix, tasks_in)(data.decode("utf-8", "replace"))
