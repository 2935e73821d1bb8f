"""The repository of a slot: a clone of its own, brought back to a known state after every agent.

An agent can write every file in it. Everything that counts was published, so rooda clones again as
soon as git reports an error.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.fleet.place import absolute_address, local_folder, without_credentials, without_user
from rooda.fleet.remote.server import NAME, Unreachable, in_environment
from rooda.world.git.git import INHERITED, Git, GitError
from rooda.world.git.git_files import links_in
from rooda.world.tools import Tools

PUSH_NOWHERE = "rooda-publishes-the-work-of-this-slot-itself"  # `git push` shows it
_LONGEST = 600.0  # seconds for one command that may need the network
_PLAIN = {
    "commit.gpgSign": "false",
    "rebase.updateRefs": "false",
    "rebase.autoSquash": "false",
    # Git must not enter the repositories within the work tree: an agent may have made them.
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "dirty",
}
# Settings of the user's repository that decide what a commit contains, or its author.
_COPIED = (
    r"^(user|author|committer|gpg|filter|lfs|i18n|merge|diff)\."
    r"|^core\.(autocrlf|eol|safecrlf|ignorecase|precomposeunicode|symlinks|filemode|longpaths)$"
    r"|^(commit|tag)\.gpgsign$"
)
_LEFTOVERS = (
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"),
    *("AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG", "BISECT_START"),
    *("hooks", "commondir", "config.worktree", "worktrees", "gitdir"),
    *("info/grafts", "info/sparse-checkout"),
)
_SHARED_INFO = ("info/exclude", "info/attributes")  # from the user's repository
_ALTERNATES = "objects/info/alternates"


class KnownFiles(Struct, frozen=True):
    """Files below `.git` as rooda wants them; None for one that must not be there."""

    files: Mapping[str, bytes | None]


class SlotClone:
    """The clone in the folder `work`. `git` works in it offline, `online` with the network."""

    def __init__(self, url: str, work: Path, tools: Tools, checkout: Path | None = None) -> None:
        """`checkout` is the user's work tree on this machine, if it is not the remote itself."""
        self._url = absolute_address(url)
        self._of_user = checkout or local_folder(self._url)
        self.work = work
        self.git_dir = work / ".git"
        self._tools = tools
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(work)}
        self._place = place
        self.git = Git(work, tools, place, _PLAIN)
        self.online = Git(work, tools, place, _PLAIN, online=_LONGEST)
        self._known: KnownFiles | None = None

    def with_index(self, index: Path) -> Git:
        """Return the git that uses another index."""
        return Git(self.work, self._tools, {**self._place, "GIT_INDEX_FILE": str(index)})

    @property
    def is_plain(self) -> bool:
        """Whether git's own folder is one, and no link in it leads to another place."""
        if self.git_dir.is_symlink() or not self.git_dir.is_dir() or self.work.is_symlink():
            return False
        return not links_in([self.git_dir], index=True)

    @property
    def is_there(self) -> bool:
        """Whether there is a clone that git can work with."""
        try:
            # Without its settings beside it, it was never finished.
            return self._kept("config").is_file() and self.is_plain and self._is_whole()
        except GitError:
            return False

    def is_usable(self, commit: str) -> bool:
        """Return whether there is a clone, and not another repository without this commit."""
        try:
            return self.is_there and self.git.ask("cat-file", "-e", commit) is not None
        except GitError:
            return False

    def _is_whole(self) -> bool:
        self.git("rev-list", "--max-count=1", "--all")  # fails for a ref to nothing
        return self.git.line("rev-parse", "--is-inside-work-tree") == "true"

    def make(self) -> None:
        """Delete the clone, and clone again. Raises Unreachable."""
        remove_tree(self.work)
        remove_tree(self._kept("config"))
        folder = self.work.parent
        clone = Git(
            folder, self._tools, self._address(), {"maintenance.auto": "false"}, online=_LONGEST
        )
        words = ("clone", "--quiet", "--no-hardlinks", "--no-checkout", "--template=")
        settings = ("--config", f"remote.origin.pushurl={PUSH_NOWHERE}")
        local = local_folder(self._url)
        source = f"{NAME}:" if local is None else str(local)
        try:
            clone(*words, *settings, "--", source, str(self.work), umask=INHERITED)
            self._keep(self.git_dir / _ALTERNATES, "alternates")
            self._keep(self.git_dir / "config", "config")  # the last one: now the clone is whole
        except (GitError, OSError) as error:
            remove_tree(self.work)
            reason = without_credentials(str(error))
            raise Unreachable(f"rooda could not clone the repository: {reason}") from None
        self._known = None

    def _address(self) -> dict[str, str]:
        """Return the variables with which git takes a short name for the address."""
        return in_environment(self._tools.environ, {f"url.{self._url}.insteadOf": f"{NAME}:"})

    def _keep(self, source: Path, name: str) -> None:
        """Keep a file of the new clone beside the work tree, where no agent works."""
        kept = self._kept(name)
        remove_tree(kept)
        if source.exists():
            kept.with_suffix(".new").write_bytes(source.read_bytes())
            kept.with_suffix(".new").rename(kept)

    def _kept(self, name: str) -> Path:
        return self.work.parent / f"clone-{name}"

    def repair(self) -> None:
        """Bring git's own folder back to what rooda knows; make the clone if need be.

        Raises Unreachable.
        """
        _allow(self.work, stat.S_IRWXU)
        if not self.work.is_symlink():  # else it is the repository of somebody else
            _open_folders(self.git_dir)
        if not self.is_there:
            self.make()
        self.tidy()

    def tidy(self) -> None:
        """Undo what an agent changed in git's settings, and every unfinished operation."""
        self.forget_changes()
        for name in _LEFTOVERS:
            remove_tree(self.git_dir / name)

    def forget_changes(self) -> None:
        """Undo what an agent changed in git's settings, and remove its locks and hooks."""
        _open_folders(self.git_dir)
        for lock in _locks(self.git_dir):
            remove_tree(lock)
        remove_tree(self.git_dir / "hooks")
        for name, content in self.known.files.items():
            path = self.git_dir / name
            if _content(path) == content:
                continue
            remove_tree(path)
            if content is not None:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)

    @property
    def known(self) -> KnownFiles:
        """The files below `.git` as they have to be."""
        if self._known is None:
            files: dict[str, bytes | None] = {
                "config": self._config(self._kept("config")),
                _ALTERNATES: _content(self._kept("alternates")),
                "config.worktree": None,
            }
            common = self._common_folder_of_user()
            for name in _SHARED_INFO:
                files[name] = None if common is None else _content(common / name)
            self._known = KnownFiles(files)
        return self._known

    def _config(self, kept: Path) -> bytes:
        """Return the settings of the new clone, and those of the user's repository."""
        mixed = kept.with_suffix(".new")
        shutil.copyfile(kept, mixed)
        self.git("config", "--file", str(mixed), "remote.origin.url", without_user(self._url))
        for key, value in self._settings_of_user():
            self.git("config", "--file", str(mixed), "--add", key, value)
        return mixed.read_bytes()

    def _settings_of_user(self) -> Iterator[tuple[str, str]]:
        """Yield settings that are in the user's repository alone, if it is on this machine.

        Raises Unreachable if the repository is away: without its settings commits would differ.
        """
        folder = self._of_user
        if folder is None:
            return
        ask = ("config", "--local", "--null", "--get-regexp", _COPIED)
        try:
            found = Git(folder, self._tools).ask(*ask) or ""
        except GitError as error:
            raise _unreadable(error) from None
        for entry in found.split("\0"):
            key, divided, value = entry.partition("\n")
            if key:
                yield key, value if divided else "true"

    def _common_folder_of_user(self) -> Path | None:
        """Return git's folder of the user's repository. Raises Unreachable if that is away."""
        folder = self._of_user
        if folder is None:
            return None
        try:
            return folder / Git(folder, self._tools).line("rev-parse", "--git-common-dir")
        except GitError as error:
            raise _unreadable(error) from None

    # -- the work tree ---------------------------------------------------------------------

    def reset_to(self, commit: str, branch: str, kept_refs: Iterable[str]) -> None:
        """Check out a commit as the only local branch, without any trace of earlier work.

        Ignored files stay. Raises GitError.
        """
        self.tidy()
        self.git("update-ref", "--no-deref", "HEAD", commit)
        self._delete_refs(kept_refs)
        if has_flags(self.git):
            (self.git_dir / "index").unlink(missing_ok=True)
        self.git("update-ref", f"refs/heads/{branch}", commit)
        self.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        try:
            self._clean()
        except GitError:
            make_writable(self.work)
            self._clean()
        make_tracked_writable(self.git, self.work)

    def _clean(self) -> None:
        self.online("reset", "--quiet", "--hard", umask=INHERITED)
        self.online("clean", "--quiet", "-ffd", umask=INHERITED)

    def _delete_refs(self, kept: Iterable[str]) -> None:
        """Delete all refs but those of the remote and the given ones."""
        found = self.git.line("for-each-ref", "--format=%(refname)").split("\n")
        others = ("refs/remotes/origin/", "refs/tags/", *kept)
        gone = [ref for ref in found if ref and not ref.startswith(others)]
        orders = "".join(f"option no-deref\ndelete {ref}\n" for ref in gone)
        self.git("update-ref", "--stdin", given=os.fsencode(orders))

    def check(self, tip: str, wip: str | None) -> None:
        """Raise GitError if a part of the work is missing, for example deleted by an agent."""
        known = ("--not", "--remotes=origin")
        self.git("rev-list", "--objects", "--quiet", tip, *([wip] if wip else []), *known)

    def keep_house(self) -> None:
        """Let git pack its objects, if there are many."""
        settings = {"gc.auto": "6700", "gc.autoDetach": "false"}
        git = Git(self.work, self._tools, self._place, settings, online=_LONGEST)
        with contextlib.suppress(GitError):
            git("gc", "--auto", "--quiet")


