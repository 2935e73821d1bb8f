"""The user's repository, which snapshots only read."""

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.git_files import changed_link, check_git_folder, links_in
from rooda.world.tools import Tools

# What git prints where there is no work tree. Every other message is an error.
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
_PLACES = (
    ("--show-toplevel",),
    ("--absolute-git-dir",),
    ("--git-common-dir",),
    ("--git-path", "index"),
    ("--git-path", "objects"),
    ("--show-object-format",),
)
_SETTINGS = r"^(core\.(ignorecase|precomposeunicode|excludesfile)|status\.showuntrackedfiles)$"
_NAMES_PER_COMMAND = 200
_ON_BRANCH = b"ref: refs/heads/"
_LARGEST_REF = 4096  # bytes


class Repository(Struct, frozen=True):
    """The places of a repository. `top` is the work tree; `git` runs there without an index."""

    top: Path
    git_dir: Path
    links: Mapping[str, str]  # the links in git's own folders at the time of `find`
    common: Path  # shared by all work trees of the repository
    index: Path
    objects: Path
    object_format: str
    git: Git
    git_with_index: Git

    @classmethod
    def find(cls, folder: Path, tools: Tools) -> "Repository | None":
        """Return the repository of a folder; None without git or without a work tree.

        Raises GitError if git refuses to work with the repository.
        """
        if tools.git is None:
            return None
        check_git_folder(folder)
        try:
            top, git_dir, common, index, objects, kind = _places(Git(folder, tools))
        except GitError as error:
            if any(message in str(error) for message in _NO_WORK_TREE):
                return None
            raise
        if not folder.resolve().is_relative_to(top):
            return None  # `core.worktree` names a work tree elsewhere, not the user's folder
        # rooda names the repository from here on: if an agent deletes it, git must not find
        # another one further up.
        place = {"GIT_DIR": git_dir, "GIT_WORK_TREE": top}
        # Most commands need no index. Without one they are faster, and a broken one does no harm.
        no_index = {"GIT_INDEX_FILE": f"{git_dir}/no-index"}
        shared = (folder / common).resolve()
        return cls(
            Path(top),
            Path(git_dir),
            links=links_in([Path(git_dir), shared]),
            common=shared,
            index=(folder / index).absolute(),
            objects=(folder / objects).resolve(),
            object_format=kind,
            git=Git(Path(top), tools, place | no_index),
            git_with_index=Git(Path(top), tools, place),
        )

    def check(self, *, index: bool = False) -> None:
        """Raise GitError if a file in git's own folders would block git or lead it elsewhere."""
        now = links_in([self.git_dir, self.common], index=index)
        if moved := changed_link(self.links, now):
            raise GitStoppedError(f"{moved} is a link now that leads elsewhere: delete it")

    def named_links(self) -> dict[str, str]:
        """Return the links in git's own folders by their names below `common`."""
        return {os.path.relpath(path, self.common): to for path, to in self.links.items()}

    def head(self) -> str | None:
        """Return the commit of HEAD; None before the first commit."""
        return self.git.ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}")

    def head_files(self) -> tuple[bytes, ...] | None:
        """Return what is in HEAD and in the file of its branch; None if that can't tell the commit.

        As long as both stay the same, so does the commit.
        """
        try:
            head = read_plain_file(self.git_dir / "HEAD", _LARGEST_REF)
            if not head.startswith(_ON_BRANCH):
                return None
            branch = read_plain_file(self.common / os.fsdecode(head[5:].strip()), _LARGEST_REF)
        except (OSError, ValueError):  # git keeps the branch in a packed file, or HEAD is damaged
            return None
        return None if branch.startswith(b"ref:") else (head, branch)

    def tracked(self, names: Iterable[str]) -> set[str]:
        """Return those of the names that are in the user's index."""
        found, rest = b"", iter(names)
        while some := list(islice(rest, _NAMES_PER_COMMAND)):
            found += self._listed("--", *some)
        return {*os.fsdecode(found).split("\0")} - {""}

    def names(self) -> set[str]:
        """Return every name in the user's index."""
        return {*os.fsdecode(self._listed()).split("\0")} - {""}

    def _listed(self, *arguments: str) -> bytes:
        """Return what `git ls-files` prints; nothing for a broken index, which is no error here."""
        try:
            self.check(index=True)
            return self.git_with_index("--literal-pathspecs", "ls-files", "-z", *arguments)
        except GitError:
            return b""


def settings_of(git: Git) -> dict[str, str]:
    """Return the user's settings about how git reads files, by their lower-case names."""
    raw = git.ask("config", "--null", "--get-regexp", _SETTINGS) or ""
    pairs = (entry.partition("\n") for entry in raw.split("\0") if entry)
    # A key without a value means true. If a key occurs several times, the last one counts.
    return {key: value if divided else "true" for key, divided, value in pairs}


def _places(git: Git) -> list[str]:
    """Return git's answers in the order of `_PLACES`."""
    said = git.line("rev-parse", *(word for question in _PLACES for word in question)).split("\n")
    if len(said) == len(_PLACES):
        return said
    return [git.line("rev-parse", *question) for question in _PLACES]  # a name with a line break
