"""The user's own repository. We read it, and write nothing but objects and refs of ours."""

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from rooda.workspace.git import Git, GitError, GitStoppedError
from rooda.workspace.git_files import changed_link, check_git_folder, links_in
from rooda.workspace.snapshots.index import read_index
from rooda.workspace.tools import Tools

# What git says where there is no work tree; all else that it says is trouble.
_NOWHERE = ("not a git repository", "must be run in a work tree")
_PLACES = (
    ("--show-toplevel",),
    ("--absolute-git-dir",),
    ("--git-common-dir",),
    ("--git-path", "index"),
    ("--git-path", "objects"),
    ("--show-object-format",),
)
_SETTINGS = (
    r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|excludesfile|autocrlf|attributesfile)$"
)
_AT_ONCE = 200  # names on one command line


class Repository(Struct, frozen=True):
    """Where its parts are. `top` is the work tree; `git` runs in it, wherever HEAD is by now."""

    top: Path
    git_dir: Path
    links: Mapping[str, str]  # in git's own folders, when it was found
    common: Path  # what all of its work trees share
    index: Path
    objects: Path
    object_format: str
    git: Git
    git_with_index: Git

    @classmethod
    def find(cls, folder: Path, tools: Tools) -> "Repository | None":
        """The repository that a folder is in; None without git or without a work tree.

        Raises GitError if git has something against it.
        """
        if tools.git is None:
            return None
        check_git_folder(folder)
        try:
            top, git_dir, common, index, objects, kind = _places(Git(folder, tools))
        except GitError as error:
            if any(sign in str(error) for sign in _NOWHERE):
                return None
            raise
        if not folder.resolve().is_relative_to(top):
            return None  # a work tree elsewhere (`core.worktree`) is not what the user is in
        # From here on by its name: if an agent deletes it, git must not find one further up.
        place = {"GIT_DIR": git_dir, "GIT_WORK_TREE": top}
        # Most commands need no index. Without one they are faster, and a broken one is no matter.
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

    def check(self) -> None:
        """Raise GitError if a file in git's own folders would stop git or lead it elsewhere."""
        if moved := changed_link(self.links, links_in([self.git_dir, self.common])):
            raise GitStoppedError(f"{moved} is a link now that leads elsewhere: delete it")

    def head(self) -> str | None:
        """The commit that HEAD stands for; None before the first one."""
        return self.git.ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}")

    def settings(self) -> dict[str, str]:
        """What the user has set about how files are seen, by its lower-case name."""
        raw = self.git.ask("config", "--null", "--get-regexp", _SETTINGS) or ""
        pairs = (entry.partition("\n") for entry in raw.split("\0") if entry)
        # A key without a value means true; of several the last one holds.
        return {key: value if divided else "true" for key, divided, value in pairs}

    def tracked(self, names: Iterable[str]) -> set[str]:
        """Those of the names that are in the user's index."""
        return {name for _, name in self._staged(names)}

    def submodules(self, names: Iterable[str]) -> set[str]:
        """Those of the names that are submodules in the user's index."""
        return {name for mode, name in self._staged(names) if mode == "160000"}

    def _staged(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Modes and names."""
        found, rest = b"", iter(names)
        while some := list(islice(rest, _AT_ONCE)):
            found += self._listed("--stage", "--", *some)
        # `100644 0a1b... 0<TAB>name`
        entries = (entry.partition("\t") for entry in os.fsdecode(found).split("\0") if entry)
        return [(about.split(" ")[0], name) for about, _, name in entries]

    def names(self) -> set[str]:
        """Everything in the user's index."""
        return {*os.fsdecode(self._listed()).split("\0")} - {""}

    def _listed(self, *arguments: str) -> bytes:
        """What the index lists; nothing if it is broken, or a pipe: we can do without."""
        try:
            if read_index(self.index, self.object_format) is None:
                return b""
            return self.git_with_index("--literal-pathspecs", "ls-files", "-z", *arguments)
        except GitError:
            return b""


def _places(git: Git) -> list[str]:
    """Where the parts are, as git says it in the order of the questions."""
    said = git.line("rev-parse", *(word for question in _PLACES for word in question)).split("\n")
    if len(said) == len(_PLACES):
        return said
    return [git.line("rev-parse", *question) for question in _PLACES]  # a name with a line break
