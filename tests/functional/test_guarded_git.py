"""Git under a hostile agent, through the installed command.

The agent changes the repository, plants programs, and leaves files that hold git up. rooda must
publish nothing that belongs to another repository, run no program of the agent's, answer signals,
and keep its time limits.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

from support.children import until
from support.finished import Finished
from support.gitrepo import stored
from support.gitwork import GitWork, git_work
from support.ralphs import COMPLETE, ralph_work
from support.workspace import Workspace, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


# -- another repository -------------------------------------------------------------------------

PRIVATE = "private.key"


def make_repository_above(work: GitWork) -> Path:
    """A repository of the user's around the work tree, with a file that git does not have yet."""
    above = work.path.parent
    work.git("init", "-q", cwd=above)
    work.git("remote", "add", "origin", str(above / "above.git"), cwd=above)
    work.git("init", "-q", "--bare", str(above / "above.git"), cwd=above)
    (above / "public.txt").write_text("old\n")
    work.git("add", "public.txt", cwd=above)
    work.git("commit", "-q", "-m", "above", cwd=above)
    (above / PRIVATE).write_text("secret\n")
    work.env["GIT_CEILING_DIRECTORIES"] = ""
    return above


CHANGES = {
    "deleted": "rm -rf .git",
    "HEAD emptied": ": > .git/HEAD",
    "HEAD deleted": "rm .git/HEAD",
    "file that points elsewhere": "rm -rf .git; echo 'gitdir: ../.git' > .git",
    "link that points elsewhere": "rm -rf .git; ln -s ../.git .git",
    "worktree moved": "git config core.worktree ../..",
    "common folder moved": "echo ../../.git > .git/commondir",
    "made again": 'rm -rf .git; git init -q; git remote add origin "$REMOTE"',
    "refs linked": "rm -rf .git/refs; ln -s ../../.git/refs .git/refs",
    "branches linked": "rm -rf .git/refs/heads; ln -s ../../../.git/refs/heads .git/refs/heads",
    "objects linked": "rm -rf .git/objects; ln -s ../../.git/objects .git/objects",
    "index linked": "rm -f .git/index; ln -s ../../.git/index .git/index",
    "logs linked": "rm -rf .git/logs; ln -s ../../.git/logs .git/logs",
    "config broken": "echo '[broken' >> .git/config",
    "objects deleted": "rm -rf .git/objects .git/refs",
}


FAST = ("deleted", "HEAD emptied", "file that points elsewhere")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(deed, id=name, marks=[] if name in FAST else [pytest.mark.long])
        for name, deed in CHANGES.items()
    ],
)
def test_a_repository_that_the_agent_changed_is_neither_committed_nor_pushed(
    work: GitWork, deed: str
) -> None:
    above = make_repository_above(work)
    before = work.git("rev-parse", "HEAD", cwd=above)
    agent = work.agent(f"REMOTE='{work.remote}'; echo new > new.txt; {deed}; {SUCCESS}")
    done = work.work(agent, "-n", "1", "--commit", "--push")
    assert done.code != 0
    assert "The work could not be committed" in done.err
    assert "git" in done.err
    assert work.git("rev-parse", "HEAD", cwd=above) == before
    assert work.git("diff", "--cached", "--name-only", cwd=above) == ""
    assert work.git("for-each-ref", cwd=above / "above.git") == ""
    assert work.git("for-each-ref", cwd=work.remote) == ""


@pytest.mark.real
def test_the_message_says_that_the_repository_changed(work: GitWork) -> None:
    make_repository_above(work)
    done = work.work(work.agent(f"rm -rf .git; {SUCCESS}"), "-n", "1", "--commit", "--push")
    assert f"the repository changed: {work.path / '.git'} was deleted or replaced" in done.err
    assert "nothing was pushed" in done.err


