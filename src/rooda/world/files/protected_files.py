"""Files of a work tree that an agent may not change. rooda keeps a copy of each in memory.

Not git, because git's snapshots have no ignored files, filters may change what git writes, and an
agent can delete the repository. Copies in memory are out of reach, and no secret is on the disk
twice.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rooda.base.numbers import approximate_size
from rooda.base.paths import PathPatterns
from rooda.world.files.beneath import Beneath
from rooda.world.files.put_back import Aside, KeptFile, Obstacle, difference, look, put_back
from rooda.world.state.home import OLD_FOLDER

MOST_KEPT = 64 * 1024 * 1024  # bytes of all files together
_SKIPPED = frozenset({".git", OLD_FOLDER})


class CannotProtect(Exception):  # noqa: N818 - it says what is wrong
    """A file can't be protected; the message says why."""


class ProtectedFiles:
    """The files that matched when the run started. Names are relative to `top`."""

    def __init__(self, top: Path, names: Iterable[str], most: int = MOST_KEPT) -> None:
        """Keep the files as they are now. Raises CannotProtect."""
        self._top = top.resolve()
        self._tree = Beneath(self._top)
        self._most = most
        self._kept: dict[str, KeptFile] = {}
        self._total = 0  # bytes
        self._left: dict[str, str] = {}  # marks of files that are as the agent left them
        self._modes: dict[str, int] = {}  # of the folders
        # Files in commits of the agent, with git's name for the content that it committed.
        self.committed: dict[str, str] = {}
        for name in names:
            found = self._look(name)
            if isinstance(found, Obstacle) and (found.error or found.kind == "a file"):
                raise self._refusal(name, found)
            if isinstance(found, KeptFile):
                self._keep(name, found)
                if self._total > most:
                    raise self._refusal(name, found)
        self._note_modes()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    @property
    def top(self) -> Path:
        """The folder that the names are relative to."""
        return self._top

    def refresh(self) -> list[str]:
        """Take the files as they are now, before an agent starts: the user may have changed them.

        A change that the agent left behind is still no change of the user. Returns the files that
        rooda can't protect any longer.
        """
        lost = []
        for name, kept in [*self._kept.items()]:
            now = self._look(name)
            if name in self._left and self._left[name] == _mark(now):
                continue
            self._left.pop(name, None)
            if now == kept:
                continue
            del self._kept[name]
            self._total -= len(kept.content)
            if isinstance(now, KeptFile) and self._total + len(now.content) <= self._most:
                self._keep(name, now)
            elif now != Obstacle():  # the user may delete a file
                lost.append(name)
        self._note_modes()
        return lost

    def changed(self) -> dict[str, str]:
        """Return the files that are not as they were, with what happened to each, in words."""
        found = {}
        for name, kept in self._kept.items():
            now = self._look(name, len(kept.content))
            if words := difference(kept, now):
                found[name] = words
        return found

    def leave(self, names: Iterable[str]) -> None:
        """Note that these files stay as the agent left them; rooda still wants them back."""
        self._left.update((name, _mark(self._look(name))) for name in names)

    def put_back(self, names: Iterable[str], aside: Aside) -> dict[str, str]:
        """Bring files back; return those for which that failed, with the reason."""
        failed: dict[str, str] = {}
        for name in names:
            kept = self._kept[name]
            try:
                put_back(self._top, name, kept, self._modes, aside)
            except OSError as error:
                failed[name] = error.strerror or str(error)
                continue
            if words := difference(kept, self._look(name, len(kept.content))):
                failed[name] = f"{words} again"
        return failed

    def _look(self, name: str, most: int | None = None) -> KeptFile | Obstacle:
        """Return what has this name now."""
        return look(self._tree, name, self._most if most is None else most)

    def _note_modes(self) -> None:
        folders = {""}
        for name in self._kept:
            folder = name.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        known, self._modes = self._modes, {}
        for folder in folders:
            try:
                mode = stat.S_IMODE(self._folder_status(folder).st_mode)
            except OSError:
                mode = known.get(folder, 0o755)
            # A folder that the agent closed, with a file that it may not change, is not as it was.
            self._modes[folder] = known.get(folder, mode) if self._left else mode

    def _folder_status(self, folder: str) -> os.stat_result:
        return self._tree.status(folder) if folder else self._top.stat()

    def _keep(self, name: str, file: KeptFile) -> None:
        self._kept[name] = file
        self._total += len(file.content)

    def _refusal(self, name: str, found: KeptFile | Obstacle) -> CannotProtect:
        if isinstance(found, Obstacle) and found.kind != "a file":
            return CannotProtect(f"{name} can't be read: {found.error}")
        most = approximate_size(self._most)
        return CannotProtect(f"the files have more than {most} in all ({name} is one of them)")


def _mark(found: KeptFile | Obstacle) -> str:
    """Return a short text that differs for files that differ: the agent may have left gigabytes."""
    if isinstance(found, Obstacle):
        return f"{found.kind} {found.error}"
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which takes megabytes

    return f"{found.kind} {found.mode} {blake2b(found.content).hexdigest()}"


def matching_files(top: Path, patterns: PathPatterns) -> Iterator[str]:
    """Yield the files and links below a folder that match, sorted within each folder.

    rooda's own folder and repositories of git are left out. Raises CannotProtect.
    """
    waiting, tree = [""], Beneath(top)
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(tree.list(folder), key=lambda one: one.name)
        except OSError as error:
            if not folder or patterns.match(folder):
                raise CannotProtect(f"{folder or top} can't be read: {error.strerror}") from None
            continue
        below = []
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name in _SKIPPED:
                continue
            if stat.S_ISDIR(entry.status.st_mode):
                if patterns.may_match_below(name):
                    below.append(name)
            elif entry.is_file_or_link and patterns.match(name):
                yield name
        waiting += reversed(below)
