"""Files that rooda writes itself: in the work tree, they are not the agent's work."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from rooda.base.paths import glob_of_name, glob_of_series
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import (
    LOG_FILE,
    REPORT,
    SANDBOX_WRITABLE,
    SESSION_LOG,
    WORKING_DIR,
)
from rooda.world.git.work_tree import work_tree
from rooda.world.state.home import OLD_FOLDER

_OUTPUT_STREAMS = (1, 2)


class OwnFile(Struct, frozen=True):
    """A file that rooda writes; with `has_kin`, names that differ only in digits are included."""

    path: Path
    has_kin: bool = False

    @property
    def pattern(self) -> str:
        """The pattern of its name, and of the names that differ only in digits."""
        return glob_of_series(str(self.path)) if self.has_kin else glob_of_name(str(self.path))

    def for_git(self, top: str) -> tuple[str, str] | None:
        """Return git's pathspec kind and the name relative to the top; None outside of the top."""
        if not self.path.is_relative_to(top):
            return None
        name = str(self.path.relative_to(top))
        return ("glob", glob_of_series(name)) if self.has_kin else ("literal", name)


def own_files(values: Values) -> list[OwnFile]:
    """Return the files that a run with these settings writes outside of its state folder."""
    log, report, session = values[LOG_FILE], values[REPORT], values[SESSION_LOG]
    own = [OwnFile(path) for path in _redirected_to()]
    own += [OwnFile(Path(one).resolve()) for one in (log, report) if one is not None]
    if session is not None:
        own.append(OwnFile(Path(session).resolve(), has_kin=True))
    return own


def trees_of_agents(values: Values, folder: Path) -> tuple[Path, ...]:
    """Return the folders in which agents may have made links: no file of rooda's is behind one.

    `folder` is where the user works; the agent may work in another work tree.
    """
    worked_in = Path(values[WORKING_DIR] or folder)
    writable = (Path(one) for one in values[SANDBOX_WRITABLE])
    return work_tree(folder), work_tree(worked_in), *writable


def pathspecs(values: Values, top: str) -> list[tuple[str, str]]:
    """Return rooda's own files as git names them: the kind of pathspec, and the name from the top.

    A record of version 0.1 that still lies in the tree is one of them.
    """
    files = (file.for_git(top) for file in own_files(values))
    return [("glob", f"**/{OLD_FOLDER}/**"), *(file for file in files if file is not None)]


def _redirected_to() -> Iterator[Path]:
    """Return the files that rooda's own output goes to (`rooda build > night.log`), if known."""
    for fd in _OUTPUT_STREAMS:
        try:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            if stat.S_ISREG(os.fstat(fd).st_mode) and os.path.samestat(os.fstat(fd), path.stat()):
                yield path
        except OSError:
            continue