@pytest.mark.real
def test_resume_commits_only_to_the_repository_in_which_the_run_started(work: GitWork) -> None:
    work.write("sub/file", "old\n")
    work.commit()
    start = GitWork(work.path / "sub", work.home, work.env)
    agent = work.agent("echo new >> file; [ -e made ] || { touch made; git init -q; }")
    first = start.work(agent, "-n", "1", "--commit")
    made = start.path / ".git"
    assert "Reason:\n    | the repository changed" in first.err, first.err
    assert f"Try: Move {made} away" in first.err
    assert "Git says" not in first.err
    for flags in ((), ("--dry-run",)):
        refused = start.rooda("resume", "-n", "2", *flags)
        assert refused.code == 1
        said = " ".join((refused.err + refused.out).split())
        assert f"started in the repository {work.path / '.git'}" in said
        assert f"git now works with {made}" in said
        assert f"Move {made} away, then resume" in said
    assert work.try_git("rev-parse", "HEAD", cwd=start.path).returncode != 0, "no commit there"
    resumed = start.rooda("resume", "-n", "2", "--no-commit")
    assert resumed.code == 2, "rooda writes nothing there"
    assert work.git("for-each-ref", cwd=start.path) == ""
    shutil.rmtree(made)
    moved = work.path.rename(work.path.with_name("moved"))
    there = GitWork(moved / "sub", work.home, work.env)
    done = there.rooda("resume", "-n", "3", "--commit", "--git-dirty", "commit")
    assert done.code == 2, done.err
    assert there.subjects()[-1] == "work: iteration 3"


