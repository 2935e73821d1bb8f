"""`verify.clean` and `signals.confirm` through the installed command: SUCCESS has to be true."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace, wait_for

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


@pytest.fixture
def tmp(work: GitWork) -> Path:
    """The folder for temporary files of a run."""
    folder = work.home / "tmp"
    folder.mkdir()
    return folder


def copies(tmp: Path) -> list[Path]:
    return list(tmp.glob("rooda-clean-*"))


# -- verify.clean ---------------------------------------------------------------------------


@pytest.mark.long
def test_success_that_needs_an_uncommitted_file_fails_in_a_clean_copy(
    work: GitWork, tmp: Path
) -> None:
    (work.path / ".gitignore").write_text("build/\n")
    work.commit()
    work.settings(
        verify={"command": "test -e build/out", "baseline": False, "clean": "cat build/out new.txt"}
    )
    first = f"mkdir build; echo made > build/out; echo new > new.txt; {SUCCESS}"
    agents = work.agents(first, f"rm .gitignore; {SUCCESS}")
    done = work.work(agents, "--commit", env={"TMPDIR": str(tmp)})
    assert (done.code, work.starts) == (0, 2)
    assert "Verified in a clean copy after " in done.err
    first_one, second = work.record()
    assert (first_one["kind"], first_one["commit"]) == ("clean-check", None)
    assert first_one["reason"].startswith("the check in a clean copy failed: exit code 1; a file")
    assert first_one["clean_check"]["exit_code"] == 1
    assert "build/out" in first_one["clean_check"]["output"]
    assert "`cat build/out new.txt` failed in a clean copy" in second["prompt"]
    committed = work.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert {"build/out", "new.txt"} <= {*committed}
    assert second["clean_check"]["files"] == len(committed)
    assert second["commit"] is not None
    assert [one["kind"] for one in second["segments"]].count("verify") == 2
    assert copies(tmp) == []
    assert work.git("status", "--porcelain") == ""
    assert "WARN: The check in a clean copy failed: exit code 1" in done.err
    log = next((work.state / "runs").glob("*/2/verify-clean.log"))
    assert log.read_text() == "made\nnew\n"
    assert "What the check in a clean copy printed" in work.rooda("show", "1").out
    assert "Clean copy  passed after" in work.rooda("show", "2").out
    assert "The check in a clean copy printed" in work.rooda("why", "1").out
    assert "Clean copy: passed after" in work.rooda("why", "2").out
    assert "printed in a clean copy:" in work.rooda("report", "--format", "markdown").out


def test_copy_has_exactly_what_a_commit_would_contain(work: GitWork, tmp: Path) -> None:
    """Also where rooda does not commit, and without touching the user's index."""
    (work.path / ".gitignore").write_text("*.log\n")
    (work.path / "sub").mkdir()
    for name in ("kept", "old", "gone", "pinned", "sub/inner"):
        (work.path / name).write_text("first\n")
    (work.path / "run").write_text("#!/bin/sh\n")
    (work.path / "run").chmod(0o755)
    (work.path / "link").symlink_to("kept")
    work.commit()
    work.git("update-index", "--assume-unchanged", "pinned")
    seen = work.marker("seen")
    check = f"{{ pwd; ls -lAR | grep ' '; cat old pinned sub/inner; }} > {seen}; test ! -e .git"
    work.settings(verify={"clean": check})
    agent = (
        "echo second > old; echo second > pinned; rm gone; echo x > noise.log; echo x > .env; "
        f"echo x > added; mkdir nested; git -C nested init -q; {SUCCESS}"
    )
    index = work.git("ls-files", "--stage")
    done = work.work(work.agents(agent), env={"TMPDIR": str(tmp)})
    assert done.code == 0, done.err
    first, *lines = seen.read_text().splitlines()
    assert Path(first).name == work.path.name
    assert not Path(first).is_relative_to(work.path), "tools look for modules in folders above"
    listed = {line.split(":", 1)[-1][3:]: line for line in lines if line[:1] in "-ld"}
    tracked = {*work.git("ls-files").splitlines()} - {"gone", "link", "sub/inner"}
    assert {*listed} == {*tracked, "added", "link -> kept", "inner", "sub"}
    assert listed["run"].startswith("-rwx")
    assert lines[-3:] == ["second", "first", "first"], "git would commit the old content of pinned"
    assert work.git("ls-files", "--stage") == index
    assert sorted(file.name for file in (work.path / ".git").glob("rooda*")) == []
    assert copies(tmp) == []


