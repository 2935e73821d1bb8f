"""A copy of exactly the files that a commit would contain, in a private folder that is temporary.

The folder is outside of the work tree: package managers and test runners look for modules and
settings in the folders above them, and would find those of the work tree. Files have the content of
the work tree, so that no filter of the repository runs; there is no `.git`.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from rooda.world.files.beneath import Beneath
from rooda.world.files.plain_files import NotPlainFileError
from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.git_contents import contents
from rooda.world.git.git_files import is_path_in_tree
from rooda.world.tools import Tools

_PREFIX = "rooda-clean"
_LONGEST_LINK = 64 * 1024  # bytes: more than any system takes, which is an error then
_LIST = ("ls-files", "--stage", "-v", "-z", "--full-name")
_LINK, _REPOSITORY, _PROGRAM = "120000", "160000", "100755"
# The file is gone, or a link or another kind of file is in its place or above it.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)


class _Entry(Struct, frozen=True):
    """A file of the index; `is_pinned`: git takes its content from the index, not from disk."""

    name: str
    mode: str
    content: str
    is_pinned: bool


@contextlib.contextmanager
def clean_folder(top: Path) -> Iterator[Path]:
    """Yield an empty private folder for a copy of this work tree, and delete it afterwards.

    It has the name of the work tree. The caller holds the lock of the work tree. Raises OSError.
    """
    remove_copies(top)
    folder = Path(tempfile.mkdtemp(prefix=f"{_name(top)}-"))
    try:
        copy = folder / (top.name or "copy")
        copy.mkdir()
        yield copy
    finally:
        _remove(folder)


def remove_copies(top: Path) -> None:
    """Delete the copies of this work tree that a killed run has left behind."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                is_copy = entry.name.startswith(f"{_name(top)}-")
                if is_copy and entry.is_dir(follow_symlinks=False) and _is_own(entry):
                    _remove(Path(entry.path))


class BadNameError(GitError):
    """The index has a name that git does not allow: an agent has written it."""


def copy_files(
    git: Git, tools: Tools, top: Path, to: Path, place: str = "", *, nested: bool = False
) -> int:
    """Copy the files in the index of `git` from the work tree; return how many there are.

    A submodule (`nested`, at `place` below the top) is copied as it is now. Raises GitError and
    OSError. Names, links and folders are under the agent's control: rooda follows none of them.
    """
    entries = _entries(git)
    for one in entries:
        if not is_path_in_tree(one.name):
            raise BadNameError(f"the index of git has a name that git does not allow: {one.name!r}")
    by_name = {f"{place}{one.name}": one for one in entries}
    from_index: dict[str, _Entry] = {}
    files = 0
    for name in git.while_wanted(by_name):
        one = by_name[name]
        if one.mode == _REPOSITORY:
            with Beneath(to).folder(name, make=True):
                pass
            files += _copy_submodule(tools, top, to, name)
            continue
        if one.is_pinned or not _copy(top, to, name, one.mode):
            from_index[name] = one
        files += 1
    if nested:  # its `.git` may lead to another repository, whose contents are not for the agent
        return files - len(from_index)
    _write_contents(git, from_index, to)
    return files


def _entries(git: Git) -> list[_Entry]:
    found: list[_Entry] = []

    def take(field: bytes) -> None:
        about, _, name = field.partition(b"\t")
        tag, mode, content, _stage = about.decode().split(" ")
        # A lower case tag is `assume-unchanged`, S is `skip-worktree`.
        found.append(_Entry(os.fsdecode(name), mode, content, tag.islower() or tag == "S"))

    git.each(take, *_LIST)
    return found


def _copy_submodule(tools: Tools, top: Path, to: Path, name: str) -> int:
    """Copy the tracked files of a submodule; one that is not checked out stays an empty folder."""
    try:
        Beneath(top).status(f"{name}/.git")
    except OSError:
        return 0
    try:
        return copy_files(Git(top / name, tools), tools, top, to, f"{name}/", nested=True)
    except (GitStoppedError, BadNameError):
        raise
    except GitError:
        return 0


def _copy(top: Path, to: Path, name: str, mode: str) -> bool:
    """Copy one file; return whether it is on disk."""
    tree, copy = Beneath(top), Beneath(to)
    try:
        target = tree.link(name)
        if mode == _LINK and target is not None:
            copy.make_link(name, target)
            return True
        if target is not None:
            return False
        file = tree.open(name)
    except OSError as error:
        if error.errno in _NOT_THERE or isinstance(error, NotPlainFileError):
            return False
        raise
    with file:
        if mode == _LINK:  # without links (`core.symlinks=false`) the file contains the path
            copy.make_link(name, file.read())
        else:
            copy.write_new(name, file, _permissions(mode))
    return True


def _permissions(mode: str) -> int:
    return 0o755 if mode == _PROGRAM else 0o644


def _write_contents(git: Git, entries: Mapping[str, _Entry], to: Path) -> None:
    """Write files as the index has them, such as those outside of a sparse checkout."""
    copy, named = Beneath(to), [(one, one[1].content) for one in entries.items()]
    for (name, one), content, size in contents(git, named):
        if one.mode == _LINK:
            copy.make_link(name, content.read(min(size, _LONGEST_LINK)))
        else:
            copy.write_new(name, content, _permissions(one.mode), size)


def _name(top: Path) -> str:
    """Return the beginning of the names of all copies of a work tree."""
    return f"{_PREFIX}-{sha256(os.fsencode(top)).hexdigest()[:12]}"


def _is_own(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove(folder: Path) -> None:
    """Delete a folder; a process that is just ending may write to it meanwhile."""
    for _ in range(2):
        with contextlib.suppress(OSError):
            Beneath(folder.parent).remove(folder.name)
            return
