"""Snapshots while an agent damages the files, the disk is full, or the process is killed."""

import contextlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rooda.iteration.tracker import FileChangeTracker
from rooda.workspace import git as git_module
from rooda.workspace.git import Git, GitError, GitStoppedError
from rooda.workspace.snapshots import shadow_index
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.state_folder import StateFolder
from rooda.workspace.tools import Tools
from rooda.workspace.tree_changes import Changes
from support.children import until
from support.faults import powerless, small_disk
from support.gitrepo import Repo, repository, some_long, walk, write_index
from support.workspace import Workspace, alive

pytestmark = pytest.mark.real


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    found = repository(tmp_path_factory.mktemp("original") / "work")
    found.write("a.txt", "alpha\n")
    found.write("src/main.c", "int main;\n")
    found.write(".gitignore", "*.o\n")
    found.commit()
    found.write("untracked.txt", "not in git\n")
    found.write("main.o", "ignored")
    return found


@pytest.fixture
def repo(original: Repo, tmp_path: Path) -> Repo:
    return original.copy(tmp_path / "work")


def kept(repo: Repo) -> dict[str, tuple[str, bytes]]:
    return {name: content for name, content in walk(repo.path).items() if not name.endswith(".o")}


# -- damage to rooda's own folder ----------------------------------------------------------

DAMAGE: dict[str, str] = {
    "all deleted": "rm -rf .rooda",
    "the folder deleted": "rm -rf .rooda/git",
    "emptied": "rm -rf .rooda/git/*",
    "a file in its place": "rm -rf .rooda/git; echo x > .rooda/git",
    "a link in its place": "rm -rf .rooda/git; mkdir ../bait; ln -s ../../bait .rooda/git",
    "not ignored": "rm .rooda/.gitignore",
    "garbage index": "echo garbage > .rooda/git/index",
    "empty index": ": > .rooda/git/index",
    "truncated index": "truncate -s 90 .rooda/git/index",
    "another index": "GIT_INDEX_FILE=.rooda/git/index git read-tree --empty",
    "index with marks": (
        "GIT_INDEX_FILE=.rooda/git/index git update-index --assume-unchanged a.txt untracked.txt"
    ),
    "a folder as the index": "rm .rooda/git/index; mkdir -p .rooda/git/index/x",
    "a pipe as the index": "rm .rooda/git/index; mkfifo .rooda/git/index",
    "a link as the index": "mv .rooda/git/index ../bait; ln -s ../../../bait .rooda/git/index",
    "a stale lock": "touch .rooda/git/index.lock",
    "garbage HEAD": "echo garbage > .rooda/git/HEAD",
    "a pipe as HEAD": "rm .rooda/git/HEAD; mkfifo .rooda/git/HEAD",
    "garbage config": "echo '[[[' > .rooda/git/config",
    "hostile config": (
        "git config -f .rooda/git/config filter.x.clean 'touch ../was-run';"
        "git config -f .rooda/git/config core.fsmonitor 'touch ../was-run';"
        "git config -f .rooda/git/config core.worktree /;"
        "echo '* filter=x' > .rooda/git/info/attributes"
    ),
    "ignore everything": "echo '*' > .rooda/git/info/exclude",
    "a pipe as info": "rm -rf .rooda/git/info; mkfifo .rooda/git/info",
    "another repository": (
        "git config filter.x.clean 'sed s/.*/touched/'; mkdir -p .git/info;"
        "echo '* filter=x' > .git/info/attributes; echo ../../.git > .rooda/git/commondir"
    ),
    "a link to the user's": "rm -rf .rooda/git; ln -s ../.git .rooda/git",
    "hooks": "mkdir -p .rooda/git/hooks; cp /bin/false .rooda/git/hooks/post-index-change",
}
QUICK = ("all deleted", "truncated index", "a pipe as HEAD", "hostile config")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", some_long(DAMAGE, *QUICK))
def test_snapshots_continue_whatever_an_agent_does_to_rooda_s_folder(repo: Repo, kind: str) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.sh(DAMAGE[kind])
    git_before = repo.git_files()
    repo.write("a.txt", "ALPHA\n")
    repo.write("new", "x")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(created=("new",), modified=("a.txt",))
    assert repo.files_of(after) == kept(repo)
    assert after.trouble == ""
    assert snapshots.take("r1", "2").changes == Changes()
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "a.txt").read_text() == "alpha\n"
    assert repo.git_files() == git_before
    assert not (repo.path.parent / "was-run").exists()
    bait = repo.path.parent / "bait"
    assert not bait.is_dir() or list(bait.iterdir()) == []


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", DAMAGE)
def test_later_run_starts_whatever_an_agent_left(repo: Repo, kind: str) -> None:
    repo.open().take("r1", "0")
    repo.sh(DAMAGE[kind])
    repo.write("a.txt", "ALPHA\n")
    assert repo.files_of(repo.open().take("r2", "0")) == kept(repo)