# What leads git to the repository `other`, although `.git` is a folder in its place.
LED_ELSEWHERE = {
    "link in place of the refs": "rm -r .git/refs; ln -s {other}/refs .git/refs",
    "link in place of the objects": "rm -r .git/objects; ln -s {other}/objects .git/objects",
    "link in place of the index": "rm .git/index; ln -s {other}/index .git/index",
    "commondir": "echo {other} > .git/commondir",
    "copy": "rm -r .git; cp -a {other} .git",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("way", LED_ELSEWHERE)
def test_resume_and_restore_write_nothing_to_a_repository_that_git_was_led_to(
    work: GitWork, way: str
) -> None:
    other = GitWork(work.path.parent / "other", work.home)
    other.path.mkdir()
    other.git("init", "-q", "-b", "main")
    other.write("a", "x")
    other.commit()
    assert work.work(work.agent("date +%N >> kept.txt"), "--max-iterations", "1").code == 2
    assert work.rooda("restore", "0").code == 0
    command = LED_ELSEWHERE[way].format(other=other.path / ".git")
    subprocess.run(command, shell=True, cwd=work.path, check=True)
    before = {path: path.lstat().st_mtime_ns for path in (other.path / ".git").rglob("*")}
    for words in (("restore", "1"), ("restore", "u1")):
        assert work.rooda(*words).code == 0, "snapshots need no repository"
    refused = work.rooda("resume", "--commit", "-n", "2")
    assert refused.code == 1, refused.err
    assert work.rooda("resume", "-n", "2").code == 2
    after = {path: path.lstat().st_mtime_ns for path in (other.path / ".git").rglob("*")}
    assert after == before


@pytest.mark.real
def test_ralph_does_not_commit_the_repository_above(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.plan()
        work.commit()
        above = make_repository_above(work)
        before = work.git("rev-parse", "HEAD", cwd=above)
        work.agent_does(f"echo new > new.txt; rm -rf .git; {COMPLETE}")
        done = work.ralph("build", "1")
        assert done.code != 0
        assert work.git("rev-parse", "HEAD", cwd=above) == before
        assert work.git("for-each-ref", cwd=above / "above.git") == ""


REMOTES = {
    "receive-pack": "git config remote.origin.receivepack 'git-receive-pack {other}; true'",
    "two addresses": "git remote set-url --add --push origin {other}",
    "line break": """git config remote.origin.url '{remote}
{other}'""",
    "option": "git config 'remote.--repo={other}.url' {remote}; "
    "git config branch.main.pushRemote '--repo={other}'",
    "ssh": "git config core.sshCommand 'touch {other}/ran; false'",
    "url": "git remote set-url origin {other}",
    "push url": "git config remote.origin.pushurl {other}",
    "rewritten": "git config url.{other}.pushInsteadOf {remote}",
    "push default": "git config remote.pushDefault {other}",
    "another remote": "git remote add other {other}; git config branch.main.pushRemote other",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("deed", REMOTES.values(), ids=REMOTES)
def test_a_push_goes_to_no_address_that_the_agent_has_set(work: GitWork, deed: str) -> None:
    other = work.path.parent / "other.git"
    work.git("init", "-q", "--bare", str(other))
    changed = deed.format(other=other, remote=work.remote)
    agent = work.agent(f"echo new > new.txt; {changed}; {SUCCESS}")
    done = work.work(agent, "-n", "1", "--commit", "--push")
    assert work.git("for-each-ref", cwd=other) == ""
    assert "nothing was pushed" in done.err or "could not be committed" in done.err
    assert not (other / "ran").exists()


# -- planted programs ---------------------------------------------------------------------------


def planted(work: GitWork, *names: str) -> tuple[str, Path]:
    """What an agent does to plant programs in the work tree's own folder of PATH; their marker."""
    marker = work.marker("planted-was-run")
    body = f'#!/bin/sh\\necho "$0" "$@" >> {marker}\\nsleep 600 &\\nexit 0\\n'
    folder = work.path / ".venv/bin"
    folder.mkdir(parents=True)
    work.env["PATH"] = f"{folder}:{os.environ['PATH']}"
    lines = [f"printf '{body}' > {folder / name}; chmod +x {folder / name}" for name in names]
    return "; ".join(lines), marker


PROGRAMS = ("git", "sh", "bash", "env", "true", "cat", "python", "python3", "ssh", "gpg", "ps")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flags", [(), ("--commit", "--push"), ("--verify", "exit 0")])
def test_a_program_that_the_agent_planted_is_not_run(work: GitWork, flags: tuple[str, ...]) -> None:
    plant, marker = planted(work, *PROGRAMS)
    work.settings(hooks={"post_iteration": ["exit 0"], "loop_end": ["exit 0"]})
    agent = work.agent(f"PATH=/usr/bin:/bin; {plant}; date +%s%N > work.txt")
    done = work.work(agent, "-n", "2", *flags)
    assert done.code == 2, done.err
    assert len(work.record()) == 2
    assert not marker.exists(), marker.read_text()


@pytest.mark.long
def test_no_reading_command_runs_a_planted_program(work: GitWork) -> None:
    plant, marker = planted(work, *PROGRAMS, "claude", "codex", "node", "gemini", "less")
    assert work.work(work.agent(f"{plant}; echo 1 > one; {SUCCESS}"), "-n", "1").code == 0
    for words in (
        ("doctor",),
        ("doctor", "--json"),
        ("show",),
        ("history",),
        ("why",),
        ("diff", "1"),
        ("restore", "0"),
        ("config", "check"),
        ("work", "--commit", "--push", "--dry-run", "--ai-cmd", "true"),
    ):
        work.rooda(*words, env={"GIT_PAGER": "/bin/cat"})
        assert not marker.exists(), (words, marker.read_text())


@pytest.mark.real
def test_doctor_says_that_it_did_not_run_a_program_of_the_work_tree(work: GitWork) -> None:
    folder = work.path / ".venv/bin"
    claude = work.write(
        ".venv/bin/claude", f"#!/bin/sh\ntouch {work.marker('was-run')}\necho 1.0\n"
    )
    claude.chmod(0o755)
    done = work.rooda("doctor", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert not work.marker("was-run").exists()
    assert "it is in the work tree" in done.out


@pytest.mark.git
def test_a_git_that_exists_only_in_the_work_tree_is_not_used(work: GitWork) -> None:
    marker = work.marker("was-run")
    work.write("bin/git", f"#!/bin/sh\necho x > {marker}\n").chmod(0o755)
    env = {"PATH": str(work.path / "bin")}
    done = work.work("/bin/true", "-n", "1", "--commit", env=env)
    assert done.code == 1
    assert "git is not installed" in done.err
    assert not marker.exists()


# -- undo ---------------------------------------------------------------------------------------


def undo_command(done: Finished) -> list[str]:
    assert done.code == 0, done.err
    return done.out.splitlines()[-1].removeprefix("To undo: rooda ").split()


@pytest.mark.long
def test_an_undo_outlives_the_run_that_was_restored(work: GitWork) -> None:
    work.settings(history={"keep_runs": 1})
    work.work(work.agent("echo one > one"), "-n", "1")
    work.write("mine.txt", "the user's own work\n")
    restored = work.rooda("restore", "0")
    assert not (work.path / "mine.txt").exists()
    for _ in range(3):  # each start prunes the runs before
        work.work(work.agent("echo two > two"), "-n", "1")
    assert work.rooda(*undo_command(restored)).code == 0
    assert (work.path / "mine.txt").read_text() == "the user's own work\n"


@pytest.mark.real
def test_a_restore_names_the_day_until_which_it_can_be_undone(work: GitWork) -> None:
    work.work(work.agent("echo one > one"), "-n", "1")
    today = datetime.now().astimezone()
    done = work.rooda("restore", "0")
    days = {f"{today + timedelta(days=30 + late):%Y-%m-%d}" for late in (0, 1)}
    assert any(f"kept until {day}" in done.out for day in days)


@pytest.mark.real
def test_an_undo_can_itself_be_undone_and_old_ones_are_deleted(work: GitWork) -> None:
    work.work(work.agent("echo one > one"), "-n", "1")
    first = undo_command(work.rooda("restore", "0"))
    second = undo_command(work.rooda(*first))
    assert (work.path / "one").exists()
    os.utime(work.state / "git/refs/rooda/undo/u1", (10**9, 10**9))
    third = undo_command(work.rooda(*second))
    assert not (work.path / "one").exists()
    words = ("for-each-ref", "--format=%(refname:lstrip=3)", "refs/rooda/undo")
    names = stored(work.path, *words).split()
    assert names == [second[1], third[1]]


# -- what holds git up --------------------------------------------------------------------------


def gits(work: GitWork) -> list[psutil.Process]:
    """The git processes that work in this work tree."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "git" and process.cwd() == str(work.path):
                found.append(process)
        except psutil.Error:
            continue
    return found


PIPE = "mkdir -p sub; mkfifo sub/.gitignore; echo x > sub/file"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_whose_git_hangs(work: GitWork, number: signal.Signals) -> None:
    running = work.begin(work.agent(PIPE), "-n", "3", "--commit")
    until(lambda: bool(gits(work)) and (work.path / "sub/file").exists(), "a git that hangs")
    running.signal(number)
    done = running.finish(timeout=40)
    assert done.code == 130
    assert "Interrupted" in done.err or "interrupted" in done.err
    until(lambda: not gits(work), "the end of git")


@pytest.mark.real
def test_git_does_not_outlive_a_rooda_that_was_killed(work: GitWork) -> None:
    running = work.begin(work.agent(PIPE), "-n", "3", "--commit")
    until(lambda: bool(gits(work)) and (work.path / "sub/file").exists(), "a git that hangs")
    running.process.kill()
    running.process.communicate()
    until(lambda: not gits(work), "the end of git")


PIPES = ("HEAD", "config", "index", "packed-refs", "refs/heads/main", "objects/info/alternates")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.long] if one != "HEAD" else []) for one in PIPES]
)
def test_a_pipe_in_the_git_folder_does_not_hold_a_run_up(work: GitWork, name: str) -> None:
    agent = work.agents(f"echo 1 > one; rm -f .git/{name}; mkfifo .git/{name}", "echo 2 > two")
    done = work.begin(agent, "-n", "3", "--commit", "--failure-threshold", "5").finish(timeout=50)
    assert done.code in (1, 2), done.err
    assert work.starts == 3
    assert f".git/{name} is a named pipe" in done.err


@pytest.mark.real
def test_a_pipe_in_place_of_gitignore_does_not_hold_a_run_with_commits_up(work: GitWork) -> None:
    agent = work.agents("echo 1 > one; mkfifo .gitignore", "echo 2 > two")
    done = work.begin(agent, "-n", "2", "--commit").finish(timeout=50)
    assert work.starts == 2
    assert ".gitignore is a named pipe" in done.err
    again = work.begin(agent, "-n", "1", "--commit").finish(timeout=50)
    assert again.code == 1
    assert ".gitignore is a named pipe" in again.err
    assert work.starts == 2


@pytest.mark.real
def test_a_device_in_the_git_folder_does_not_hold_a_run_up(work: GitWork) -> None:
    agent = work.agent("mkdir -p .git/objects/info; ln -sf /dev/zero .git/objects/info/alternates")
    done = work.begin(agent, "-n", "2", "--commit", "--failure-threshold", "5").finish(timeout=50)
    assert "is a device" in done.err


PLANTED_SETTINGS = {
    "fsmonitor": "git config core.fsmonitor {program}",
    "signer": "git config commit.gpgSign true; git config gpg.program {program}",
    "external diff": "git config diff.external {program}",
    "pager": "git config core.pager {program}",
    "signature": "git config log.showSignature true; git config gpg.program {program}",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("deed", PLANTED_SETTINGS.values(), ids=PLANTED_SETTINGS)
def test_a_program_that_the_agent_wrote_into_the_settings_is_not_run(
    work: GitWork, deed: str
) -> None:
    marker = work.marker("was-run")
    program = work.script("planted", f"echo x > {marker}; exit 1")
    agent = work.agent(f"date +%s%N > work.txt; {deed.format(program=program)}")
    work.work(agent, "-n", "2", "--commit", "--failure-threshold", "5")
    for words in (("diff", "1"), ("restore", "0"), ("show",), ("doctor",)):
        work.rooda(*words)
    assert not marker.exists()


@pytest.mark.real
def test_max_duration_ends_a_run_whose_git_hangs(work: GitWork) -> None:
    running = work.begin(work.agent(PIPE), "-n", "3", "--commit", "--max-duration", "2s")
    done = running.finish(timeout=40)
    assert "max_duration" in done.err or "Maximum duration" in done.err
    assert gits(work) == []


@pytest.mark.real
def test_a_commit_that_hangs_ends_with_the_run(work: GitWork) -> None:
    work.settings(git={"snapshots": False}, track_file_changes=False)
    agent = work.agent(f"{PIPE}; {SUCCESS}")
    running = work.begin(agent, "-n", "1", "--commit", "--max-duration", "3s")
    done = running.finish(timeout=40)
    assert done.code != 0
    assert "could not be committed" in done.err
    assert gits(work) == []


@pytest.mark.real
def test_a_signal_before_the_first_iteration_ends_a_git_that_hangs(work: GitWork) -> None:
    work.write("sub/file", "x")
    os.mkfifo(work.path / "sub/.gitignore")
    running = work.begin(work.agent(f"touch {work.marker('agent')}"), "-n", "1", "--commit")
    until(lambda: bool(gits(work)), "a git that hangs")
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=40).code == 130
    assert not work.marker("agent").exists()
    until(lambda: not gits(work), "the end of git")


@pytest.mark.real
def test_a_huge_tracked_file_is_left_out_of_the_snapshot(work: GitWork) -> None:
    agent = work.agents("truncate -s 1T README", f"echo 2 > two; {SUCCESS}")
    done = work.work(agent, "-n", "2")
    assert done.code == 0, done.err
    first, second = work.record()
    assert first["result"]["files_modified"] == ["README"]
    assert second["result"]["files_created"] == ["two"]
    assert "README" in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("moment", ["pre_iteration", "post_iteration", "on_failure"])
def test_max_duration_ends_a_hook(work: GitWork, moment: str) -> None:
    sign = work.marker("hook")
    work.settings(hooks={moment: [f"echo $$ > {sign}; exec sleep 600"]})
    running = work.begin(work.agent("exit 1"), "-n", "1", "--max-duration", "2s")
    pid = int(wait_for(sign))
    done = running.finish(timeout=40)
    assert "max_duration" in done.err
    assert not psutil.pid_exists(pid)


@pytest.mark.real
def test_max_duration_ends_verify(work: GitWork) -> None:
    sign = work.marker("verify")
    check = f"echo $$ > {sign}; exec sleep 600"
    running = work.begin(work.agent(SUCCESS), "-n", "1", "--verify", check, "--max-duration", "2s")
    pid = int(wait_for(sign))
    done = running.finish(timeout=40)
    assert "max_duration" in done.err
    assert done.code != 0
    assert not psutil.pid_exists(pid)