def _unreadable(error: GitError) -> Unreachable:
    reason = without_credentials(str(error))
    return Unreachable(f"rooda could not read the settings of the repository: {reason}")


def has_flags(git: Git) -> bool:
    """Return whether the index tells git to look away from some files, or is broken."""
    try:
        lines = git.line("ls-files", "-v").split("\n")
    except GitError:
        return True
    return any(line[:1].islower() or line.startswith("S") for line in lines)


def _content(path: Path) -> bytes | None:
    try:
        is_plain = stat.S_ISREG(path.lstat().st_mode)
        return path.read_bytes() if is_plain else b"\0not a file"
    except OSError:
        return None


def _locks(git_dir: Path) -> Iterator[Path]:
    """Yield the lock files that a killed git left behind."""
    for folder, folders, names in os.walk(git_dir):
        if Path(folder) == git_dir:
            folders.remove("objects") if "objects" in folders else None
        yield from (Path(folder, name) for name in names if name.endswith(".lock"))


def remove_tree(path: Path) -> None:
    """Remove a file or a folder, whatever its modes are. A link is removed, not followed."""
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
        return
    try:
        shutil.rmtree(path)
    except OSError:
        make_writable(path)
        shutil.rmtree(path, ignore_errors=True)


def make_real_folder(top: Path, name: str) -> None:
    """Make the folders above a file in a tree; a link in place of one is replaced, not followed."""
    parents = [parent for parent in Path(name).parents if str(parent) != "."]
    for folder in (top / parent for parent in reversed(parents)):
        if folder.is_symlink() or not folder.is_dir():
            remove_tree(folder)
            folder.mkdir()


