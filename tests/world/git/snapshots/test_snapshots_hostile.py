"""Snapshots while an agent damages the files, the disk is full, or the process is killed."""

import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rooda.loop.tracker import FileChangeTracker
from rooda.world.git import git as git_module
from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.snapshots.tree_changes import Changes
from rooda.world.tools import Tools
from support.children import until
from support.faults import powerless, small_disk
from support.gitrepo import Repo, repository, walk
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


# -- damage to the user's repository -------------------------------------------------------

LOSS = {
    "no repository": "rm -rf .git",
    "another repository": "rm -rf .git; git init -q; git add -A; git commit -qm other",
    "no objects": "rm -rf .git/objects; mkdir .git/objects",
    "a link as .git": "mv .git ../gone; ln -s ../other/.git .git",
    "a file as .git": "mv .git ../gone; echo gitdir: ../other/.git > .git",
    "a link as the refs": "mv .git/refs ../gone; ln -s ../../other/.git/refs .git/refs",
    "a common folder elsewhere": "echo ../../other/.git > .git/commondir",
    "a pipe as HEAD": "rm .git/HEAD; mkfifo .git/HEAD",
    "a pipe as the index": "rm .git/index; mkfifo .git/index",
    "a pipe as the settings": "rm .git/config; mkfifo .git/config",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", LOSS)
@pytest.mark.parametrize("is_next", [True, False], ids=["next process", "same process"])
def test_snapshots_continue_whatever_an_agent_does_to_the_repository(
    repo: Repo, kind: str, *, is_next: bool
) -> None:
    repo.sh("git clone -q . ../other")
    other = Repo(repo.path.parent / "other", repo.environ)
    before = kept(repo)
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("a.txt", "changed\n")
    repo.sh(LOSS[kind])
    theirs = other.git_files()
    if is_next:
        snapshots = repo.open()
    else:
        assert snapshots.take("r1", "1").changes == Changes(modified=("a.txt",))
    assert snapshots.restore("r1", "0", "u1").left_out == ()
    assert kept(repo) == before
    assert other.git_files() == theirs


def test_repository_that_is_gone_is_named_and_head_has_not_moved(repo: Repo) -> None:
    tracker = FileChangeTracker(
        repo.path, Tools(repo.environ), state=repo.state, run="r", keep=True
    )
    head = tracker.snapshot("0").head
    shutil.rmtree(repo.path / ".git")
    after = tracker.scan("1")
    assert (after.head, after.head_moved, after.changes) == (head, False, Changes())
    assert "can't read HEAD any more" in after.trouble


@pytest.mark.parametrize("left", ["", "ln -s work work"])
def test_folder_that_is_gone_is_a_trouble_of_the_scan_and_no_error(repo: Repo, left: str) -> None:
    tracker = FileChangeTracker(
        repo.path, Tools(repo.environ), state=repo.state, run="r", keep=True
    )
    tracker.snapshot("0")
    repo.sh(f"cd ..; mv work moved; {left}")
    for _ in range(2):
        assert str(repo.path) in tracker.scan("1").trouble
        tracker.forget()


def test_run_in_a_subfolder_is_restored_without_its_repository(repo: Repo) -> None:
    before = kept(repo)
    repo.open("src").take("r1", "0")
    repo.sh("rm -rf .git; rm a.txt; echo now >src/main.c")
    found = repo.open("src").restore("r1", "0", "u1")
    assert kept(repo) == before
    assert found.changes == Changes(created=("../a.txt",), modified=("main.c",))


# -- hostile files in the work tree --------------------------------------------------------

SCRIPT = """
import json, os, sys
from pathlib import Path
from rooda.world.git.git import GitError
from rooda.world.git.snapshots.store import SnapshotNotes
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.tools import Tools
top, state = map(Path, sys.argv[1:])
snapshots = Snapshots.open(top, state, Tools())
try:
    found = snapshots.take("r2", "0")
except GitError as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({"left_out": found.left_out, "tree": found.tree}))
"""


def taken(repo: Repo, *before: str) -> dict[str, Any]:
    """Return what another process prints about the snapshot that it takes."""
    command = [*before, sys.executable, "-c", SCRIPT, str(repo.path), str(repo.state)]
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
    names = repo.store("ls-tree", "-r", "--name-only", found["tree"]).split()
    assert names == [".gitignore", "src/main.c", "untracked.txt"]


def test_name_that_git_refuses_is_skipped_and_named(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    (repo.path / ".gitmodules").symlink_to("a.txt")
    repo.write("src/.GIT/config", "x")
    for number in range(20):
        repo.write(f"new/{number}", str(number))
    after = snapshots.take("r1", "1")
    assert after.left_out == (".gitmodules", "src/.GIT/")
    assert after.changes is not None
    assert len(after.changes.created) == 21


def test_pipes_in_place_of_files_that_git_reads_block_nothing(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for name in (".gitattributes", ".gitmodules", "src/.gitignore", "nested/.git/HEAD"):
        (repo.path / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(repo.path / name)
    repo.write("nested/x", "x")
    assert snapshots.take("r1", "1").changes == Changes(created=("nested/x",))


def test_names_of_a_forged_index_lead_nowhere(repo: Repo) -> None:
    repo.write("main.o", "tracked")
    repo.git("add", "-f", "main.o")
    (repo.path.parent / "secret.o").write_text("outside of the tree")
    blob = repo.git("hash-object", "-w", "main.o")
    index = repo.path / ".git/index"
    for name in ("aa/secret.o", "xgit/a.o", "/main.o"[1:]):
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    content = index.read_bytes().replace(b"aa/secret.o", b"../secret.o")
    content = content.replace(b"xgit/a.o", b".git/a.o")[:-20]
    index.write_bytes(content + hashlib.sha1(content).digest())
    assert "../secret.o" in repo.git("ls-files")
    found = repo.open().take("r1", "0")
    assert repo.files_of(found).keys() == {*kept(repo), "main.o"}


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


# -- the machine ---------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("place", ["git/objects/pack", "git/refs/rooda/r2", ""])
def test_read_only_store_is_an_error_and_nothing_changes(repo: Repo, place: str) -> None:
    before = powerless()
    snapshots = repo.open()
    first = snapshots.take("r1", "0")
    snapshots.take("r2", "first")
    repo.write("a.txt", "changed")
    files = walk(repo.path)
    (repo.state / place).chmod(0o555)
    found = taken(repo, *before)
    (repo.state / place).chmod(0o700)
    assert "ermission" in found["error"]
    assert "\n" not in found["error"]
    assert walk(repo.path) == files
    assert repo.open().tree_of("r1", "0") == first.tree


def test_full_disk_is_an_error_and_the_earlier_snapshots_stay(repo: Repo) -> None:
    workspace = Workspace(repo.path, Path(repo.environ["HOME"]))
    script = shlex.join([sys.executable, "-c", SCRIPT, str(repo.path), str(repo.path / ".rooda")])
    steps = (
        f"{script}; head -c 300000 /dev/urandom >data; {{ cat /dev/zero > fill.o || true; }} 2>&-;"
        f"{script}; rm fill.o; git --git-dir=.rooda/git fsck >&2 && {script}"
    )
    done = subprocess.run(
        [*small_disk(workspace, "1m", ":"), "sh", "-c", steps],
        env=repo.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    first, full, last = map(json.loads, done.stdout.splitlines())
    assert "o space left on device" in full["error"], done.stderr
    assert first["tree"] != last["tree"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_work_tree_of_another_user_has_snapshots_and_git_s_advice(repo: Repo) -> None:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 12345, 12345)
    snapshots = repo.open()
    first = snapshots.take("r1", "0")
    assert "safe.directory" in first.trouble
    assert "\n" not in first.trouble
    repo.write("a.txt", "changed\n")
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "a.txt").read_text() == "alpha\n"
    repo.environ |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(repo.path),
    }
    assert repo.open().take("r1", "1").head is not None


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
    body = f"case \"$*\" in *' check-ignore '*) echo $$ >> '{note}'; exec sleep 60;; esac"
    repo.environ["PATH"] = fake_git(tmp_path / "bin", body)
    snapshots = repo.open()
    monkeypatch.setattr(git_module, "_PATIENCE", 0.3)
    with pytest.raises(GitStoppedError, match="git check-ignore: timed out after 0"):
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
from rooda.world.git.snapshots.store import SnapshotNotes
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.tools import Tools
top, state = map(Path, sys.argv[1:])
snapshots = Snapshots.open(top, state, Tools())
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
            [sys.executable, "-c", LOOP, str(repo.path), str(repo.state)],
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
        repo.store("fsck", "--strict")
    assert repo.git_files() == git_before