def test_state_folder_that_is_a_link_is_refused(repo: Repo, tmp_path: Path) -> None:
    snapshots = repo.open()
    (tmp_path / "elsewhere").mkdir()
    (repo.path / ".rooda").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GitError, match="symbolic link"):
        snapshots.take("r1", "0")
    assert list((tmp_path / "elsewhere").iterdir()) == []


# -- damage to the user's repository -------------------------------------------------------


LOSS = {
    "all": "rm -rf .git/refs/rooda",
    "the last": "git update-ref -d refs/rooda/r1/2",
    "moved": "git update-ref refs/rooda/r1/2 HEAD",
    "packed": "git pack-refs --all; rm .git/packed-refs; git update-ref HEAD $(cat ../head)",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("damage", some_long(LOSS, "all", "moved"))
def test_deleted_refs_of_snapshots_are_restored(repo: Repo, damage: str) -> None:
    snapshots = repo.open()
    for number in range(3):
        repo.write("a.txt", str(number))
        snapshots.take("r1", str(number))
    trees = [snapshots.tree_of("r1", str(number)) for number in range(3)]
    (repo.path.parent / "head").write_text(repo.git("rev-parse", "HEAD"))
    repo.sh(LOSS[damage])
    repo.write("a.txt", "3")
    after = snapshots.take("r1", "3")
    assert after.changes == Changes(modified=("a.txt",))
    assert "refs of earlier snapshots" in after.trouble
    assert [snapshots.tree_of("r1", str(number)) for number in range(3)] == trees
    assert snapshots.take("r1", "4").trouble == ""


def test_refs_that_vanish_while_nothing_changes_are_restored(repo: Repo) -> None:
    snapshots = repo.open()
    commit = snapshots.take("r1", "0").commit
    snapshots.take("r1", "1")
    repo.sh("rm -rf .git/refs/rooda")
    assert "refs of earlier snapshots" in snapshots.take("r1", "2").trouble
    found = repo.git("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/rooda")
    assert found.splitlines() == [f"{number} {commit}" for number in range(3)]


def test_snapshots_continue_after_all_earlier_ones_are_lost(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("a.txt", "1")
    snapshots.take("r1", "1")
    snapshots.take("r1", "waits")
    repo.sh("rm -rf .git/refs/rooda; git gc -q --prune=now")
    repo.write("a.txt", "2")
    after = snapshots.take("r1", "2")
    assert after.changes is None
    assert "gone from the repository" in after.trouble
    assert repo.files_of(after) == kept(repo)
    repo.write("a.txt", "3")
    assert snapshots.take("r1", "3").changes == Changes(modified=("a.txt",))
    assert snapshots.names("r1") == ("2", "3")
    repo.git("fsck", "--strict")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("outer", [False, True], ids=["alone", "within another repository"])
def test_deleted_repository_is_an_error_and_nothing_is_written(
    tmp_path: Path, *, outer: bool
) -> None:
    around = repository(tmp_path / "around")
    around.write("x", "x")
    around.commit()
    inner = around.path / "inner"
    inner.mkdir()
    if not outer:
        shutil.rmtree(around.path / ".git")
    repo = Repo(inner, around.environ)
    repo.git("init", "-q")
    repo.write("a.txt", "alpha")
    repo.commit()
    snapshots = repo.open()
    snapshots.take("r1", "0")
    shutil.rmtree(repo.path / ".git")
    theirs = around.git_files()
    for _ in range(2):
        with pytest.raises(GitError, match="was deleted or replaced"):
            snapshots.take("r1", "1")
    assert around.git_files() == theirs
    repo.git("init", "-q")
    new = repo.git_files()
    with pytest.raises(GitError, match="was deleted or replaced"):
        snapshots.take("r1", "2")
    assert repo.git_files() == new, "the run did not start in this repository"


def test_conflicting_ref_is_an_error_that_names_it(repo: Repo) -> None:
    snapshots = repo.open()
    repo.git("update-ref", "refs/rooda/r1", "HEAD")
    with pytest.raises(GitError, match="refs/rooda/r1"):
        snapshots.take("r1", "0")
    repo.git("update-ref", "-d", "refs/rooda/r1")
    assert snapshots.take("r1", "0").commit is not None


def test_foreign_refs_below_refs_rooda_are_ignored(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for name in ("refs/rooda/alone", "refs/rooda/r2/deep/er", "refs/roodaX/r3/0"):
        repo.git("update-ref", name, "HEAD")
    assert snapshots.runs() == ("r1",)
    snapshots.forget(["r1", "r2", "alone", "r3"])
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/rooda", "refs/roodaX") == (
        "refs/rooda/alone\nrefs/rooda/r2/deep/er\nrefs/roodaX/r3/0"
    )


# -- hostile files in the work tree --------------------------------------------------------

SCRIPT = """
import json, os, sys
from pathlib import Path
from rooda.workspace.git import GitError
from rooda.workspace.snapshots import shadow_index
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.tools import Tools
top = Path(sys.argv[1])
snapshots = Snapshots.open(top, top / ".rooda", Tools())
try:
    found = snapshots.take("r2", "0")
except GitError as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({"left_out": found.left_out, "tree": found.tree}))
"""


def taken(repo: Repo, *before: str) -> dict[str, Any]:
    """Return what another process prints about the snapshot that it takes."""
    command = [*before, sys.executable, "-c", SCRIPT, str(repo.path)]
    done = subprocess.run(command, env=repo.environ, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_unreadable_file_is_skipped_and_named(repo: Repo) -> None:
    before = powerless()
    repo.write("secret", "x").chmod(0)
    (repo.path / "a.txt").chmod(0)
    os.utime(repo.path / "a.txt", (1, 1))
    found = taken(repo, *before)
    assert found["left_out"] == ["a.txt", "secret"]
    names = repo.git("ls-tree", "-r", "--name-only", found["tree"]).split()
    assert names == [".gitignore", "src/main.c", "untracked.txt"]


def test_name_that_git_refuses_is_skipped_and_named(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    (repo.path / ".gitmodules").symlink_to("a.txt")
    repo.write("src/.GIT/config", "x")
    for number in range(20):
        repo.write(f"new/{number}", str(number))
    after = snapshots.take("r1", "1")
    assert after.left_out == (".gitmodules", "src/.GIT/config")
    assert after.changes is not None
    assert len(after.changes.created) == 21


def test_forged_name_in_the_index_does_not_end_the_snapshots(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    index = (repo.path / ".git/index").read_bytes()
    write_index(repo.path, (0o100644, "../outside", b"x"), (0o100644, "a/.git/config", b"x"))
    repo.write("new", "x")
    assert snapshots.take("r1", "1").changes == Changes(created=("new",))
    (repo.path / ".git/index").write_bytes(index)
    repo.write("newer", "x")
    assert snapshots.take("r1", "2").changes == Changes(created=("newer",))


def test_entry_that_git_refuses_does_not_affect_the_others(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    head = repo.git("rev-parse", "HEAD")
    repo.sh(f"git init -q lib; git update-index --add --cacheinfo 160000,{head},lib")
    for number in range(5):
        repo.write(f"new/{number}", str(number))
    after = snapshots.take("r1", "1")
    assert after.left_out == ("lib",)
    assert after.changes == Changes(created=tuple(f"new/{number}" for number in range(5)))


def test_many_bytes_are_added_by_several_git_commands(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_index, "_BYTES_PER_COMMAND", 10)
    for number in range(5):
        repo.write(f"new/{number}", "x" * 3 * number)
    assert repo.files_of(repo.open().take("r1", "0")) == kept(repo)


def test_pipe_that_would_block_git_is_an_error_that_names_it(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    os.mkfifo(repo.path / ".gitattributes")
    with pytest.raises(GitError, match=r"\.gitattributes is a named pipe"):
        snapshots.take("r1", "1")
    (repo.path / ".gitattributes").unlink()
    repo.write("a.txt", "changed")
    assert snapshots.take("r1", "2").changes == Changes(modified=("a.txt",))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", [".gitattributes", ".gitignore", ".gitmodules"])
def test_garbage_in_a_file_that_git_reads_is_no_error(repo: Repo, name: str) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write(name, bytes(range(256)) * 100 + b"\n[attr]x y z\n* filter=\n")
    after = snapshots.take("r1", "1")
    assert after.changes is not None
    assert name in (*after.changes.created, *after.changes.modified)


def test_nothing_is_written_through_a_link(repo: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "main.c").write_text("not in the work tree")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    shutil.rmtree(repo.path / "src")
    (repo.path / "src").symlink_to(elsewhere)
    snapshots.restore("r1", "0", "u1")
    assert (elsewhere / "main.c").read_text() == "not in the work tree"
    assert (repo.path / "src/main.c").read_text() == "int main;\n"
    snapshots.restore("r1", "u1", "u2")
    assert (repo.path / "src").readlink() == elsewhere
    assert (elsewhere / "main.c").read_text() == "not in the work tree"


def test_forged_commit_message_does_no_harm(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    message = 'Left out: [1]\nLeft out: {\nLeft out: "new"\nLeft out: ' + "[" * 100_000
    tree = repo.git("rev-parse", "refs/rooda/r1/0^{tree}")
    forged = repo.git("commit-tree", tree, given=message.encode())
    repo.git("update-ref", "refs/rooda/r1/0", forged)
    repo.write("new", "x")
    assert snapshots.restore("r1", "0", "u1").left_out == ("new",)


# -- the machine ---------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("place", [".git/objects", ".git/refs"])
def test_read_only_repository_is_an_error_and_nothing_changes(repo: Repo, place: str) -> None:
    before = powerless()
    repo.open().take("r1", "0")
    repo.write("a.txt", "changed")
    git_before, files = repo.git_files(), walk(repo.path)
    folders = [repo.path / place, *(repo.path / place).rglob("*")]
    for folder in folders:
        if folder.is_dir():
            folder.chmod(0o555)
    found = taken(repo, *before)
    for folder in folders:
        if folder.is_dir():
            folder.chmod(0o755)
    assert re.search("ermission|unable to create", found["error"])
    assert "\n" not in found["error"]
    assert (repo.git_files(), walk(repo.path)) == (git_before, files)


def test_full_disk_is_an_error_and_nothing_changes(repo: Repo) -> None:
    repo.write("data", random.Random(1).randbytes(300_000))
    workspace = Workspace(repo.path, Path(repo.environ["HOME"]))
    full = "cp -r .git ../before; { cat /dev/zero > fill.o || true; } 2>&-"
    rest = "then echo same; fi; fi"
    script = (
        f"{shlex.join([sys.executable, '-c', SCRIPT, str(repo.path)])}; rm fill.o;"
        f"if diff -r -x objects .git ../before >&2; then if git fsck >&2; {rest}"
    )
    done = subprocess.run(
        [*small_disk(workspace, "1m", full), "sh", "-c", script],
        env=repo.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    message, _, same = done.stdout.partition("\n")
    assert "o space left on device" in json.loads(message)["error"], done.stderr
    assert same == "same\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_work_tree_of_another_user_is_an_error_with_git_s_advice(repo: Repo) -> None:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(GitError, match=r"safe\.directory") as found:
        Snapshots.open(repo.path, StateFolder(repo.path / ".rooda"), Tools(repo.environ))
    assert "\n" not in str(found.value)
    repo.environ |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(repo.path),
    }
    assert repo.open().take("r1", "0").commit is not None


def fake_git(folder: Path, body: str) -> str:
    """Install a `git` that runs `body` before the real git. Return the PATH that finds it."""
    real = shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\n{body}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_ctrl_c_at_the_terminal_does_not_reach_git(repo: Repo, tmp_path: Path) -> None:
    note = tmp_path / "sessions"
    note_session = f"{sys.executable} -ISc 'import os; print(os.getsid(0))' >> '{note}'"
    repo.environ["PATH"] = fake_git(tmp_path / "bin", note_session)
    repo.open().take("r1", "0")
    sessions = {int(line) for line in note.read_text().split()}
    assert sessions
    assert os.getsid(0) not in sessions


def test_git_never_asks_a_question(repo: Repo, tmp_path: Path) -> None:
    note = tmp_path / "environment"
    repo.environ["PATH"] = fake_git(tmp_path / "bin", f"env > '{note}'; cat <&0 > /dev/null &")
    Git(repo.path, Tools(repo.environ))("version")
    found = dict(line.split("=", 1) for line in note.read_text().splitlines())
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_ALLOW_PROTOCOL"] == "none"
    assert found["GIT_OPTIONAL_LOCKS"] == "0"


def test_git_that_hangs_is_stopped_and_not_retried(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "starts"
    repo.write("a.txt", "changed")
    body = f"case \"$*\" in *' status '*) echo $$ >> '{note}'; exec sleep 60;; esac"
    repo.environ["PATH"] = fake_git(tmp_path / "bin", body)
    snapshots = repo.open()
    monkeypatch.setattr(git_module, "_PATIENCE", 0.3)
    with pytest.raises(GitStoppedError, match="git status: timed out after 0"):
        snapshots.take("r1", "0")
    (pid,) = note.read_text().split()
    until(lambda: not alive(int(pid)), "the end of the git that hung")


def test_error_of_git_is_one_line_without_control_codes(repo: Repo, tmp_path: Path) -> None:
    body = r"printf 'fatal: \033[2Jone\n\ttwo %01000d\n' 5 >&2; exit 128"
    repo.environ["PATH"] = fake_git(tmp_path / "bin", body)
    with pytest.raises(GitError) as found:
        Git(repo.path, Tools(repo.environ))("status")
    message = str(found.value)
    assert message.startswith("git status: fatal: one two 000")
    assert message.endswith("0005")
    assert len(message) < 700


# -- kill ----------------------------------------------------------------------------------

LOOP = """
import os, sys
from pathlib import Path
from rooda.workspace.snapshots import shadow_index
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.tools import Tools
top = Path(sys.argv[1])
snapshots = Snapshots.open(top, top / ".rooda", Tools())
for number in range(10_000):
    for name in ("a.txt", f"new{number % 7}", f"src/{number % 3}.c"):
        (top / name).write_text(str(number))
    snapshots.take("r1", str(number))
    print(number, flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_snapshots_survive_a_kill_at_any_moment(repo: Repo, seed: int) -> None:
    chance = random.Random(seed)
    git_before = repo.git_files()
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(repo.path)],
            env=repo.environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        numbers = [int(child.stdout.readline()) for _ in range(3)]
        time.sleep(chance.uniform(0, 0.15))  # the kill comes at a random moment
        child.send_signal(signal.SIGKILL)
        numbers += map(int, child.stdout.read().split())
        child.wait()
        child.stdout.close()
        snapshots = repo.open()
        after = snapshots.take("r2", "0")
        assert repo.files_of(after) == kept(repo)
        assert {str(number) for number in numbers} <= {*snapshots.names("r1")}
        repo.write("a.txt", "after that")
        assert snapshots.take("r2", "1").changes == Changes(modified=("a.txt",))
        snapshots.restore("r1", str(numbers[-1]), "u1")
        assert (repo.path / "a.txt").read_text() == str(numbers[-1])
        repo.git("fsck", "--strict")
    assert repo.git_files() == git_before


# -- another repository in place of the one that the run started in ---------------------------

REPLACED: dict[str, str] = {
    "a link as .git": "mv .git ../gone; ln -s ../other/.git .git",
    "a file as .git": "mv .git ../gone; echo gitdir: ../other/.git > .git",
    "a new repository": "rm -rf .git; git init -q; git add -A; git commit -qm other",
    "a copy": "cp -r .git ../copy; rm -rf .git; mv ../copy .git",
    "a link as the objects": "mv .git/objects ../gone; ln -s ../../other/.git/objects .git/objects",
    "a link as the refs": "mv .git/refs ../gone; ln -s ../../other/.git/refs .git/refs",
    "a link as refs/rooda": "rm -r .git/refs/rooda; ln -s ../../../other/.git/refs .git/refs/rooda",
    "a common folder elsewhere": "echo ../../other/.git > .git/commondir",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", some_long(REPLACED, "a link as .git", "a common folder elsewhere"))
def test_nothing_is_written_to_a_repository_that_took_the_place_of_the_first(
    repo: Repo, tmp_path: Path, kind: str
) -> None:
    repo.sh("git clone -q . ../other")
    other = Repo(tmp_path / "other", repo.environ)
    snapshots = repo.open()
    snapshots.take("r", "0")
    snapshots.take("r", "1")  # its ref waits for the next tree
    (repo.path / "a.txt").write_text("changed\n")
    repo.sh(REPLACED[kind])
    before = other.git_files()
    here = walk(repo.path / ".git") if (repo.path / ".git").is_dir() else {}

    with pytest.raises(GitStoppedError, match=r"replaced|is a link now"):
        snapshots.take("r", "2")
    with contextlib.suppress(GitStoppedError):  # nothing waits on a slow machine
        snapshots.flush()
    assert other.git_files() == before
    if here:
        assert walk(repo.path / ".git") == here, "nor to the new one at the same place"


def test_later_run_writes_nothing_through_a_link_that_an_agent_left_as_refs_rooda(
    repo: Repo, tmp_path: Path
) -> None:
    repo.sh("git clone -q . ../other")
    other = Repo(tmp_path / "other", repo.environ)
    repo.open().take("r", "0")
    repo.sh(REPLACED["a link as refs/rooda"])
    before = other.git_files()
    with pytest.raises(GitStoppedError, match=r"refs/rooda is a link now that leads elsewhere"):
        repo.open().take("later", "0")
    assert other.git_files() == before


@pytest.mark.parametrize("left", ["", "ln -s work work"])
def test_folder_that_is_gone_is_a_trouble_of_the_scan_and_no_error(repo: Repo, left: str) -> None:
    tracker = FileChangeTracker(repo.path, Tools(repo.environ), run="r", keep=True)
    tracker.snapshot("0")
    repo.sh(f"cd ..; mv work moved; {left}")
    for _ in range(2):
        assert "deleted or replaced during the run" in tracker.scan("1").trouble
        tracker.forget()


def test_changes_are_still_found_after_the_repository_was_replaced(repo: Repo) -> None:
    tracker = FileChangeTracker(repo.path, Tools(repo.environ), run="r", keep=True)
    tracker.snapshot("0")
    repo.sh("rm -rf .git; git init -q")
    (repo.path / "a.txt").write_text("changed\n")

    assert "replaced during the run" in tracker.scan("1").trouble
    tracker.snapshot()
    (repo.path / "a.txt").write_text("again\n")
    seen = tracker.scan("2")
    assert seen.changes is not None
    assert seen.changes.modified == ("a.txt",)
    assert seen.commit is None
    assert not (repo.path / ".git/refs/rooda").exists()
