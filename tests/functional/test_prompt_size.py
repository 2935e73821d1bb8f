"""`max_prompt_size`: a prompt that is too large is an error, and rooda does not read all of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.ralphs import ralph_work
from support.workspace import PROCEDURE, ROODA, Workspace

MEGABYTE = 1024 * 1024
BEYOND = "larger than max_prompt_size (10MB)"
LITTLE_MEMORY = 80 * MEGABYTE  # bytes of a rooda that has not read a file of 400 MB

# Runs a command and prints the largest memory that the command has used, in bytes.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print("peak", usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def big_file(path: Path, megabytes: int) -> Path:
    """A file of this size that takes no space on the disk."""
    with path.open("wb") as file:
        file.truncate(megabytes * MEGABYTE)
    return path


def test_prompt_file_beyond_the_limit_is_an_error_that_names_the_file(workspace: Workspace) -> None:
    big_file(workspace.path / "huge.md", 11)
    workspace.config(PROCEDURE)
    done = workspace.work("true", "--observe", "huge.md")
    assert done.code == 1
    assert f"huge.md is {BEYOND}" in done.err
    assert "--max-prompt-size" in done.err
    assert not (workspace.state).exists(), "a run has started"


def test_context_counts_toward_the_limit(workspace: Workspace) -> None:
    for name in ("one.txt", "two.txt"):
        workspace.write(name, "x" * (6 * MEGABYTE))
    done = workspace.work("true", "-c", "one.txt", "-c", "two.txt")
    assert done.code == 1
    assert f"the prompt, context included, is {BEYOND}" in done.err


def test_dry_run_reports_a_prompt_beyond_the_limit(workspace: Workspace) -> None:
    workspace.write("one.txt", "x" * 2000)
    done = workspace.work("true", "-c", "one.txt", "--max-prompt-size", "1KB", "--dry-run")
    assert done.code == 1
    assert "one.txt is larger than max_prompt_size (1KB)" in done.out + done.err


@pytest.mark.real
def test_larger_limit_allows_a_larger_prompt(workspace: Workspace) -> None:
    workspace.write("one.txt", "x" * (11 * MEGABYTE))
    agent = workspace.agent("wc -c > size; echo '<promise>SUCCESS</promise>'")
    done = workspace.work(agent, "-c", "one.txt", "--max-prompt-size", "12MB")
    assert done.code == 0, done.err
    assert int((workspace.path / "size").read_text()) > 11 * MEGABYTE


@pytest.mark.real
def test_prompt_that_grows_beyond_the_limit_ends_the_run(workspace: Workspace) -> None:
    workspace.write("one.txt", "x")
    agent = workspace.agent("head -c 3000 /dev/zero | tr '\\0' x > one.txt")
    done = workspace.work(agent, "-c", "one.txt", "--max-prompt-size", "2KB")
    assert done.code == 1
    assert "one.txt is larger than max_prompt_size (2KB)" in done.err
    assert "Iteration 1/5 completed" in done.err


@pytest.mark.real
def test_limit_holds_for_ralph(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.agent_does("true")
        big_file(work.in_home("prompts/plan.md", "x"), 11)
        done = work.ralph("plan", "1")
    assert done.code == 1
    assert BEYOND in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flag", ["--observe", "-c"])
def test_file_of_400_mb_is_not_read_into_memory(workspace: Workspace, flag: str) -> None:
    big_file(workspace.path / "huge.md", 400)
    workspace.config(PROCEDURE)
    measure = workspace.write("measure.py", MEASURE)
    command = [sys.executable, str(measure), str(ROODA), "work", "--ai-cmd", "true"]
    done = subprocess.run(
        [*command, flag, "huge.md"],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"huge.md is {BEYOND}" in done.stderr
    found = re.search(r"^peak (\d+)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found[1]) < LITTLE_MEMORY


@pytest.mark.long
@pytest.mark.timeout(300)
def test_150_000_new_files_take_little_memory(workspace: Workspace) -> None:
    subprocess.run(["git", "init", "-q"], cwd=workspace.path, env=workspace.environ(), check=True)
    body = """
import os
for number in range(150_000):
    folder = f"folder-{number // 1000}"
    os.makedirs(folder, exist_ok=True)
    open(f"{folder}/a-file-with-a-name-{number}.txt", "w").close()
print("<promise>SUCCESS</promise>")
"""
    agent = workspace.python_agent(body)
    workspace.config(PROCEDURE)
    measure = workspace.write("measure.py", MEASURE)
    done = subprocess.run(
        [sys.executable, str(measure), str(ROODA), "work", "--ai-cmd", agent],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    shutil.rmtree(workspace.path)  # pytest keeps the folders of the last runs
    assert done.returncode == 0, done.stderr
    found = re.search(r"^peak (\d+)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found[1]) < 120 * MEGABYTE