def make_writable(top: Path) -> None:
    """Give the owner back every right in the folders of a tree, and the right to read files."""
    for path in _open_folders(top):
        _allow(path, stat.S_IRUSR)


def _open_folders(top: Path) -> list[Path]:
    """Give the owner back every right in the folders of a tree; return its files."""
    found: list[Path] = []
    if top.is_symlink():
        return found
    _allow(top, stat.S_IRWXU)
    for folder, folders, names in os.walk(top):
        for name in folders:
            _allow(Path(folder, name), stat.S_IRWXU)
        found += (Path(folder, name) for name in names)
    return found


def make_tracked_writable(git: Git, top: Path) -> None:
    """Give the owner back the right to write tracked files and their folders."""
    names = [name for name in os.fsdecode(git("ls-files", "-z")).split("\0") if name]
    folders = {parent for name in names for parent in Path(name).parents}
    for folder in folders:
        _allow(top / folder, stat.S_IRWXU)
    for name in names:
        _allow(top / name, stat.S_IRUSR | stat.S_IWUSR)


def _allow(path: Path, rights: int) -> None:
    with contextlib.suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & rights != rights:
            path.chmod(stat.S_IMODE(mode) | rights)


# The submodules of a slot: fetched with the user's login, so only from addresses of the user.


_LIST = ".gitmodules"
_WANTED = r"^submodule\..*\.(path|url)$"
_LINK = "160000"