@pytest.mark.long
def test_copy_of_a_killed_run_is_removed_by_the_next_run(work: GitWork, tmp: Path) -> None:
    (work.path / "file").write_text("x\n")
    work.commit()
    marker, env = work.marker("in-the-copy"), {"TMPDIR": str(tmp)}
    stuck = (
        f"mkdir -p locked/inner; touch locked/inner/f; chmod -R a-w locked; echo there > {marker}"
    )
    work.settings(verify={"clean": f"{stuck}; sleep 60"})
    running = work.begin(work.agents(SUCCESS), env=env)
    wait_for(marker)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.communicate()
    assert len(copies(tmp)) == 1
    assert copies(tmp)[0].stat().st_mode & 0o077 == 0, "other users can't look into it"
    work.settings(verify={"clean": "true"})
    assert work.work(work.agents("exit 0"), "-n", "1", env=env).code == 2, "no SUCCESS, no check"
    assert copies(tmp) == []


def test_clean_check_without_git_is_an_error_before_the_first_iteration(
    workspace: Workspace,
) -> None:
    done = workspace.rooda("build", "--ai-cmd", "true", "--verify-clean", "true")
    assert done.code == 1
    assert "verify.clean needs git, but " in done.err
    assert "or unset it with --verify-clean none" in done.err


# -- signals.confirm ------------------------------------------------------------------------


def test_run_is_complete_after_several_iterations_in_a_row_with_success(work: GitWork) -> None:
    check = work.counted("test ! -e bad")
    work.settings(
        verify={"command": check, "when": "on-success"}, signals={"confirm": 2}, stall_threshold=1
    )
    agents = work.agents(
        f"touch a; {SUCCESS}",
        f"touch bad; {SUCCESS}",
        f"rm bad; touch b; {SUCCESS}",
        "touch c",
        SUCCESS,
        SUCCESS,
    )
    done = work.work(agents, "-n", "9")
    assert (done.code, work.starts, work.checks()) == (0, 6, 5)
    ends = [line for line in done.err.splitlines() if " completed in " in line]
    assert [line.rpartition(" (")[2] for line in ends] == [
        "success, 1 of 2)",
        "failure, consecutive: 1/3)",
        "success, 1 of 2)",
        "success)",
        "success, 1 of 2)",
        "success, 2 of 2)",
    ]
    record = work.record()
    assert [one["successes"] for one in record] == [1, None, 1, None, 1, 2]
    assert [one["verdict"] for one in record][-2:] == ["success", "done"]
    asked = ["An earlier iteration reported that the work" in one["prompt"] for one in record]
    assert asked == [False, True, False, True, False, True]
    assert "Signal     SUCCESS (1 of 2 in a row)\n" in work.rooda("show", "1").out
    shown = work.rooda("show").out
    assert "The agent signaled SUCCESS in iteration 6 of at most 9 (2 of 2 in a row)" in shown
    assert "SUCCESS 1 of 2" in shown
    assert "Signal of the agent: SUCCESS (2 of 2 in a row)" in work.rooda("why").out


@pytest.mark.long
def test_run_that_ends_before_the_confirmation_says_so_and_resume_goes_on(work: GitWork) -> None:
    work.settings(signals={"confirm": 3})
    done = work.work(work.agents(SUCCESS), "-n", "2")
    assert done.code == 2
    assert "  Not complete: SUCCESS 2 of 3 in a row (signals.confirm)\n" in done.err
    shown = work.rooda("show").out
    assert "All 2 iterations ran; the agent signaled SUCCESS 2 of 3 in a row, so that" in shown
    reason = work.run_record()["reason"]
    assert reason.endswith("; not complete: SUCCESS 2 of 3 in a row (signals.confirm)")
    resumed = work.rooda("resume", "-n", "5")
    assert (resumed.code, work.starts) == (0, 3)
    assert "(success, 3 of 3)" in resumed.err


def test_failing_hook_does_not_confirm(work: GitWork) -> None:
    work.settings(
        signals={"confirm": 2},
        hooks={"post_iteration": [{"command": "test ! -e no", "on_error": "fail"}]},
    )
    done = work.work(work.agents(SUCCESS, f"touch no; {SUCCESS}", f"rm no; {SUCCESS}", SUCCESS))
    assert (done.code, work.starts) == (0, 4)
    assert [one["successes"] for one in work.record()] == [1, None, 1, 2]
