"""What changed in a folder since the last scan, with or without a git repository."""

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from rooda.text.paths import glob_of_name
from rooda.workspace.git import GitError
from rooda.workspace.record_place import place_for
from rooda.workspace.snapshots.repository import OtherRepositoryError
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.state_folder import StateFolder
from rooda.workspace.state_home import NoStateHomeError
from rooda.workspace.tools import Tools
from rooda.workspace.tree_changes import Changes, TreeScan
from rooda.workspace.work_tree import explain_refusal, work_tree

_NO_GIT = "git is not installed, and rooda finds changed files with it: install git"


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
        other_repository: str = "",
    ) -> None:
        """`state` is the state folder; without it, that of the user for this work tree.

        `keep`: snapshots get a ref of `run`. `own` are patterns of absolute paths, of files that
        rooda writes, not the agent. `other_repository`: why rooda must not write to the
        repository of the folder.
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
            self._without_repository = partial(_private, root, state, tools, own)
            if other_repository and tools.git is not None:
                self._snapshots = self._without_repository()
                self._trouble = f"rooda keeps none in another repository: {other_repository}"
                return
            self._snapshots, self._trouble = _open(root, state, tools, own)
        except (GitError, NoStateHomeError) as error:
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
        """Scan again before the next iteration: programs other than the agent may change files.

        They may also look for the snapshots, so each one has its ref now.
        """
        self._is_stale = True
        self.close()

    def close(self) -> None:
        """Give each kept tree its ref. If git fails, the record still has the commits."""
        if self._snapshots is not None:
            with contextlib.suppress(GitError, OSError):
                self._snapshots.flush()

    def _scan(self, name: str | None) -> TreeScan:
        before, self._last = self._last, None
        if self._snapshots is None:
            return TreeScan(trouble=self._trouble)
        try:
            run = self._run if name is not None else None
            now = self._snapshots.take(run, name or "")
        except (GitError, OSError) as error:
            self._is_stale = True  # the next scan has nothing to compare with
            if isinstance(error, OtherRepositoryError):
                self._trouble = str(error)
                self._snapshots = self._scans_without_repository()
            return TreeScan(trouble=str(error))
        self._last = now
        moved = before is not None and before.head != now.head
        head = before.head if before is not None else None
        commits = self._snapshots.commits_between(head, now.head) if moved else 0
        trouble = now.trouble or self._trouble
        return replace(now, commits=commits, head_moved=moved, head_before=head, trouble=trouble)

    def _scans_without_repository(self) -> Snapshots | None:
        """Return scans of the folder alone; None if an agent has removed the folder itself."""
        try:
            return self._without_repository()
        except (GitError, OSError, RuntimeError):  # RuntimeError: links in a circle, from pathlib
            return None


def _open(
    root: Path, state: StateFolder, tools: Tools, own: Sequence[str]
) -> tuple[Snapshots, str]:
    """Return the scans of a folder, and a message if git refuses to work with its repository.

    Without a repository, and with one that git refuses, rooda scans with an index of its own.
    """
    if tools.git is None:
        raise GitError(_NO_GIT)
    trouble = ""
    try:
        found = Snapshots.open(root, state, tools, own=_below(work_tree(root), own))
    except GitError as error:
        found = None
        reason, advice = explain_refusal(root, str(error))
        trouble = f"there are none, because {reason}. {advice}"
    if found is not None:
        return found, ""
    return _private(root, state, tools, own), trouble


def _private(root: Path, state: StateFolder, tools: Tools, own: Sequence[str]) -> Snapshots:
    return Snapshots.without_repository(root, state, tools, own=_below(root.resolve(), own))


def _below(folder: Path, patterns: Sequence[str]) -> list[str]:
    """Return the patterns of paths below a folder, relative to it."""
    start = f"{glob_of_name(str(folder))}/"
    return [one.removeprefix(start) for one in patterns if one.startswith(start)]
