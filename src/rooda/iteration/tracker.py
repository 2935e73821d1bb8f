"""What changed in a folder: by git where there is git, else by a look at every file."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from rooda.text.paths import glob_of_name
from rooda.workspace.git import GitError
from rooda.workspace.scan import Scan, Unfinished, changes, scan
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.state_folder import STATE_FOLDER
from rooda.workspace.tools import Tools
from rooda.workspace.tree_changes import Changes, TreeScan
from rooda.workspace.work_tree import work_tree


class Looker(Protocol):
    """Looks at a tree again and again."""

    def look(self, name: str | None) -> TreeScan:
        """What changed since the last look; what is there now is kept under the name, if any."""


class FileChangeTracker:
    """Tells what changed between two looks; a look that nobody could take is no error."""

    def __init__(
        self,
        root: Path,
        tools: Tools | None = None,
        *,
        state: Path | None = None,
        run: str = "",
        keep: bool = False,
        own: Sequence[str] = (),
    ) -> None:
        """`state` is the folder for what is noted on disk. `keep`: snapshots get a ref of `run`.

        `own` are patterns of whole paths, of files that are not the agent's.
        """
        self.is_git = False
        self._is_stale = True
        self._looker: Looker
        self._trouble = ""
        tools = tools or Tools(folders=[root])
        try:
            snapshots = Snapshots.open(
                root, state or root / STATE_FOLDER, tools, own=_below(work_tree(root), own)
            )
        except GitError as error:
            snapshots, self._trouble = None, str(error)
        if snapshots is None:
            self._looker = _Scanning(root, _below(root.resolve(), own))
        else:
            self.is_git = True
            self._looker = _Snapshooting(snapshots, run if keep else None)

    def snapshot(self, name: str | None = None) -> TreeScan | None:
        """Look at what is there before an iteration, unless the last look still holds."""
        if not self._is_stale and name is None:
            return None
        self._is_stale = False
        return self._look(name)

    def detect_changes(self, name: str | None = None) -> TreeScan:
        """What changed since the last look."""
        return self._look(name)

    def forget(self) -> None:
        """Somebody other than the agent may change files now: look again before the next one."""
        self._is_stale = True

    def _look(self, name: str | None) -> TreeScan:
        try:
            return self._looker.look(name)
        except (GitError, Unfinished, OSError) as error:
            self._is_stale = True  # the next look has nothing to compare with
            return TreeScan(trouble=str(error))


class _Snapshooting:
    """By snapshots of git."""

    def __init__(self, snapshots: Snapshots, run: str | None) -> None:
        self._snapshots = snapshots
        self._run = run
        self._last: TreeScan | None = None

    def look(self, name: str | None) -> TreeScan:
        before, self._last = self._last, None
        now = self._snapshots.take(self._run if name is not None else None, name or "")
        self._last = now
        moved = before is not None and before.head != now.head
        head_before = before.head if before is not None else None
        commits = self._snapshots.commits_between(head_before, now.head) if moved else 0
        return replace(now, commits=commits, head_moved=moved)


class _Scanning:
    """By a look at every file."""

    def __init__(self, root: Path, own: Sequence[str]) -> None:
        self._root = root
        self._own = own
        self._last: Scan | None = None

    def look(self, name: str | None) -> TreeScan:  # noqa: ARG002 - there is nowhere to keep it
        before, self._last = self._last, None
        self._last = now = scan(self._root, before)
        found = changes(before, now) if before is not None else None
        return TreeScan(changes=found and self._without_own(found), tree=now.digest)

    def _without_own(self, found: Changes) -> Changes:
        def others(names: tuple[str, ...]) -> tuple[str, ...]:
            own = self._own
            return tuple(n for n in names if not any(fnmatchcase(n, one) for one in own))

        return Changes(others(found.created), others(found.modified), others(found.deleted))


def _below(folder: Path, patterns: Sequence[str]) -> list[str]:
    """The patterns of what is below a folder, as seen from there."""
    start = f"{glob_of_name(str(folder))}/"
    return [one.removeprefix(start) for one in patterns if one.startswith(start)]
