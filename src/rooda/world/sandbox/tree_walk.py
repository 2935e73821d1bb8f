"""One walk over a work tree and its git folders, for what could act outside of the sandbox.

It goes through the door (`world/files/beneath.py`), reads only the few files that matter, and ends
in a bounded time.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct, field

from rooda.world.files.beneath import Beneath, Entry, Listing
from rooda.world.sandbox.tree_findings import (
    CLI_SETTINGS,
    CONFIG_FOLDERS,
    CONFIG_NAMES,
    CONFIG_PATHS,
    Finding,
    TreeFacts,
    has_exec_line,
)

_MOST_SECONDS = 60.0
_LARGEST = 1024 * 1024  # bytes of a file that rooda compares by its content
_MOST_NAMED = 5
_SET_ID = stat.S_ISUID | stat.S_ISGID
_REBASES = {
    "rebase-merge": "git-rebase-todo",
    "rebase-apply": "git-rebase-todo",
    "sequencer": "todo",
}
# The files of a repository that make git run a program or use other objects.
_RULES = (".gitignore", ".gitattributes", ".gitmodules")  # git reads them in every folder
_REMOTES = ("remotes", "branches")  # folders with files that name addresses, as git once had them
_BARE = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})  # what makes git see a repository
_SETTINGS = ("config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates")


class Places(Struct, frozen=True):
    """Where rooda looks. The paths are absolute, without links."""

    top: str
    git_folder: str = ""
    shared: str = ""  # the git folder that it shares with other work trees, if it is another
    hooks: tuple[str, ...] = ()  # folders of the work tree with hooks (core.hooksPath)
    has_private_git: bool = False  # no program inside reaches `git_folder`
    writes_git_settings: bool = False  # the sandbox does not protect them: compare them


class _Facts(Struct):
    """What the walk has found so far."""

    git_links: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    rebases: set[str] = field(default_factory=set)
    repositories: dict[str, str] = field(default_factory=dict)
    set_id: set[str] = field(default_factory=set)
    guarded: dict[str, tuple[Finding, str]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    closed: dict[str, int] = field(default_factory=dict)
    hard_links: list[str] = field(default_factory=list)
    hard_link_count: int = 0

    def note_folder(self, path: str, listing: Listing) -> None:
        """Note a folder that was closed to its owner, or is closed to rooda."""
        if listing.closed is not None:
            self.closed[path] = listing.closed
        if listing.error is not None:
            self.unreadable.add(path)

    def note_rights(self, path: str, status: os.stat_result) -> None:
        """Note a file with which another user gets rights of this one."""
        if status.st_mode & _SET_ID:
            self.set_id.add(path)

    def note_file(self, path: str, status: os.stat_result) -> None:
        """Note a file with unusual rights, or a regular one with more names."""
        self.note_rights(path, status)
        if status.st_nlink > 1:
            self.hard_link_count += 1
            if len(self.hard_links) < _MOST_NAMED:
                self.hard_links.append(path)


class Seen(Struct, frozen=True):
    """What a walk has found. `closed`: folders that rooda opened for itself, and their modes."""

    facts: TreeFacts
    closed: dict[str, int]


class _OutOfTimeError(Exception):
    """The walk took too long."""


def look(
    places: Places,
    is_over: Callable[[], bool] = lambda: False,
    worktrees: Collection[str] | None = None,
    writable: Iterable[str] = (),
) -> Seen:
    """Return what matters in the tree. `is_over` says that the walk has to end now.

    `worktrees` are the folders of other work trees that git had before: those of the user.
    `writable` are other folders and files that a program inside can change.
    """
    found, clock = _Facts(), _Clock(is_over)
    is_whole = True
    try:
        folders = () if places.has_private_git else (places.git_folder, places.shared)
        for folder in filter(None, folders):
            _walk_git(folder, found, clock, worktrees)
            if places.writes_git_settings:
                _note_git_settings(folder, found)
        _walk_tree(places, found, clock)
        for place in writable:
            _walk_writable(place, found, clock)
    except _OutOfTimeError:
        is_whole = False
    facts = TreeFacts(
        git_links=found.git_links,
        modules=frozenset(found.modules),
        rebases=frozenset(found.rebases),
        shared=places.shared,
        repositories=found.repositories,
        set_id=frozenset(found.set_id),
        guarded=found.guarded,
        unreadable=frozenset(found.unreadable),
        hard_links=tuple(found.hard_links),
        hard_link_count=found.hard_link_count,
        is_whole=is_whole,
    )
    return Seen(facts, found.closed)


class _Clock:
    """Ends a walk that takes too long."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._end = time.monotonic() + _MOST_SECONDS

    def check(self) -> None:
        """Raise _OutOfTimeError if the time is over."""
        if time.monotonic() > self._end or self._is_over():
            raise _OutOfTimeError


