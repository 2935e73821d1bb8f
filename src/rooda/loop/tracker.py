"""What changed in a folder since the last scan, with or without a git repository."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.base.paths import glob_of_name
from rooda.world.git.git import GitError
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.git.snapshots.tree_changes import Changes, TreeScan
from rooda.world.git.work_tree import work_tree
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import NoStateHomeError
from rooda.world.state.record_place import place_for
from rooda.world.tools import Tools


class FileChangeTracker:
    """Compares a folder with the scan before. A scan that fails returns its trouble."""

    def __init__(
        self,
        root: Path,
        tools: Tools | None = None,
        *,
        state: StateFolder | None = None,
        run: str = "",
        keep: bool = False,
        own: Sequence[str] = (),
    ) -> None:
        """`state` is the state folder; without it, that of the user for this work tree.

        `keep`: snapshots get names of `run`. `own` are patterns of absolute paths, of files that
        rooda writes, not the agent.
        """
        self.root = root
        self._is_stale = True
        self._last: TreeScan | None = None
        self._run = run if keep else None
        self._trouble = ""
        self._snapshots: Snapshots | None = None
        tools = tools or Tools(folders=[root])
        try:
            state = state or place_for(root, os.environ).state
            patterns = _below(work_tree(root), own)
            self._snapshots = Snapshots.open(root, state, tools, own=patterns)
        except (GitError, NoStateHomeError, OSError, RuntimeError) as error:  # links in a circle
            self._trouble = str(error)

    def snapshot(self, name: str | None = None) -> TreeScan:
        """Scan the folder before an iteration: what changes from now on is the agent's."""
        self._is_stale = False
        return self._scan(name)

    def refresh(self) -> None:
        """Take a snapshot, unless the last scan is still valid."""
        if self._is_stale:
            self.snapshot()

    def detect_changes(self) -> tuple[list[str], list[str], list[str]]:
        """Return the modified, created and deleted files since the last scan, sorted.

        The lists are empty if there was no scan before. Raises OSError if the scan fails.
        """
        seen = self._scan(None)
        if seen.changes is None and seen.trouble:
            raise OSError(seen.trouble)
        found = seen.changes or Changes()
        return list(found.modified), list(found.created), list(found.deleted)

    def scan(self, name: str | None = None) -> TreeScan:
        """Scan after an iteration: what changed. Keeps the tree under the name, if any."""
        return self._scan(name)

    def forget(self) -> None:
        """Scan again before the next iteration: programs other than the agent may change files."""
        self._is_stale = True

    def _scan(self, name: str | None) -> TreeScan:
        before, self._last = self._last, None
        if self._snapshots is None:
            return TreeScan(trouble=self._trouble)
        try:
            run = self._run if name is not None else None
            now = self._snapshots.take(run, name or "")
        except (GitError, OSError) as error:
            self._is_stale = True  # the next scan has nothing to compare with
            return TreeScan(trouble=str(error))
        self._last = now
        moved = before is not None and before.head != now.head
        head = before.head if before is not None else None
        commits = self._snapshots.commits_between(head, now.head) if moved else 0
        return replace(now, commits=commits, head_moved=moved, head_before=head)


def _below(folder: Path, patterns: Sequence[str]) -> list[str]:
    """Return the patterns of paths below a folder, relative to it."""
    start = f"{glob_of_name(str(folder))}/"
    return [one.removeprefix(start) for one in patterns if one.startswith(start)]
