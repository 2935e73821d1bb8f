"""A repository of a user with dirty files, a slot's clone of it, and what must stay as it is."""

import hashlib
import os
from pathlib import Path

from rooda.fleet.remote.fence import Remote
from rooda.world.tools import Tools
from support.gitrepo import Repo, repository

_ROODAS = (".git/objects/", ".git/refs/heads/rooda/")
TASK = {"task.json": b'{"task": 1}'}


def user_repository(folder: Path) -> Repo:
    """Return a repository with a commit, staged, dirty and untracked files, a stash and hooks."""
    repo = repository(folder)
    repo.write("a.txt", "one\n")
    repo.write(".gitignore", "*.log\n.env\n")
    repo.commit("first")
    repo.write("a.txt", "stashed\n")
    repo.git("stash", "-q")
    repo.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt")
    repo.write("a.txt", "dirty\n")
    repo.write("untracked.txt", "mine\n")
    for name in ("post-receive", "update", "reference-transaction", "post-update"):
        hook = repo.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch '{folder}/HOOK-RAN'\n")
        hook.chmod(0o755)
    return repo


Fingerprint = dict[str, tuple[int, str]]


def fingerprint(repo: Repo) -> Fingerprint:
    """Return mode and hash of every file of a user's folder, git's own files too."""
    paths = (Path(folder, name) for folder, _, names in os.walk(repo.path) for name in names)
    return {
        str(path.relative_to(repo.path)): (
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in paths
    }


def changes_since(before: Fingerprint, repo: Repo, *, is_shared: bool = False) -> list[str]:
    """Return the files that changed, except for new objects and new branches of rooda.

    A remote that is shared has records, too.
    """
    own = (*_ROODAS, ".git/refs/rooda/") if is_shared else _ROODAS
    now = fingerprint(repo)
    changed = [name for name, found in before.items() if now.get(name) != found]
    new = [name for name in now if name not in before]
    return changed + [name for name in new if not name.startswith(own)]


def remote_of(
    url: str,
    folder: Path,
    repo: Repo,
    receive_pack: str | None = None,
    *,
    fence: Path | None = None,
) -> Remote:
    """Return the remote as seen from a new empty repository."""
    tools = Tools(repo.environ)
    folder.mkdir(parents=True)
    Repo(folder, repo.environ).git("init", "-q", "--bare", ".")
    return Remote(url, folder, tools, fence=fence, receive_pack=receive_pack)
