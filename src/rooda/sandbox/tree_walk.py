"""One walk over a work tree and its git folders, for what could act outside of the sandbox.

It follows no link, opens only the few files that matter, and ends in a bounded time.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct, field

from rooda.sandbox.tree_findings import (
    CLI_SETTINGS,
    CONFIG_NAMES,
    CONFIG_PATHS,
    Finding,
    TreeFacts,
    has_exec_line,
)
from rooda.text.plain_files import read_plain_file

_MOST_SECONDS = 60.0
_LOOK_EVERY = 1000  # files between two looks at the clock
_LARGEST = 1024 * 1024  # bytes of a file that rooda compares by its content
_MOST_NAMED = 5
_SET_ID = stat.S_ISUID | stat.S_ISGID
_REBASES = {
    "rebase-merge": "git-rebase-todo",
    "rebase-apply": "git-rebase-todo",
    "sequencer": "todo",
}
# The files of a repository that make git run a program or use other objects.
_SETTINGS = ("config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates")


class Places(Struct, frozen=True):
    """Where rooda looks. The paths are absolute, without links."""

    top: str
    skipped: str  # rooda's own folder
    git_folder: str = ""
    shared: str = ""  # the git folder that it shares with other work trees, if it is another
    hooks: tuple[str, ...] = ()  # folders of the work tree with hooks (core.hooksPath)
    writes_git_settings: bool = False  # the sandbox does not protect them: compare them


class _Facts(Struct):
    """What the walk has found so far."""

    git_links: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    rebases: set[str] = field(default_factory=set)
    repositories: dict[str, str] = field(default_factory=dict)
    set_id: set[str] = field(default_factory=set)
    guarded: dict[str, tuple[Finding, str]] = field(default_factory=dict)
    hard_links: list[str] = field(default_factory=list)
    hard_link_count: int = 0

    def note_file(self, path: str, status: os.stat_result) -> None:
        """Note a regular file with unusual rights or with more names."""
        if status.st_mode & _SET_ID:
            self.set_id.add(path)
        if status.st_nlink > 1:
            self.hard_link_count += 1
            if len(self.hard_links) < _MOST_NAMED:
                self.hard_links.append(path)


class _OutOfTimeError(Exception):
    """The walk took too long."""


def look(places: Places, is_over: Callable[[], bool] = lambda: False) -> TreeFacts:
    """Return what matters in the tree. `is_over` says that the walk has to end now."""
    found, clock = _Facts(), _Clock(is_over)
    is_whole = True
    try:
        for folder in filter(None, (places.git_folder, places.shared)):
            _walk_git(folder, found, clock)
            if places.writes_git_settings:
                _note_git_settings(folder, found)
        _walk_tree(places, found, clock)
    except _OutOfTimeError:
        is_whole = False
    return TreeFacts(
        git_links=found.git_links,
        modules=frozenset(found.modules),
        rebases=frozenset(found.rebases),
        shared=places.shared,
        repositories=found.repositories,
        set_id=frozenset(found.set_id),
        guarded=found.guarded,
        hard_links=tuple(found.hard_links),
        hard_link_count=found.hard_link_count,
        is_whole=is_whole,
    )


class _Clock:
    """Ends a walk that takes too long."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._end = time.monotonic() + _MOST_SECONDS

    def check(self) -> None:
        """Raise _OutOfTimeError if the time is over."""
        if time.monotonic() > self._end or self._is_over():
            raise _OutOfTimeError