# The name of a submodule and its address, by its path. None: git could read it in several ways.
Addresses = Mapping[str, tuple[str, str] | None]


def update_submodules(clone: SlotClone, start: str, base: str) -> list[str]:
    """Check out the submodules of a commit; return the paths of those that stay empty folders.

    An agent may have written `.gitmodules`. A submodule is fetched if the user's own commit `base`
    names the same address for the same path. Submodules within one come along if the user chose
    its commit as well. An agent may also have changed the repositories of the submodules, so rooda
    makes them again. Raises GitError.
    """
    links = _links(clone.git, start)
    for path in links:
        make_real_folder(clone.work, path)
        remove_tree(clone.work / path)
        (clone.work / path).mkdir()
    remove_tree(clone.git_dir / "modules")
    if not links:
        return []
    here, known = _addresses_here(clone), _addresses_of(clone.git, base)
    chosen = _links(clone.git, base)
    trusted = [path for path in links if here.get(path) and here.get(path) == known.get(path)]
    whole = [path for path in trusted if links[path] == chosen.get(path)]
    moved = [path for path in trusted if path not in whole]
    update = ("submodule", "--quiet", "update", "--init", "--force", "--checkout")
    if whole:
        clone.online(*update, "--recursive", "--", *whole, umask=INHERITED)
    if moved:
        clone.online(*update, "--", *moved, umask=INHERITED)
    within = (f"{path}/..." for path in moved if os.path.lexists(clone.work / path / _LIST))
    return [*(path for path in links if path not in trusted), *within]


def _links(git: Git, commit: str) -> dict[str, str]:
    """Return the commits of the submodules in a commit, by their paths."""
    entries = os.fsdecode(git("ls-tree", "-r", "-z", "--full-tree", commit)).split("\0")
    split = (entry.partition("\t") for entry in entries if entry.startswith(f"{_LINK} "))
    return {path: facts.split(" ")[2] for facts, _, path in split}


def _addresses_here(clone: SlotClone) -> Addresses:
    """Return what git will read in the work tree."""
    path = clone.work / _LIST
    return {} if path.is_symlink() or not path.is_file() else _read(clone.git, "--file", str(path))


def _addresses_of(git: Git, commit: str) -> Addresses:
    blob = f"{commit}:{_LIST}"
    is_there = git.ask("rev-parse", "--quiet", "--verify", blob) is not None
    return _read(git, "--blob", blob) if is_there else {}


def _read(git: Git, *source: str) -> Addresses:
    found = git.ask("config", "--null", *source, "--get-regexp", _WANTED) or ""
    values: dict[str, dict[str, list[str]]] = {}
    for name, key, value in _entries(found):
        values.setdefault(name, {"path": [], "url": []})[key].append(value)
    addresses: dict[str, tuple[str, str] | None] = {}
    for name, keys in values.items():
        is_plain = len(keys["path"]) == 1 and len(keys["url"]) == 1
        for path in keys["path"]:
            is_first = path not in addresses
            addresses[path] = (name, keys["url"][0]) if is_plain and is_first else None
    return addresses


def _entries(found: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of the submodule, the key and the value of each setting."""
    for entry in found.split("\0"):
        setting, divided, value = entry.partition("\n")
        name, _, key = setting.removeprefix("submodule.").rpartition(".")
        if divided:
            yield name, key, value
