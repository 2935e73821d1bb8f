"""One scan of a work tree: rooda walks by descriptors, and reads what looks different than before.

A name that rooda has not seen before waits until the walk is over: then git tells about all of them
at once which ones a rule ignores, and rooda visits their folders again.
"""

import errno
import os
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from rooda.world.files.beneath import Beneath, Entry, Listing
from rooda.world.files.plain_files import NotPlainFileError, open_plain_file
from rooda.world.git.git_files import LARGEST_FILE, is_path_in_tree
from rooda.world.git.snapshots.marks import (
    Folder,
    Marks,
    RuleFile,
    Seen,
    join,
    mark,
    split,
    unsettled,
)
from rooda.world.git.snapshots.packs import PackWriter, ShorterFileError, object_id
from rooda.world.git.snapshots.repository import Repository
from rooda.world.git.snapshots.rules import MOST_RULES, RULES, IgnoreRules
from rooda.world.git.snapshots.tree_changes import Changes
from rooda.world.git.snapshots.trees import (
    changes_between,
    depth_of,
    has_left_out,
    left_out_of,
    parent_of,
    write_trees,
)
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import OLD_FOLDER

MOST_READ = 4_000_000_000  # bytes in one scan of a folder without a repository
_AT_ONCE = 8 * 1024 * 1024  # bytes of a file that rooda reads in one piece
_AHEAD = 10_000  # entries of folders that a rule may ignore, in one walk
_MOST_WALKS = 4
_SECOND = 10**9
# Two changes within one tick of a file system's clock can't be told apart: most clocks tick every
# few milliseconds, others every second or two.
_TICK, _SLOW_TICK = _SECOND // 10, 2 * _SECOND
_TIMES = struct.Struct("<qq")
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


class Place(Struct, frozen=True):
    """What rooda scans: a work tree, its repository (if it has one), and what to leave out."""

    top: Path
    state: StateFolder
    repository: Repository | None
    hides_untracked: bool
    largest: int  # bytes of an untracked file to keep
    algorithm: str  # of object ids
    tick: Callable[[], object] = int  # is called often: what it raises ends a scan


class Scanned(Struct, frozen=True):
    """What a scan has found; `is_same`: nothing differs from the marks, not even permissions.

    Regular files that are left out of the tree have a mark.
    """

    marks: Marks
    tree: bytes
    changes: Changes
    left_out: Mapping[str, bytes | None]
    is_same: bool


class _Found(Struct):
    """What is in one folder."""

    names: list[str] = field(default_factory=list)
    marks: list[bytes] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def only(self, counts: Callable[[str], bool]) -> "_Found":
        """Return the part that counts; to `counts`, the name of a folder ends in a slash."""
        pairs = [one for one in zip(self.names, self.marks, strict=True) if counts(one[0])]
        return _Found(
            [name for name, _ in pairs],
            [mark for _, mark in pairs],
            [name for name in self.folders if counts(f"{name}/")],
        )


class _Asked(Struct):
    """The names of one walk about which git has to tell."""

    names: dict[str, list[str]] = field(default_factory=dict)  # by folder
    ahead: int = 0