def _walk(top: str, found: _Facts, clock: _Clock) -> Iterator[tuple[str, Listing]]:
    """Yield each folder with its path."""
    with contextlib.suppress(FileNotFoundError):  # an agent has deleted it
        for listing in Beneath(top).walk(clock.check):
            path = f"{top}/{listing.path}" if listing.path else top
            found.note_folder(path, listing)
            yield path, listing


def _walk_tree(places: Places, found: _Facts, clock: _Clock) -> None:
    own = {places.git_folder, places.shared}
    names = {
        ".git",
        *_RULES,
        *CLI_SETTINGS,
        *CONFIG_NAMES,
        *CONFIG_FOLDERS,
        *map(os.path.basename, places.hooks),
    }
    # Folders in which all files are guarded, and what the files are.
    guarded: dict[str, Finding] = {}
    for folder, listing in _walk(places.top, found, clock):
        inside = guarded.pop(folder, None)
        if _is_bare(folder, listing):
            found.repositories[folder] = _settings_mark(Beneath(listing.fd), "")
        for entry in listing.entries:
            name, status = entry
            path = f"{folder}/{name}"
            if path in own:
                listing.enter = [one for one in listing.enter if one != name]
                continue
            kind = inside
            if inside is not None or name in names:
                kind = _note_name(folder, entry, listing, inside, places, found)
            if stat.S_ISDIR(status.st_mode):
                if kind is not None:
                    guarded[path] = kind
            elif status.st_nlink > 1 or status.st_mode & _SET_ID:
                found.note_file(path, status)


