"""A repository of a user with dirty files, a slot's clone of it, and what must stay as it is."""

import hashlib
import os
from pathlib import Path

from rooda.fleet.fence import Remote
from rooda.workspace.tools import Tools
from support.gitrepo import Repo, repository

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


def fingerprint(repo: Repo) -> dict[str, tuple[int, str]]:
    """Return mode and hash of every file of a user, except for refs and objects of rooda's."""
    found: dict[str, tuple[int, str]] = {}
    known = set(repo.git("rev-list", "--objects", "--all", "--not", "--glob=rooda/*").split())
    for place, folders, names in os.walk(repo.path):
        folders[:] = [one for one in folders if Path(place, one).name != "rooda"]
        for name in names:
            path = Path(place, name)
            is_object = "/.git/objects/" in str(path) and path.parent.name + name not in known
            if not is_object:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path)] = (path.lstat().st_mode, digest)
    return found


def remote_of(url: str, folder: Path, repo: Repo, **more: str) -> Remote:
    """Return the remote as seen from a new empty repository."""
    tools = Tools(repo.environ)
    folder.mkdir(parents=True)
    Repo(folder, repo.environ).git("init", "-q", "--bare", ".")
    return Remote(url, folder, tools, **more)
