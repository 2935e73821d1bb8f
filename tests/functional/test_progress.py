"""Progress through the installed command: which changes count, and when a run has stalled."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import PROCEDURE, ROODA, Workspace

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"
COMMIT = "git commit -qam change"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def progress(work: GitWork) -> list[bool]:
    return [one["result"]["progress_detected"] for one in work.record()]


def stalled(work: GitWork) -> tuple[Any, Any]:
    run = work.run_record()
    return run["rule"], run["reason"]


def pytest_says(passed: int, failed: int) -> str:
    counts = [f"{failed} failed"] * bool(failed) + [f"{passed} passed"] * bool(passed)
    return f"echo '===== {', '.join(counts)} in 0.01s ====='"


@pytest.mark.long
def test_run_without_progress_is_aborted_at_the_stall_threshold(work: GitWork) -> None:
    """Ignored files, and files that a hook or a check writes, are no progress of the agent."""
    work.write(".gitignore", "ignored\n")
    noise = "date +%s%N >> noise"
    work.settings(stall_threshold=3, verify=noise, hooks={"post_iteration": noise})
    agent = work.agents("exit 0", "touch new", "date +%s%N > ignored", "exit 0")
    done = work.work(agent, "-n", "9")
    assert (done.code, work.starts) == (1, 5)
    assert progress(work) == [False, True, False, False, False]
    assert stalled(work) == ("stall", "3 iterations without progress (stall_threshold)")
    assert any(
        line.startswith("ERROR: Aborting: 3 iterations without progress (stall_threshold) (5 ")
        for line in done.log
    )
    assert work.run_record()["status"] == "aborted"


@pytest.mark.long
def test_better_test_results_are_progress_and_equal_results_are_not(work: GitWork) -> None:
    agent = work.agents(
        pytest_says(1, 2),
        pytest_says(1, 1),
        pytest_says(2, 1),
        pytest_says(2, 1),
        "exit 0",
        pytest_says(1, 2),
    )
    done = work.work(agent, "-n", "9", "--stall-threshold", "3")
    assert progress(work) == [True, True, True, False, False, False]
    assert (done.code, stalled(work)[0]) == (1, "stall")


@pytest.mark.long
def test_going_back_and_forth_between_two_trees_is_no_progress(work: GitWork) -> None:
    """Although each iteration changes a file and commits it."""
    agent = work.agents(
        f"echo a > README; {COMMIT}",
        f"echo b > README; {COMMIT}",
        f"echo a > README; {COMMIT}",
        f"echo b > README; {COMMIT}",
        f"echo the project > README; {COMMIT}",
        f"echo c > README; {COMMIT}",
    )
    done = work.work(agent, "-n", "9", "--stall-threshold", "3")
    assert (done.code, work.starts) == (1, 5)
    assert [one["returned_to"] for one in work.record()] == [None, None, 1, 2, 0]
    assert stalled(work)[0] == "stall"
    assert len(work.subjects()) == 6


@pytest.mark.long
def test_going_back_and_forth_is_recognised_when_rooda_commits(work: GitWork) -> None:
    work.settings(stall_threshold=2, git={"commit": True})
    agent = work.agents(*(f"echo {word} > README" for word in "abab"), "exit 0")
    assert work.work(agent, "-n", "9").code == 1
    assert [one["returned_to"] for one in work.record()] == [None, None, 1, 2]
    assert len(work.subjects()) == 5


def test_going_back_and_forth_is_recognised_without_git(workspace: Workspace) -> None:
    workspace.config(f"loop: {{stall_threshold: 2}}\n{PROCEDURE}")
    agent = workspace.agent('case "$(cat f 2>&1)" in a) echo b > f ;; *) echo a > f ;; esac')
    done = workspace.work(agent, "-n", "9")
    assert done.code == 1
    assert any("2 iterations without progress" in line for line in done.log)
    assert sum(line.endswith("starting...") for line in done.log) == 4


def files_column(workspace: Workspace) -> list[str]:
    """Return the FILES column of `rooda show`, one value for each iteration."""
    lines = workspace.rooda("show").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("NO "))
    return [re.split("  +", line.strip())[3] for line in lines[start + 1 : lines.index("", start)]]


@pytest.mark.long
def test_changes_are_found_without_a_repository(workspace: Workspace) -> None:
    agent = workspace.agents("touch new", "date +%s%N >ignored.log", "rm new")
    workspace.write(".gitignore", "ignored.log\nstarts\n")
    done = workspace.work(agent, "-n", "3", "--log-file", "run.log")
    assert "WARN" not in done.err
    assert files_column(workspace) == ["1 +0 -0", "none", "1 +0 -0"]
    assert (workspace.path / "run.log").exists()


def test_without_git_rooda_runs_and_warns_that_changes_are_unknown(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "touch"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    done = workspace.work("touch new", "-n", "2", env={"PATH": str(tmp_path / "bin")})
    warnings = [line for line in done.log if line.startswith("WARN")]
    assert len(warnings) == 1
    assert "git is not installed" in warnings[0]
    assert (workspace.path / "new").exists()
    assert sum(line.endswith("starting...") for line in done.log) == 2
    assert files_column(workspace) == ["unknown", "unknown"]


@pytest.mark.long
def test_single_return_to_an_earlier_tree_is_no_stall(work: GitWork) -> None:
    agent = work.agents("echo a > f", "rm f", "echo b > f", "rm f", "echo c > f")
    done = work.work(agent, "-n", "5", "--stall-threshold", "2")
    assert done.code == 2
    assert [one["returned_to"] for one in work.record()] == [None, 0, None, 0, None]


def test_without_track_file_changes_a_run_never_stalls(work: GitWork) -> None:
    work.settings(track_file_changes=False, stall_threshold=1)
    done = work.work(work.agents("date +%s%N > f"), "-n", "3")
    assert (done.code, work.starts) == (2, 3)


# -- git.require_changes --------------------------------------------------------------------


@pytest.mark.long
def test_iteration_without_changes_fails_if_changes_are_required(
    work: GitWork,
) -> None:
    work.settings(git={"require_changes": True}, failure_threshold=2)
    agent = work.agents(
        "exit 0",
        "touch mine; git add mine; git commit -qm mine",
        "touch there; rm there",
        "git commit -q --allow-empty -m empty",
        SUCCESS,
    )
    done = work.work(agent)
    assert done.code == 0, "SUCCESS needs no change"
    kinds = [one["kind"] for one in work.record()]
    assert kinds == ["no-changes", None, "no-changes", None, None]
    assert work.record()[0]["reason"] == "No changes detected"
    assert [one["failures_after"] for one in work.record()] == [1, 0, 1, 0, 0]
    assert "  Reason: No changes detected\n" in done.err


def test_uncommitted_user_files_do_not_count_as_changes_of_the_agent(work: GitWork) -> None:
    work.write("draft", "not committed yet\n")
    work.settings(git={"require_changes": True, "commit": True}, failure_threshold=2)
    done = work.work("true", "-n", "5")
    assert done.code == 1
    assert [one["kind"] for one in work.record()] == ["no-changes", "no-changes"]
    assert work.subjects() == ["the beginning"], "the user's draft is not committed"


@pytest.mark.long
def test_failing_check_is_reported_before_missing_changes(work: GitWork) -> None:
    work.settings(git={"require_changes": True}, verify="false")
    work.work("true", "-n", "1")
    assert work.record()[0]["kind"] == "verify"


def test_log_file_does_not_count_as_a_change_of_the_agent(work: GitWork) -> None:
    work.settings(git={"require_changes": True})
    done = work.work("true", "-n", "3", "--log-file", "run.log")
    assert done.code == 1
    assert [one["kind"] for one in work.record()] == ["no-changes"] * 3
    assert (work.path / "run.log").exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the path of a descriptor")
def test_file_that_receives_rooda_s_output_does_not_count_as_a_change_of_the_agent(
    work: GitWork,
) -> None:
    """`nohup rooda build -v > night.log`: the file grows in each iteration."""
    work.settings(git={"require_changes": True, "commit": True})
    with (work.path / "night.log").open("wb") as log:
        command = [str(ROODA), "work", "-v", "-n", "3", "--ai-cmd", "echo idle"]
        environ = work.environ()
        done = subprocess.run(
            command, cwd=work.path, env=environ, stdout=log, stderr=log, check=False
        )
    assert done.returncode == 1
    assert [one["kind"] for one in work.record()] == ["no-changes"] * 3
    assert "night.log" not in work.git("ls-files")