class Scan:
    """One scan, compared with the marks of the one before."""

    def __init__(
        self,
        place: Place,
        rules: IgnoreRules,
        before: Marks,
        pack: PackWriter,
        also: Collection[str] = (),
        compared: Mapping[str, Folder] | None = None,
    ) -> None:
        """`also` are names that count, whatever the rules say.

        `compared` are the folders to compare with, if those of the marks are lost.
        """
        self._compared = before.folders if compared is None else compared
        self._place = place
        self._rules = rules
        self._before = before
        self._pack = pack
        self._tree = Beneath(place.top)
        self._width = len(object_id(place.algorithm, "blob", b""))
        self._now = time.time_ns()
        self._folders: dict[str, Folder] = {}  # complete ones
        self._listed: dict[str, _Found] = {}
        self._found = _Found()
        self._visited: set[str] = set()
        self._answers: dict[str, dict[str, bool]] = {}  # whether a rule ignores a name
        self._asked = _Asked()
        self._has_asked = False
        self._stale: set[str] = set()  # rules have changed in or above these folders
        # The same for the names in these folders alone.
        self._doubtful = {parent_of(name) for name in before.also.symmetric_difference(also)}
        self._partial: set[str] = set()  # ignored folders with tracked files
        self._unlisted: dict[str, bytes | None] = {}  # what rooda can't put into a tree
        self._also = frozenset(also)
        self._set_forced(before.forced | self._also)
        self._left_to_read = MOST_READ
        self._index = _index_mark(place.repository)
        self._state = _inode(place.state)

    def run(self) -> Scanned:
        """Scan the work tree. Raises GitError and OSError."""
        digest = self._rules.read_beside()
        self._rules.files = dict(self._before.rule_files)
        if digest != self._before.rules:
            self._stale.add("")
        if self._place.hides_untracked:
            self._partial.add("")
            if self._index != self._before.index:
                self._learn_forced()
        for _ in range(_MOST_WALKS):
            self._walk_all()
            is_new = self._index != self._before.index or self._has_asked
            if self._place.hides_untracked or not is_new or not self._learn_forced():
                break
            self._visited.clear()
        self._rules.files = {
            path: rule for path, rule in self._rules.files.items() if path in self._folders
        }
        return self._result(digest)

    # -- the walk --------------------------------------------------------------------------------

    def _walk_all(self) -> None:
        self._folders, known = {}, self._folders
        self._known = known
        starts = [""]
        while starts:
            self._asked = _Asked()
            for start in starts:
                self._walk(start)
            starts = self._ask()

    def _walk(self, start: str) -> None:
        try:
            for listing in self._tree.walk(self._place.tick, start, self._read_folder):
                path = f"{start}/{listing.path}".strip("/")
                if listing.error is not None:
                    self._unlisted[f"{path}/"] = None
                    continue
                listing.enter[:] = self._visit(path, listing)
        except OSError as error:
            if not start or error.errno not in _GONE:
                raise

    def _read_folder(self, fd: int, tick: Callable[[], object]) -> list[Entry]:
        """Note what is in a folder; return the folders in it."""
        names: list[str] = []
        marks: list[bytes] = []
        folders: list[Entry] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name
                if name == ".git":
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kind = stat.S_IFMT(status.st_mode)
                if kind in (stat.S_IFREG, stat.S_IFLNK):
                    names.append(name)
                    marks.append(mark(status))
                elif kind == stat.S_IFDIR and not self._is_own(name, status):
                    folders.append(Entry(name, status))
                if len(names) % 1000 == 0:
                    tick()
        self._found = _Found(names, marks, [one.name for one in folders])
        return folders

    def _is_own(self, name: str, status: os.stat_result) -> bool:
        return name == OLD_FOLDER or (status.st_dev, status.st_ino) == self._state

    def _visit(self, path: str, listing: Listing) -> list[str]:
        """Read a folder, unless a name in it is new. Return the folders below to walk into."""
        found = self._found
        self._visited.add(path)
        self._leave_out_git(path, found)
        self._check_rules(path, listing.fd, found)
        known = self._known.get(path) or self._before.folders.get(path)
        if known is not None and self._is_certain(path):
            same = self._if_same(path, known, found)
            if same is not None:
                return self._entered(path, same)
        return self._visit_changed(path, listing, known, found)

    def _leave_out_git(self, path: str, found: _Found) -> None:
        """Leave out folders with a name that git takes for its own, such as `.GIT`."""
        for name in [one for one in found.folders if _is_gits(one)]:
            found.folders.remove(name)
            self._unlisted[f"{path}/{name}/".lstrip("/")] = None

    def _check_rules(self, path: str, fd: int, found: _Found) -> None:
        """Note whether the rules of a folder have changed, or those above it."""
        if path and parent_of(path) in self._stale:
            self._stale.add(path)
        if path in self._partial:
            return
        rule, there = self._rules.files.get(path), None
        if RULES in found.names:
            there = found.marks[found.names.index(RULES)]
        if rule is not None and rule.mark == there:
            return
        content = None if there is None else _rules_of(fd)
        if content is None:
            self._rules.files.pop(path, None)
        else:
            self._rules.files[path] = RuleFile(self._settled(there or b""), content)
        if content != (rule.content if rule is not None else None):
            self._stale.add(path)
            self._forget_answers(path)

    def _forget_answers(self, path: str) -> None:
        """Forget what git told about names in a folder and below: the rules have just changed."""
        start = f"{path}/" if path else ""
        for one in [one for one in self._answers if one == path or one.startswith(start)]:
            del self._answers[one]

    def _is_certain(self, path: str) -> bool:
        return path not in self._stale and path not in self._doubtful

    def _if_same(self, path: str, known: Folder, found: _Found) -> list[str] | None:
        """Return the folders to walk into if all files are as they were; else None."""
        if path in self._partial:
            found = found.only(self._forced.get(path, set()).__contains__)
        elif known.ignored:
            ignored = frozenset(split(known.ignored))
            found = found.only(lambda name: name not in ignored)
        if join(found.folders) != known.folders or join(found.names) != known.names:
            return None
        if b"".join(found.marks) != known.marks:
            return None
        if has_left_out(known, self._width) and self._index != self._before.index:
            return None
        self._folders[path] = known
        return found.folders

    def _has_new_reason(self, seen: Seen) -> bool:
        """Return whether a file that was left out may count now, because the user tracks it."""
        return not seen.content and self._index != self._before.index

    def _entered(
        self, path: str, folders: Iterable[str], unknown: Collection[str] = ()
    ) -> list[str]:
        """Return the folders to walk into: those that count, and ignored ones with forced files."""
        start = f"{path}/" if path else ""
        found = [*folders]
        if path in self._ways:
            counted = {*found, *(name.removesuffix("/") for name in unknown)}
            ways = [name for name in self._found.folders if name in self._ways[path]]
            self._partial.difference_update(start + name for name in counted)
            ignored = [name for name in ways if name not in counted]
            self._partial.update(start + name for name in ignored)
            found += ignored
        return [name for name in found if start + name not in self._visited]

    def _visit_changed(
        self, path: str, listing: Listing, known: Folder | None, found: _Found
    ) -> list[str]:
        old = dict(known.files()) if known is not None else {}
        names = [*found.names, *(f"{name}/" for name in found.folders)]
        verdicts = self._verdicts(path, known, old, names)
        unknown = [name for name, is_ignored in verdicts.items() if is_ignored is None]
        folders = [name for name in found.folders if verdicts[f"{name}/"] is False]
        if unknown:
            self._asked.names[path] = unknown
            self._asked.ahead += len(unknown)
            if self._asked.ahead < _AHEAD:
                folders += [name for name in found.folders if verdicts[f"{name}/"] is None]
            return self._entered(path, folders, unknown)
        files: dict[str, Seen] = {}
        for name, one in zip(found.names, found.marks, strict=True):
            if verdicts[name]:
                continue
            seen = self._seen(path, listing.fd, name, one, old.get(name))
            if seen is not None:
                files[name] = seen
        is_partial = path in self._partial
        ignored = [] if is_partial else [name for name, no in verdicts.items() if no]
        self._folders[path] = Folder.of(files, join(folders), join(ignored), self._width)
        if known is not None:
            self._folders[path].tree = known.tree
        return self._entered(path, folders)

    def _verdicts(
        self, path: str, known: Folder | None, old: Mapping[str, Seen], names: Iterable[str]
    ) -> dict[str, bool | None]:
        """Return for each name whether a rule ignores it; None if git has to tell."""
        forced = self._forced.get(path, set())
        if path in self._partial:
            return {name: name not in forced for name in names}
        told: dict[str, bool] = {}
        if known is not None and self._is_certain(path):
            told = dict.fromkeys((*old, *(f"{name}/" for name in split(known.folders))), False)
            told |= dict.fromkeys(split(known.ignored), True)
        told |= self._answers.get(path, {}) | dict.fromkeys(forced, False)
        return {name: told.get(name) for name in names}

    def _ask(self) -> list[str]:
        """Let git tell about the new names; return the folders to visit again."""
        asked = self._asked.names
        if not asked:
            return []
        self._has_asked = True
        ignored = self._rules.ignored(asked)
        again: list[str] = []
        for path in sorted(asked, key=depth_of):
            parent, _, name = path.rpartition("/")
            if path and self._answers.get(parent, {}).get(f"{name}/", False):
                self._answers[path] = {f"{one}": True for one in asked[path]}
                self._visited.discard(path)
                continue
            some = ignored.get(path, set())
            answers = self._answers.setdefault(path, {})
            answers.update({one: one in some for one in asked[path]})
            again.append(path)
        return again

    # -- one file --------------------------------------------------------------------------------

    def _seen(self, path: str, fd: int, name: str, one: bytes, old: Seen | None) -> Seen | None:
        """Return what is known of a file, or read it; None if it is gone."""
        if old is not None and old.mark == one and not self._has_new_reason(old):
            return old
        full = f"{path}/{name}" if path else name
        seen = Seen(one, b"")
        if _is_refused(name, seen.mode):
            return seen
        try:
            if stat.S_ISLNK(seen.mode):
                target = os.readlink(os.fsencode(name), dir_fd=fd)
                return Seen(self._settled(one), self._pack.add("blob", target))
            return self._read(full, fd, name)
        except NotPlainFileError:
            return None
        except ShorterFileError:
            return Seen(unsettled(one), b"")
        except OSError as error:
            if error.errno in _GONE or error.errno == errno.EINVAL:
                return None
            if error.errno in (errno.EACCES, errno.EPERM):
                return seen
            raise

    def _read(self, full: str, fd: int, name: str) -> Seen:
        with os.fdopen(open_plain_file(name, dir_fd=fd), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            one, size = mark(status), status.st_size
            if not self._is_wanted(full, size):
                return Seen(one, b"")
            if size > _AT_ONCE:
                content = self._pack.add_file(file, size)
            else:
                content = self._pack.add("blob", file.read(size + 1) if size else file.read())
            is_still = mark(os.fstat(file.fileno())) == one
        self._left_to_read -= size
        return Seen(self._settled(one) if is_still else unsettled(one), content)

    def _is_wanted(self, full: str, size: int) -> bool:
        repository = self._place.repository
        if size > self._place.largest:
            is_tracked = repository is not None and bool(repository.tracked([full]))
            return is_tracked and size <= LARGEST_FILE
        return repository is not None or size <= self._left_to_read

    def _settled(self, one: bytes) -> bytes:
        """Return the mark, if each later change of the file will change it."""
        _, ctime = _TIMES.unpack_from(one, 12)
        tick = _TICK if ctime % _SECOND else _SLOW_TICK
        return one if ctime < self._now - tick else unsettled(one)

    # -- tracked files that a rule ignores -------------------------------------------------------

    def _set_forced(self, names: frozenset[str]) -> None:
        self._forced_names = names
        forced: dict[str, set[str]] = {}
        ways: dict[str, set[str]] = {}
        for name in names:
            folder, _, last = name.rpartition("/")
            forced.setdefault(folder, set()).add(last)
            while folder:
                parent, _, last = folder.rpartition("/")
                if last in ways.setdefault(parent, set()):
                    break
                ways[parent].add(last)
                folder = parent
        self._forced, self._ways = forced, ways

    def _learn_forced(self) -> bool:
        """Read the user's index; return whether other ignored files are tracked than before."""
        repository, before = self._place.repository, self._forced_names
        if repository is None:
            return False
        names = repository.names()
        if not names:  # perhaps an agent has damaged the index
            return False
        if self._place.hides_untracked:
            now = frozenset(filter(is_path_in_tree, names))
        else:
            now = frozenset(name for name in names if name in before or self._is_hidden(name))
        now |= self._also
        if now == before:
            return False
        self._set_forced(now)
        self._doubtful = {parent_of(name) for name in now ^ before}
        return True

    def _is_hidden(self, name: str) -> bool:
        """Return whether a rule ignores a name or a folder above it."""
        folder, _, last = name.rpartition("/")
        while folder and folder not in self._folders:
            folder, _, last = folder.rpartition("/")
            last += "/"
        found = self._folders.get(folder)
        if found is None or not found.ignored:
            return False
        return f"\0{found.ignored}".find(f"\0{last}\0") >= 0 and is_path_in_tree(name)

    # -- the result ------------------------------------------------------------------------------

    def _result(self, digest: bytes) -> Scanned:
        old, new = self._before.folders, self._folders
        changed = [path for path in new if new[path] is not old.get(path)]
        gone = [path for path in old if path not in new]
        left_out = self._unlisted | left_out_of(new, self._width)
        if changed or gone:
            write_trees(new, (*changed, *map(parent_of, gone)), self._pack, self._place.algorithm)
        marks = Marks(
            top=str(self._place.top),
            rules=digest,
            folders=new,
            rule_files=dict(self._rules.files),
            forced=self._forced_names - self._also,
            index=self._index,
            also=self._also,
        )
        is_same = not (changed or gone) and digest == self._before.rules
        changes = changes_between(self._compared, new) if self._compared else Changes()
        return Scanned(marks, new[""].tree, changes, left_out, is_same)


def _rules_of(fd: int) -> bytes | None:
    try:
        with os.fdopen(open_plain_file(RULES, dir_fd=fd), "rb") as file:
            return file.read(MOST_RULES)
    except OSError:
        return None


def _is_refused(name: str, mode: int) -> bool:
    """Return whether git refuses such a name in a tree."""
    return _is_gits(name) or (name.lower() == ".gitmodules" and stat.S_ISLNK(mode))


def _is_gits(name: str) -> bool:
    return name.lower() == ".git"


def _index_mark(repository: Repository | None) -> bytes:
    try:
        return b"" if repository is None else mark(repository.index.lstat())
    except OSError:
        return b""


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