def _entries(folder: str, clock: _Clock) -> Iterable[tuple[os.DirEntry[str], os.stat_result]]:
    """Return what is in a folder, with its status; nothing for a folder that rooda can't read."""
    found: list[tuple[os.DirEntry[str], os.stat_result]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found.append((entry, entry.stat(follow_symlinks=False)))
                if len(found) % _LOOK_EVERY == 0:
                    clock.check()
    except OSError:
        pass
    clock.check()
    return found


def _walk_tree(places: Places, found: _Facts, clock: _Clock) -> None:
    # A folder, and the kind of the guarded files below it (None: they are not guarded).
    waiting: list[tuple[str, Finding | None]] = [(places.top, None)]
    own = {places.skipped, places.git_folder, places.shared}
    names = {".git", ".ralph", *CLI_SETTINGS, *CONFIG_NAMES, *map(os.path.basename, places.hooks)}
    while waiting:
        folder, inside = waiting.pop()
        for entry, status in _entries(folder, clock):
            path, kind = entry.path, inside
            if (inside is not None or entry.name in names) and path not in own:
                kind = _note_name(entry, status, inside, places, found)
            if stat.S_ISDIR(status.st_mode):
                if path not in own:
                    waiting.append((path, kind))
            elif status.st_nlink > 1 or status.st_mode & _SET_ID:
                found.note_file(path, status)


def _note_name(
    entry: os.DirEntry[str],
    status: os.stat_result,
    inside: Finding | None,
    places: Places,
    found: _Facts,
) -> Finding | None:
    """Note a file or folder whose name matters; return the kind of the files below it."""
    path, name, folder = entry.path, entry.name, os.path.dirname(entry.path)  # noqa: PTH120
    if name == ".git" and (folder != places.top or not places.git_folder):
        found.repositories[folder] = _repository_mark(path, status)
    kind = inside or _kind(path, name, places)
    if name == ".ralph" and stat.S_ISLNK(status.st_mode):
        kind = Finding.CONFIG  # its config would be that of another folder
    if kind is Finding.CONFIG and stat.S_ISDIR(status.st_mode):
        return None  # no program reads a folder as a config file
    if kind is not None:
        found.guarded[path] = (kind, _mark(path, status))
    return kind


def _kind(path: str, name: str, places: Places) -> Finding | None:
    """Return what a file or folder is for a program outside; None if it is nothing special."""
    if name in CLI_SETTINGS:
        return Finding.CLI_SETTINGS
    if name in CONFIG_NAMES and path.endswith(CONFIG_PATHS):
        return Finding.CONFIG
    return Finding.HOOK if path in places.hooks else None


def _walk_git(folder: str, found: _Facts, clock: _Clock) -> None:
    """Note links, unusual rights, unfinished rebases, and the repositories of submodules.

    The folders in `worktrees` belong to other work trees, and the user may work there.
    """
    waiting = [folder]
    modules, others = f"{folder}/modules/", f"{folder}/worktrees"
    while waiting:
        place = waiting.pop()
        for entry, status in _entries(place, clock):
            path, name = entry.path, entry.name
            if stat.S_ISLNK(status.st_mode):
                found.git_links[path] = _target(path)
            elif stat.S_ISDIR(status.st_mode):
                waiting += [] if place == others else [path]
                if name in _REBASES and _has_exec(f"{path}/{_REBASES[name]}"):
                    found.rebases.add(path)
            elif stat.S_ISREG(status.st_mode):
                found.note_file(path, status)
                if name == "HEAD" and path.startswith(modules) and "/logs/" not in path:
                    found.modules.add(place)


def _has_exec(path: str) -> bool:
    """Return whether a list of a rebase has `exec` lines; true for one that rooda can't read."""
    try:
        todo = read_plain_file(Path(path), _LARGEST)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return len(todo) == _LARGEST or has_exec_line(todo)


def _note_git_settings(folder: str, found: _Facts) -> None:
    for repository in (folder, *(one for one in found.modules if one.startswith(f"{folder}/"))):
        paths = [f"{repository}/{name}" for name in _SETTINGS]
        kinds = dict.fromkeys(paths, Finding.GIT_SETTINGS)
        hooks = f"{repository}/hooks"
        with contextlib.suppress(OSError):
            kinds |= {f"{hooks}/{name}": Finding.HOOK for name in os.listdir(hooks)}  # noqa: PTH208
        for path, kind in kinds.items():
            try:
                found.guarded[path] = (kind, _mark(path, os.lstat(path)))
            except OSError:
                continue


def _repository_mark(path: str, status: os.stat_result) -> str:
    """Return a mark of what decides which programs git runs in a nested repository."""
    if not stat.S_ISDIR(status.st_mode):
        return f"file {_mark(path, status)}"  # it points to a repository elsewhere
    marks = []
    for name in _SETTINGS:
        try:
            marks.append(_mark(f"{path}/{name}", os.lstat(f"{path}/{name}")))
        except OSError:
            marks.append("-")
    return " ".join(["folder", *marks])


def _mark(path: str, status: os.stat_result) -> str:
    """Return a text that changes with the content of a file; empty for a folder."""
    if stat.S_ISDIR(status.st_mode):
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"link {_target(path)}"
    kind = "program" if status.st_mode & stat.S_IXUSR else "file"
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return f"{kind} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, which takes megabytes

    try:
        content = read_plain_file(Path(path), _LARGEST + 1)
    except OSError:
        return f"{kind} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return f"{kind} {hashlib.blake2b(content, digest_size=16).hexdigest()}"


def _target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
