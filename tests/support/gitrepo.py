"""Real git repositories, and functions that read their content without rooda."""

import hashlib
import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rooda.world.git.snapshots.snapshots import LARGEST, Snapshots
from rooda.world.git.snapshots.tree_changes import Changes, TreeScan
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import state_folder_name
from rooda.world.tools import Tools
from support.states import state_of

_CONFIG = """\
[user]
    name = A User
    email = user@example.org
[init]
    defaultBranch = main
[protocol "file"]
    allow = always
[advice]
    detachedHead = false
"""

# The kind of a file with its executable bit, and its bytes or its target.
Content = tuple[str, bytes]
Walk = dict[str, Content]


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, which is created, without the config of the machine; what it prints."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *options, "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def stored(folder: Path, *words: str) -> str:
    """Return what git prints about the snapshots of a work tree."""
    return git(folder, f"--git-dir={state_of(folder)}/git", *words)


@dataclass
class Repo:
    """A work tree with its own home next to it."""

    path: Path
    environ: dict[str, str]

    def copy(self, folder: Path) -> "Repo":
        """Return a copy in another folder, with a copy of the home."""
        home = folder.parent / "home"
        shutil.copytree(self.environ["HOME"], home, symlinks=True)
        shutil.copytree(self.path, folder, symlinks=True)
        places = {"HOME": str(home), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        return Repo(folder, self.environ | places)

    def become(self, other: "Repo") -> None:
        """Replace the files with those of another repository and keep the history."""
        own = (".git",)
        for path in self.path.iterdir():
            if path.name not in own:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(
            other.path,
            self.path,
            symlinks=True,
            ignore=shutil.ignore_patterns(*own),
            dirs_exist_ok=True,
        )

    def git(self, *arguments: str, given: bytes = b"") -> str:
        """Return what git prints for the user or an agent."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=self.environ,
            input=given,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, os.fsdecode(done.stderr)
        return os.fsdecode(done.stdout).strip("\n")

    def sh(self, script: str) -> None:
        """Run a script as an agent would. Each command must succeed."""
        command = ["sh", "-ec", script]
        subprocess.run(command, cwd=self.path, env=self.environ, check=True, capture_output=True)

    def write(self, name: str, content: str | bytes = "") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def commit(self, message: str = "some work") -> str:
        """Commit everything. Return the id of the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def commit_as_old(self) -> None:
        """Commit files with an old date, so that git trusts its index."""
        for name in walk(self.path):
            os.utime(self.path / name, (10**9, 10**9), follow_symlinks=False)
        self.commit()

    def open(self, folder: str = "", largest: int = LARGEST) -> Snapshots:
        """Open the snapshots of this work tree from one of its folders."""
        there = self.path / folder
        return Snapshots.open(there, self.state, Tools(self.environ, [there]), largest)

    @property
    def state(self) -> StateFolder:
        """The folder for the snapshots, beside the work tree."""
        return StateFolder(self.path.with_name(state_folder_name(self.path)))

    def files_of(self, snapshot: TreeScan) -> Walk:
        """Return the files of a snapshot, as git lists them."""
        found: Walk = {}
        raw = self.store("ls-tree", "-r", "-z", str(snapshot.tree))
        for entry in raw.split("\0")[:-1]:
            about, _, name = entry.partition("\t")
            mode, _, blob = about.split(" ")
            kind = {"100644": "file", "100755": "program", "120000": "link"}.get(mode, "repository")
            found[name] = (kind, b"" if kind == "repository" else self.blob(blob))
        return found

    def store(self, *arguments: str) -> str:
        """Return what git prints about the private store of snapshots."""
        return os.fsdecode(self._of_store(*arguments)).strip("\n")

    def _of_store(self, *arguments: str) -> bytes:
        command = ["git", f"--git-dir={self.state}/git", *arguments]
        return subprocess.run(command, env=self.environ, check=True, capture_output=True).stdout

    def blob(self, name: str) -> bytes:
        """Return a content of the store."""
        return self._of_store("cat-file", "blob", name)

    def git_files(self) -> dict[str, bytes]:
        """Return all files of `.git`."""
        files = (path for path in (self.path / ".git").rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}


def repository(folder: Path, *options: str) -> Repo:
    """Create an empty repository."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    folder.mkdir()
    (home / ".gitconfig").write_text(_CONFIG)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    repo = Repo(folder, environ)
    repo.git("init", "-q", *options)
    return repo


def some_long(kinds: Iterable[str], *quick: str) -> list[Any]:
    """Return parameters of which the third ring has all but the quick ones."""
    long = pytest.mark.long
    return [kind if kind in quick else pytest.param(kind, marks=long) for kind in kinds]


def walk(top: Path) -> Walk:
    """Return each file below a folder, without repositories, pipes and empty folders."""
    return {
        os.path.relpath(path, top): content
        for path in _files(top)
        if (content := _content(path)) is not None
    }


def _files(top: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(top):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in (".git", *links)]
        yield from (Path(folder, name) for name in (*files, *links) if name != ".git")


def _content(path: Path) -> Content | None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return "link", os.fsencode(path.readlink())
    if not stat.S_ISREG(found.st_mode):
        return None
    kind = "program" if found.st_mode & 0o100 else "file"
    return kind, path.read_bytes()


def compare(before: Walk, after: Walk) -> Changes:
    """Return the changes between two trees by a plain comparison."""
    both = before.keys() & after.keys()
    return Changes(
        tuple(sorted(after.keys() - both)),
        tuple(sorted(name for name in both if before[name] != after[name])),
        tuple(sorted(before.keys() - both)),
    )


def write_index(top: Path, *entries: tuple[int, str, bytes]) -> None:
    """Write an index by hand: the mode, the name, and the content of each entry.

    Git itself would refuse some of the names. The entries are marked `assume-unchanged`, so that
    git does not compare them with the disk.
    """
    packed = b""
    for mode, name, content in sorted(entries, key=lambda one: one[1]):
        made = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            check=True,
            cwd=top,
            input=content,
            capture_output=True,
        )
        number, raw = bytes.fromhex(made.stdout.decode().strip()), name.encode()
        entry = struct.pack(">10I20sH", *[0] * 6, mode, 0, 0, 0, number, 0x8000 | len(raw)) + raw
        packed += entry + b"\0" * (8 - len(entry) % 8)
    index = struct.pack(">4sII", b"DIRC", 2, len(entries)) + packed
    (top / ".git/index").write_bytes(index + hashlib.sha1(index, usedforsecurity=False).digest())
