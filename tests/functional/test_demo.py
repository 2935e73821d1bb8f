"""`rooda demo`: a real run without an agent."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.finished import Finished
from support.workspace import Workspace


@pytest.fixture
def temporary(workspace: Workspace, tmp_path: Path) -> Path:
    """A folder for temporary files, to check which files are left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    workspace.env["TMPDIR"] = str(folder)
    return folder


def git(workspace: Workspace, folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=workspace.environ(),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def interrupted_at(
    workspace: Workspace, temporary: Path, name: str, env: dict[str, str | None] | None = None
) -> Finished:
    """Start the demo and press Ctrl+C as soon as its folder contains the file."""
    running = workspace.start("demo", env=env)
    try:
        end = time.monotonic() + 20
        while not list(temporary.glob(f"rooda-demo-*/{name}")):
            assert running.process.poll() is None, running.finish()
            assert time.monotonic() < end, f"{name} was never created"
            time.sleep(0.01)
        running.signal(signal.SIGINT)
        return running.finish()
    finally:
        running.process.kill()


@pytest.mark.long
def test_demo_shows_a_run_with_one_failure_looks_back_at_it_and_leaves_only_the_report(
    workspace: Workspace, temporary: Path
) -> None:
    done = workspace.rooda("demo", timeout=50)
    assert done.code == 0
    lines = [re.sub(r"\b\d+(\.\d+|m\d+)s", "Xs", line) for line in done.log]
    lines = [line for line in lines if line.startswith(("Starting", "Iteration", "Completed"))]
    assert lines == [
        "Starting procedure: tasks (max 5 iterations)",
        "Iteration 1/5 starting...",
        "Iteration 1/5 completed in Xs (success)",
        "Iteration 2/5 starting...",
        "Iteration 2/5 completed in Xs (success)",
        "Iteration 3/5 starting...",
        "Iteration 3/5 completed in Xs (failure, consecutive: 1/3)",
        "Iteration 4/5 starting...",
        "Iteration 4/5 completed in Xs (success)",
        "Completed: AI signaled SUCCESS (4 iterations, total: Xs)",
    ]
    assert re.search(
        r"^  Iteration timing: min=\S+, max=\S+, mean=\S+, stddev=\S+$", done.err, re.MULTILINE
    )
    assert "it\nis a script that needs no key and no network" in done.err
    assert "scripted agent" in done.out, "the agent says that it is a script"
    for words in ("show", "why 3", "diff 4"):
        assert f"\n$ rooda {words}\n" in done.out
    assert "greet_all(names) greets the first name too." in done.out
    assert "Hello, Ada! Hello, Alan!" in done.out, "what the check printed"
    assert '-    return " ".join(greet(name) for name in names[1:])\n' in done.out
    (page,) = temporary.iterdir()
    assert str(page) in done.out
    assert page.read_text().startswith("<!doctype html>")
    assert list(workspace.path.iterdir()) == [], "the current folder stays empty"


@pytest.mark.long
def test_demo_ignores_the_users_configuration_and_keep_keeps_its_folder(
    workspace: Workspace, temporary: Path
) -> None:
    wrong = "loop:\n  ai_cmd: /no/such/agent\n  failure_threshold: 1\n  log_level: error\n"
    workspace.config("this: is: no config\n")
    workspace.global_config(wrong)
    workspace.write(str(workspace.home / "elsewhere/rooda-config.yml"), wrong)
    env = {
        "ROODA_LOOP_AI_CMD": "/no/such/agent",
        "ROODA_LOOP_DEFAULT_MAX_ITERATIONS": "1",
        "ROODA_LOG_LEVEL": "error",
        "ROODA_LOOP_PRESET": "v1",
        "ROODA_LOOP_SIGNALS_SUCCESS": "NEVER",
        "ROODA_CONFIG_HOME": str(workspace.home / "elsewhere"),
    }
    done = workspace.rooda("demo", "--keep", env=env, timeout=50)
    assert done.code == 0
    assert done.log[-1].startswith("Completed: AI signaled SUCCESS (4 iterations, ")
    (folder,) = filter(Path.is_dir, temporary.iterdir())
    assert str(folder) in done.err, "rooda prints the folder"
    log = git(workspace, folder, "log", "--reverse", "--format=%s").splitlines()
    assert log[0] == "greet, and a list of tasks"
    assert len(log) == 4, "one commit for each good iteration"
    assert git(workspace, folder, "status", "--porcelain") == ""


def test_demo_without_git_prints_one_error_with_advice(
    workspace: Workspace, temporary: Path
) -> None:
    done = workspace.rooda("demo", env={"PATH": str(workspace.home)})
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == "Error: git is not installed"
    assert len(done.err.splitlines()) == 2, "the message and the advice"
    assert list(temporary.iterdir()) == []


@pytest.mark.real
def test_ctrl_c_ends_the_demo_and_deletes_its_folder(workspace: Workspace, temporary: Path) -> None:
    done = interrupted_at(workspace, temporary, "farewell.py")
    assert done.code == 130
    assert done.log[-1].startswith("Interrupted (")
    assert list(temporary.iterdir()) == []


@pytest.mark.real
def test_demo_in_a_git_hook_does_not_change_the_users_repository(
    workspace: Workspace, temporary: Path
) -> None:
    # A git hook sets these variables.
    repository = workspace.path
    git(workspace, repository, "init", "-q")
    git(workspace, repository, "config", "user.name", "me")
    git(workspace, repository, "config", "user.email", "me@localhost")
    workspace.write("mine.txt", "mine\n")
    git(workspace, repository, "add", "-A")
    git(workspace, repository, "commit", "-q", "-m", "mine")
    queries = [("log", "--format=%H"), ("status", "--porcelain"), ("config", "--local", "--list")]
    before = [git(workspace, repository, *words) for words in queries]
    env: dict[str, str | None] = {
        "GIT_DIR": str(repository / ".git"),
        "GIT_INDEX_FILE": str(repository / ".git/index"),
    }
    interrupted_at(workspace, temporary, "farewell.py", env)
    assert [git(workspace, repository, *words) for words in queries] == before
