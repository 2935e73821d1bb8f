"""Whole runs of rooda in the sandbox, as root and as an ordinary user, and what is refused."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from support.children import Nursery
from support.gitrepo import git
from support.sandboxes import ordinary_user, require_bwrap, until_gone
from support.workspace import PROCEDURE, Workspace, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

AGENT = """\
cat > /dev/null
(cat ~/.ssh/id; echo x >> .git/hooks/x; touch ../outside) 2> tried
echo work > made.txt
[ -n "$SECRET$TOKEN" ] && echo "$SECRET$TOKEN" > leaked
echo '<promise>SUCCESS</promise>'
"""
CONFIG = f"""
loop:
  sandbox: {{kind: bwrap, env: [ALLOWED]}}
  verify: test -f made.txt -a -z "$SECRET" -a "$ALLOWED" = yes && ! cat ~/.ssh/id
  git: {{commit: true, push: true}}
  hooks: {{post_iteration: [touch ../outside-of-hook; echo "$ALLOWED" > ~/hook]}}
{PROCEDURE}
"""


def repository(workspace: Workspace) -> Path:
    """Make a repository with hooks and a remote; return the remote."""
    remote = workspace.path.parent / "remote.git"
    git(remote, "init", "-q", "--bare", "-b", "main")
    tree = workspace.path
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "user.name", "A User")
    git(tree, "config", "user.email", "user@example.org")
    git(tree, "remote", "add", "origin", str(remote))
    for name in ("pre-commit", "pre-push"):
        hook = tree / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> ~/hooks-of-git\n")
        hook.chmod(0o755)
    (workspace.home / ".ssh").mkdir()
    (workspace.home / ".ssh/id").write_text("key")
    return remote


@pytest.mark.real
def test_agent_verify_hooks_and_commit_run_inside_and_the_push_outside(
    workspace: Workspace,
) -> None:
    require_bwrap()
    remote = repository(workspace)
    workspace.config(CONFIG)
    command = workspace.agent(AGENT)
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-qm", "start")
    env = {"SECRET": "s3cret", "ALLOWED": "yes", "ROODA_LOOP_SANDBOX_TRUST": "true"}
    args = ("work", "--ai-cmd", command, "-n", "2", "--no-verify-baseline")
    done = workspace.rooda(*args, env=env, timeout=120)
    assert done.code == 0, done.err
    files = git(remote, "ls-tree", "--name-only", "main").splitlines()
    assert {"made.txt", "tried"} <= set(files)
    assert "leaked" not in files
    tried = (workspace.path / "tried").read_text()
    assert "No such file" in tried
    assert "Read-only file system" in tried
    assert not list(workspace.path.parent.glob("outside*"))
    assert not (workspace.path / ".git/commondir").exists()
    # The user's hook ran with the commit, inside; no hook ran with the push, outside.
    home = workspace.state / "home"
    assert (home / "hooks-of-git").read_text() == "pre-commit\n"
    assert (home / "hook").read_text() == "yes\n"
    assert not (workspace.home / "hooks-of-git").exists()


@pytest.mark.real
def test_commit_of_the_user_during_an_iteration_stays_and_that_of_the_agent_is_named(
    workspace: Workspace, nursery: Nursery
) -> None:
    require_bwrap()
    repository(workspace)
    tree = workspace.path
    script = (
        "echo agent > agent.txt; git add agent.txt; git commit -qm agent; echo up > up\n"
        "until test -e go; do sleep 0.1; done"
    )
    agent = workspace.agent(f"cat > prompt; if ! test -e up; then\n{script}\nfi")
    workspace.config(PROCEDURE)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "start", "--no-verify")
    args = ("work", "--ai-cmd", agent, "-n", "2", "--sandbox", "bwrap")
    running = nursery.start(workspace, *args)
    wait_for(tree / "up")
    (tree / "user.txt").write_text("user\n")
    git(tree, "add", "user.txt")
    git(tree, "commit", "-qm", "user", "--no-verify")
    (tree / "go").touch()
    done = running.finish(60)
    assert git(tree, "log", "--format=%s", "main").splitlines() == ["user", "start"]
    (kept,) = git(
        tree, "for-each-ref", "--format=%(refname:short)", "refs/heads/rooda-kept/*"
    ).splitlines()
    assert git(tree, "log", "--format=%s", kept).splitlines() == ["agent", "start"]
    assert (tree / "agent.txt").read_text() == "agent\n"
    assert "Kept as they are: commits of the agent" in done.err
    assert kept in done.err
    assert kept in (tree / "prompt").read_text(), "the next prompt says so"


@pytest.mark.real
@pytest.mark.parametrize("again", [("work", "--branch", "night"), ("resume",)])
def test_run_after_a_killed_one_takes_over_its_commits_before_it_looks_for_uncommitted_files(
    workspace: Workspace, nursery: Nursery, again: tuple[str, ...]
) -> None:
    require_bwrap()
    repository(workspace)
    tree = workspace.path
    script = "echo agent >> a; git commit -qam agent; echo up > up; sleep 60"
    agent = workspace.agent(f"cat > /dev/null; if ! test -e up; then {script}; fi; date > made")
    (tree / "a").write_text("a\n")
    workspace.config(PROCEDURE)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "start", "--no-verify")
    args = ("--ai-cmd", agent, "-n", "1", "--sandbox", "bwrap", "--commit", "--no-push")
    running = nursery.start(workspace, "work", *args)
    wait_for(tree / "up")
    running.signal(signal.SIGKILL)
    running.finish(60)
    assert git(tree, "log", "--format=%s").split() == ["start"]
    assert "uncommitted" not in workspace.rooda("work", "--dry-run", *args).out
    outside = workspace.rooda("work", "--dry-run", *args, "--sandbox", "none").out
    assert "the agent's commits" in outside
    done = workspace.rooda(*again, *args, timeout=120)
    assert done.code == 2, done.err
    subjects = git(tree, "log", "--format=%s").splitlines()
    assert subjects[1:] == ["agent", "start"]
    assert git(tree, "log", "--format=%s", "main").splitlines()[-2:] == ["agent", "start"]
    assert git(tree, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.real
def test_refused_start_names_the_commits_of_a_killed_run_that_it_has_kept(
    workspace: Workspace, nursery: Nursery
) -> None:
    require_bwrap()
    repository(workspace)
    tree = workspace.path
    script = "echo agent > b; git add b; git commit -qm agent; echo up > up; sleep 60"
    agent = workspace.agent(f"cat > /dev/null; {script}")
    (tree / "a").write_text("a\n")
    workspace.config(PROCEDURE)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "start", "--no-verify")
    args = ("--ai-cmd", agent, "-n", "1", "--sandbox", "bwrap", "--commit", "--no-push")
    running = nursery.start(workspace, "work", *args)
    wait_for(tree / "up")
    running.signal(signal.SIGKILL)
    running.finish(60)
    git(tree, "commit", "-q", "--allow-empty", "-m", "user", "--no-verify")
    (tree / "a").write_text("changed by the user\n")
    done = workspace.rooda("work", *args, timeout=120)
    assert done.code == 1
    assert "uncommitted" in done.err
    (kept,) = git(
        tree, "for-each-ref", "--format=%(refname:short)", "refs/heads/rooda-kept/*"
    ).splitlines()
    assert kept in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_signal_to_rooda_leaves_no_process_in_the_sandbox(
    workspace: Workspace, nursery: Nursery, end: signal.Signals
) -> None:
    require_bwrap()
    mark = f"65.{os.getpid()}"
    script = f"trap 'echo got > marker; exit' TERM; setsid sleep {mark} & echo up > up; wait"
    args = ("work", "--ai-cmd", workspace.agent(script), "-n", "1", "--sandbox", "bwrap")
    running = nursery.start(workspace, *args)
    wait_for(workspace.path / "up")
    running.signal(end)
    assert running.finish(60).code == (130 if end is signal.SIGTERM else -end)
    until_gone(f"sleep {mark}")
    assert wait_for(workspace.path / "marker") == "got\n"
    again = workspace.work(workspace.agent("echo '<promise>SUCCESS</promise>'"), "-n", "1")
    assert again.code == 0


@pytest.mark.real
def test_ordinary_user_has_the_same_sandbox() -> None:
    require_bwrap()
    with tempfile.TemporaryDirectory(prefix="rooda-user-") as name:
        user = ordinary_user(Path(name))
        user.sh(
            "git init -q; git config user.name U; git config user.email u@example.org; "
            "mkdir ~/.ssh; echo key > ~/.ssh/id"
        )
        work = Path(name) / "work"
        (work / "rooda-config.yml").write_text(PROCEDURE)
        (work / "agent.sh").write_text(f"#!/bin/sh\n{AGENT}")
        (work / "agent.sh").chmod(0o755)
        args = ("--ai-cmd", f"{work}/agent.sh", "-n", "1", "--sandbox", "bwrap", "--commit")
        done = user.rooda("work", *args)
        assert done.returncode == 0, done.stderr
        tried = (work / "tried").read_text()
        assert "No such file" in tried
        assert "Read-only file system" in tried
        assert not (Path(name) / "outside").exists()
        assert (work / "made.txt").exists()


@pytest.mark.real
def test_dry_run_says_which_sandbox_is_on_and_what_none_means(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    plain = workspace.work("true", "--dry-run")
    assert "Sandbox: none: the agent runs as you: it can read and change all your" in plain.out
    require_bwrap()
    held = workspace.work("true", "--dry-run", "--sandbox", "bwrap", "--no-sandbox-network")
    assert held.code == 0
    assert "Sandbox: bwrap: the agent, verify, hooks and commits see the work tree" in held.out
    assert "without the network" in held.out
    git(workspace.path, "init", "-q")
    own = workspace.work("true", "--dry-run", "--sandbox", "bwrap")
    assert "git: programs have a git folder of their own" in own.out
    (workspace.path / ".git/modules/x").mkdir(parents=True)
    shared = workspace.work("true", "--dry-run", "--sandbox", "bwrap")
    assert "git: programs work in .git itself" in shared.out
    assert "read-only: there are submodules" in shared.out
    assert "with sandbox bwrap, programs work in .git itself" in workspace.rooda("doctor").out


@pytest.mark.real
def test_settings_that_contradict_each_other_are_errors_before_the_start(
    workspace: Workspace,
) -> None:
    require_bwrap()
    workspace.config(PROCEDURE)
    cases = {
        ("--sandbox", "command"): "sandbox command needs a command",
        ("--sandbox", "bwrap", "--keep-processes", "x"): "no process outlives the sandbox",
        ("--sandbox", "bwrap", "--sandbox-readable", "nowhere"): "readable does not exist",
        ("--sandbox-readable", "."): "sandbox.readable has no effect without a sandbox",
    }
    for flags, message in cases.items():
        done = workspace.work("true", "--dry-run", *flags)
        assert done.code == 1
        assert message in done.out + done.err
    git(workspace.path, "init", "-q")
    git(workspace.path, "config", "user.name", "U")
    git(workspace.path, "config", "user.email", "u@example.org")
    git(workspace.path, "config", "commit.gpgsign", "true")
    signed = workspace.work("true", "--dry-run", "--sandbox", "bwrap", "--commit")
    assert signed.code == 1
    assert "git config commit.gpgsign false" in signed.out + signed.err


@pytest.mark.real
def test_command_runs_before_every_program(workspace: Workspace) -> None:
    prefix = workspace.write("prefix.sh", '#!/bin/sh\necho "$1" >> "$2/seen"; shift 2; exec "$@"\n')
    prefix.chmod(0o755)
    workspace.config(
        f"loop:\n  sandbox: {{kind: command, command: '{prefix} in {{workspace}}'}}\n"
        f"  verify: 'true'\n{PROCEDURE}"
    )
    done = workspace.work(workspace.agent("echo '<promise>SUCCESS</promise>'"), "-n", "1")
    assert done.code == 0, done.err
    assert (workspace.path / "seen").read_text() == "in\n" * 3  # baseline, agent, verify


@pytest.mark.real
def test_clean_check_runs_inside_with_the_copy_and_without_the_work_tree(
    workspace: Workspace,
) -> None:
    require_bwrap()
    repository(workspace)
    tree = workspace.path
    clean = f"cat made.txt; test ! -e {tree} && test -f made.txt && ! cat ~/.ssh/id"
    workspace.config(
        f"loop:\n  sandbox: bwrap\n  verify: {{clean: {clean!r}}}\n"
        f"  git: {{commit: true}}\n{PROCEDURE}\n"
    )
    command = workspace.agent(AGENT)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "start")
    done = workspace.rooda("work", "--ai-cmd", command, "-n", "1", timeout=120)
    assert done.code == 0, done.err
    assert "Verified in a clean copy after " in done.err
    assert "made.txt" in git(tree, "ls-tree", "--name-only", "HEAD")
    assert not (tree / ".git/rooda-clean-index").exists()
