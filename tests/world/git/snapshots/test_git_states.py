"""A snapshot is exact, whatever the state of git: content, permissions and link of each file."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.world.git.snapshots.snapshots import LARGEST
from support.gitrepo import Repo, repository

AGENT = """
echo changed >a.txt; rm src/main.c; mkdir -p new/deep; echo new >new/deep/file
chmod 640 run.sh; ln -sfn src link; echo more >>src/deep/er.c
"""
COMMIT = "git add -A; git commit -qm more"

COLLECT = "git reflog expire --expire=now --all; git gc -q --prune=now"
FORGE = """
git update-index --add --cacheinfo 100644,$(git hash-object -w a.txt),aa/bait
python3 -c 'import hashlib, pathlib
path = pathlib.Path(".git/index")
index = path.read_bytes().replace(b"aa/bait", b"../bait")[:-20]
path.write_bytes(index + hashlib.sha1(index).digest())'
"""

Prepare = Callable[[Path], Repo]


def filled(repo: Repo) -> Repo:
    repo.write("a.txt", "alpha\n")
    repo.write("src/main.c", "int main;\n")
    repo.write("src/deep/er.c", "int er;\n").chmod(0o640)
    repo.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (repo.path / "link").symlink_to("a.txt")
    repo.write(".gitignore", "*.o\nbuild/\n")
    return repo


def plain(folder: Path, *options: str) -> Repo:
    repo = filled(repository(folder / "repo", *options))
    repo.commit()
    repo.write("untracked", "not in git").chmod(0o600)
    return repo


def sha256(folder: Path) -> Repo:
    return plain(folder, "--object-format=sha256")


def sparse(folder: Path) -> Repo:
    repo = plain(folder)
    repo.write("elsewhere/x", "x")
    repo.commit()
    repo.git("sparse-checkout", "set", "src", "new")
    assert not (repo.path / "elsewhere").exists()
    return repo


def unborn(folder: Path) -> Repo:
    return filled(repository(folder / "repo"))


def conflict(folder: Path) -> Repo:
    repo = plain(folder)
    repo.git("checkout", "-qb", "topic")
    repo.write("a.txt", "theirs\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write("a.txt", "ours\n")
    repo.commit()
    repo.sh("git merge topic || true")
    assert "<<<<<<<" in (repo.path / "a.txt").read_text()
    return repo


def filters(folder: Path) -> Repo:
    repo = plain(folder)
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "filter.x.clean", "sed s/a/b/")
    repo.git("config", "filter.x.smudge", "false")
    repo.write(".gitattributes", "*.txt filter=x\n*.utf working-tree-encoding=UTF-16\n")
    repo.write("dos", "a\r\nb\n")
    repo.write("x.utf", "text".encode("utf-16"))
    return repo


def odd_names(folder: Path) -> Repo:
    repo = plain(folder)
    for name in ("-x", ":(glob)*", "a\nb", 'quo"te', "back\\slash", " ", "é", os.fsdecode(b"\xff")):
        repo.write(f"odd/{name}", name.encode("utf-8", "surrogateescape"))
        repo.write(f"{name}/file", "x")
    return repo


def left_out(folder: Path) -> Repo:
    repo = plain(folder)
    os.mkfifo(repo.path / "pipe")
    with repo.write("large").open("wb") as file:
        file.truncate(LARGEST + 1024 * 1024)
    return repo


def tracked_but_ignored(folder: Path) -> Repo:
    repo = plain(folder)
    repo.write("main.o", "tracked")
    repo.write("build/deep/x", "tracked")
    repo.git("add", "-f", "main.o", "build/deep/x")
    repo.commit()
    return repo


def copied(folder: Path, *options: str) -> Repo:
    origin = plain(folder)
    origin.write("a.txt", "second\n")
    origin.commit()
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.git("clone", "-q", *options, f"file://{origin.path}", str(folder / "clone"))
    return Repo(folder / "clone", origin.environ)


def shallow(folder: Path) -> Repo:
    return copied(folder, "--depth=1")


def partial(folder: Path) -> Repo:
    return copied(folder, "--filter=blob:none")


def linked(folder: Path) -> Repo:
    repo = plain(folder)
    repo.git("worktree", "add", "-q", str(folder / "linked"))
    return Repo(folder / "linked", repo.environ)


def submodule(folder: Path) -> Repo:
    library = plain(folder)
    repo = filled(Repo(folder / "outer", library.environ))
    repo.path.mkdir(exist_ok=True)
    repo.git("init", "-q")
    repo.git("submodule", "--quiet", "add", str(library.path), "lib")
    repo.commit()
    return repo


def no_repository(folder: Path) -> Repo:
    repo = unborn(folder)
    repo.sh("rm -rf .git")
    return repo


def forged_index(folder: Path) -> Repo:
    repo = plain(folder)
    (folder / "bait").write_text("outside")
    return repo


STATES: dict[str, tuple[Prepare, str]] = {
    "plain": (plain, f"{AGENT}{COMMIT}"),
    "sha256": (sha256, AGENT),
    "sparse": (sparse, AGENT),
    "unborn": (unborn, AGENT),
    "merge conflict": (conflict, AGENT),
    "filters": (filters, f"{AGENT} printf 'x\\n' >dos; rm x.utf"),
    "odd names": (odd_names, f"{AGENT} rm -r odd; echo y >'-x/file'; rm -r ' '"),
    "file and folder": (plain, "rm a.txt; mkdir a.txt; echo x >a.txt/x; rm -r src; echo x >src"),
    "folder replaced by a link out": (plain, "mv src ../out; ln -s ../out src; echo x >src/main.c"),
    "pipe, unreadable, large": (left_out, f"{AGENT} chmod 0 src/deep/er.c src; mkfifo other"),
    "tracked but ignored": (tracked_but_ignored, "echo x >main.o; rm -r build; mkdir build"),
    "nested repository": (plain, "cd src; git init -q; cd ..; git clean -qffdx; rm -rf src"),
    "shallow": (shallow, f"{AGENT}{COMMIT}"),
    "partial clone": (partial, f"{AGENT}{COMMIT}"),
    "linked work tree": (linked, f"{AGENT} chmod 640 a.txt"),
    "submodule": (submodule, f"{AGENT} cd lib; {AGENT} rm .gitignore"),
    "no repository": (no_repository, AGENT),
    "repository deleted": (plain, f"{AGENT} rm -rf .git"),
    "orphan and gc": (
        plain,
        f"git checkout -q --orphan new; {AGENT}{COMMIT}; git branch -D main; {COLLECT}",
    ),
    "objects emptied": (plain, f"{AGENT} rm -rf .git/objects; mkdir .git/objects"),
    "forged index": (
        forged_index,
        f"{AGENT} {FORGE}",
    ),
}


def exact(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return kind, permissions and content of each file, except those of `.git`."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git" and name not in links]
        for name in (*names, *links):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if name == ".git" or stat.S_ISFIFO(mode):
                continue
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[os.path.relpath(path, top)] = (mode, content)
    return found


@pytest.mark.real(rows=4)
@pytest.mark.parametrize("state", STATES)
def test_snapshot_undo_and_restore_are_exact(state: str, tmp_path: Path) -> None:
    prepare, agent = STATES[state]
    repo = prepare(tmp_path)
    before = exact(repo.path)
    repo.open().take("r1", "0")
    repo.sh(agent)
    repo.open().take("r1", "1")
    after = exact(repo.path)
    assert after != before
    restored = repo.open().restore("r1", "0", "u1", "undo")
    assert restored.left_out == ()
    assert exact(repo.path) == before
    repo.open().restore("undo", "u1", "u2", "undo")
    assert exact(repo.path) == after
    repo.store("fsck", "--strict")