def _walk_writable(place: str, found: _Facts, clock: _Clock) -> None:
    """Note files with unusual rights, of this user, in a folder that others may use as well."""

    def note(path: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            found.note_rights(path, status)

    with contextlib.suppress(OSError):
        status = os.lstat(place)
        if not stat.S_ISDIR(status.st_mode):
            note(place, status)
            return
        for listing in Beneath(place).walk(clock.check):
            if listing.closed is not None:
                found.closed[f"{place}/{listing.path}"] = listing.closed
            for name, status in listing.entries:
                note(f"{place}/{listing.name(name)}", status)


def _note_name(
    folder: str,
    entry: Entry,
    listing: Listing,
    inside: Finding | None,
    places: Places,
    found: _Facts,
) -> Finding | None:
    """Note a file or folder whose name matters; return the kind of the files below it."""
    name, status = entry
    path, here = f"{folder}/{name}", Beneath(listing.fd)
    if name == ".git" and (folder != places.top or not places.git_folder):
        found.repositories[folder] = _repository_mark(here, entry)
    if name in _RULES and stat.S_ISFIFO(status.st_mode):
        found.git_links[path] = "pipe"
    kind = inside or _kind(path, name, places)
    if name in CONFIG_FOLDERS and stat.S_ISLNK(status.st_mode):
        kind = Finding.CONFIG  # its config would be that of another folder
    if kind is Finding.CONFIG and stat.S_ISDIR(status.st_mode):
        return None  # no program reads a folder as a config file
    if kind is not None:
        found.guarded[path] = (kind, _mark(here, name, status))
    return kind


def _kind(path: str, name: str, places: Places) -> Finding | None:
    """Return what a file or folder is for a program outside; None if it is nothing special."""
    if name in CLI_SETTINGS:
        return Finding.CLI_SETTINGS
    if name in CONFIG_NAMES and path.endswith(CONFIG_PATHS):
        return Finding.CONFIG
    return Finding.HOOK if path in places.hooks else None


def _is_bare(folder: str, listing: Listing) -> bool:
    """Return whether git takes a folder itself for a repository."""
    if folder.endswith("/.git"):
        return False  # it is noted with the folder that it is in
    names = {entry.name for entry in listing.entries}
    return any(signs <= names for signs in _BARE)


def _walk_git(folder: str, found: _Facts, clock: _Clock, worktrees: Collection[str] | None) -> None:
    """Note links, pipes, unusual rights, unfinished rebases, and the repositories of submodules.

    The folders in `worktrees` belong to other work trees. The user may work in those that were
    there before.
    """
    modules, others = f"{folder}/modules/", f"{folder}/worktrees"
    for place, listing in _walk(folder, found, clock):
        here = Beneath(listing.fd)
        if place == others:
            listing.enter = [one for one in listing.enter if _is_new(f"{place}/{one}", worktrees)]
        is_of_remotes = place in {f"{folder}/{name}" for name in _REMOTES}
        for name, status in listing.entries:
            path = f"{place}/{name}"
            if stat.S_ISREG(status.st_mode):
                found.note_file(path, status)
                if name == "HEAD" and path.startswith(modules) and "/logs/" not in path:
                    found.modules.add(place)
                if is_of_remotes:
                    found.guarded[path] = (Finding.GIT_SETTINGS, _mark(here, name, status))
            elif stat.S_ISLNK(status.st_mode):
                found.git_links[path] = _mark(here, name, status)
            elif stat.S_ISFIFO(status.st_mode):
                found.git_links[path] = "pipe"
        todo = _REBASES.get(place.rpartition("/")[2])
        if todo is not None and _has_exec(here, todo):
            found.rebases.add(place)


def _is_new(worktree: str, known: Collection[str] | None) -> bool:
    return known is not None and worktree not in known


def worktrees_of(places: Places) -> frozenset[str]:
    """Return the folders of other work trees in git's folders."""
    found: set[str] = set()
    for folder in filter(None, (places.git_folder, places.shared)):
        with contextlib.suppress(OSError):
            names = Beneath(folder).list("worktrees")
            found.update(f"{folder}/worktrees/{one.name}" for one in names)
    return frozenset(found)


def _has_exec(folder: Beneath, name: str) -> bool:
    """Return whether a list of a rebase has `exec` lines; true for one that rooda can't read."""
    try:
        todo = folder.read(name, _LARGEST)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return len(todo) == _LARGEST or has_exec_line(todo)


def _note_git_settings(folder: str, found: _Facts) -> None:
    door = Beneath(folder)
    own = (one.removeprefix(f"{folder}/") for one in found.modules if one.startswith(f"{folder}/"))
    for repository in ("", *own):
        kinds = {_below(repository, name): Finding.GIT_SETTINGS for name in _SETTINGS}
        hooks = _below(repository, "hooks")
        with contextlib.suppress(OSError):
            kinds |= {f"{hooks}/{one.name}": Finding.HOOK for one in door.list(hooks)}
        for name, kind in kinds.items():
            with contextlib.suppress(OSError):
                found.guarded[f"{folder}/{name}"] = (kind, _mark(door, name, door.status(name)))


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _repository_mark(folder: Beneath, git: Entry) -> str:
    """Return a mark of what decides which programs git runs in a nested repository."""
    if not stat.S_ISDIR(git.status.st_mode):
        return f"file {_mark(folder, *git)}"  # it points to a repository elsewhere
    return _settings_mark(folder, git.name)


def _settings_mark(folder: Beneath, repository: str) -> str:
    marks = []
    for name in (_below(repository, one) for one in _SETTINGS):
        try:
            marks.append(_mark(folder, name, folder.status(name)))
        except OSError:
            marks.append("-")
    return " ".join(["folder", *marks])


def _mark(folder: Beneath, name: str, status: os.stat_result) -> str:
    """Return a text that changes with the content of a file; empty for a folder."""
    if stat.S_ISDIR(status.st_mode):
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"link {_target(folder, name)}"
    kind = "program" if status.st_mode & stat.S_IXUSR else "file"
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        return f"{kind} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, which takes megabytes

    try:
        content = folder.read(name, _LARGEST + 1)
    except OSError:
        return f"{kind} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return f"{kind} {hashlib.blake2b(content, digest_size=16).hexdigest()}"


def _target(folder: Beneath, name: str) -> str:
    try:
        return os.fsdecode(folder.link(name) or b"")
    except OSError:
        return ""
