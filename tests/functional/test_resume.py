"""`--resume`: rooda continues an earlier run with its counters and its record."""

import re
import signal
from typing import Any

import pytest

from rooda.loop.next_steps import LIMIT_FLAGS, RunCommands
from rooda.record.reader import RecordReader
from support.children import Nursery, until
from support.finished import Finished, Rooda
from support.gitrepo import stored
from support.recorded import HANGS, SUCCESS, asked, refused, statuses, versioned
from support.workspace import PROCEDURE, Running, Workspace, wait_for

pytestmark = pytest.mark.real

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
OTHER = PROCEDURE.replace("work:", "other:").replace("procedures:", "")


@pytest.fixture
def rooda(workspace: Workspace) -> Rooda:
    """Run `rooda ARGS` in this process, to read the record."""
    return workspace.inside


def started(workspace: Workspace, nursery: Nursery, command: str, *more: str) -> Running:
    """Start a run and wait until its agent hangs."""
    running = nursery.start(workspace, "work", "--ai-cmd", command, *more)
    nursery.pid("agent")
    return running


def resumed(workspace: Workspace, command: str, *more: str, name: str = "") -> Finished:
    flag = f"--resume={name}" if name else "--resume"
    return workspace.rooda("work", flag, "--ai-cmd", command, *more)


def timing(done: Finished) -> str:
    found = re.search(r"Iteration timing: (.*)", done.err)
    assert found is not None, done.err
    return found[1]


def last_run(rooda: Rooda) -> dict[str, Any]:
    found: dict[str, Any] = asked(rooda, "show")
    return found


# -- after each kind of end ----------------------------------------------------------------


def test_resume_after_ctrl_c_continues_at_the_interrupted_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents("exit 0", "exit 7", HANGS, "exit 0", SUCCESS)
    running = started(workspace, nursery, command, "-n", "9")
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    before = last_run(rooda)
    assert (before["status"], before["exit_code"]) == ("interrupted", 130)
    assert statuses(before) == [(1, "completed"), (2, "failed"), (3, "interrupted")]

    done = resumed(workspace, command, "-n", "9")
    assert done.code == 0, done.err
    assert "Iteration 3/9 starting..." in done.log
    assert "Iteration 1/9 starting..." not in done.log
    # Two that had ended, the interrupted attempt, and two of this resume: five attempts.
    assert "stddev=" in timing(done)
    after = last_run(rooda)
    assert after["run"] == before["run"]
    assert after["started_at"] == before["started_at"]
    assert (after["status"], after["exit_code"]) == ("success", 0)
    assert statuses(after) == [
        (1, "completed"),
        (2, "failed"),
        (3, "completed"),
        (4, "completed"),
    ]
    assert after["iterations"][:2] == before["iterations"][:2]
    assert after["stats"]["count"] == 5
    assert after["summary"]["total_iterations"] == 4
    assert (after["summary"]["successful_iterations"], after["summary"]["failed_iterations"]) == (
        3,
        1,
    )
    assert len(asked(rooda, "history")) == 1
    assert after["iterations"][2]["failures_before"] == 1


def test_interrupted_attempt_stays_visible_after_a_resume(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents(f"echo half done; {HANGS}", "echo all done", SUCCESS)
    running = started(workspace, nursery, command)
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    assert resumed(workspace, command).code == 0
    one = asked(rooda, "show", "1")
    assert (one["attempt"], one["status"]) == (2, "completed")
    (earlier,) = one["earlier_attempts"]
    assert (earlier["attempt"], earlier["status"]) == (1, "interrupted")
    assert asked(rooda, "show", "2")["earlier_attempts"] == []
    shown = rooda("show", "1").out
    assert "Iteration  1 (attempt 2)\n" in shown
    assert re.search(r"^Attempt 1  interrupted, ", shown, re.MULTILINE), shown
    (folder,) = (workspace.state / "runs").iterdir()
    assert (folder / "1/stdout.log").read_text() == "half done\n"
    assert rooda("show", "1", "--output").out == "all done\n"


def test_resume_after_sigkill_continues_at_the_killed_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents("exit 0", HANGS, SUCCESS)
    running = started(workspace, nursery, command)
    running.signal(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL
    before = last_run(rooda)
    assert before["status"] == "interrupted"
    assert before["reason"] == "rooda was killed"
    assert before["exit_code"] is None
    assert before["ended_at"] is not None
    assert statuses(before) == [(1, "completed"), (2, "interrupted")]
    assert "rooda itself was killed" in rooda("why").out

    done = resumed(workspace, command)
    assert done.code == 0, done.err
    after = last_run(rooda)
    assert (after["run"], after["reason"] != before["reason"]) == (before["run"], True)
    assert statuses(after) == [(1, "completed"), (2, "completed")]
    assert after["iterations"][1]["attempt"] == 2


def test_resume_after_rooda_stop_continues_with_the_next_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents(WAITS, SUCCESS)
    running = started(workspace, nursery, command)
    assert rooda("stop").code == 0
    workspace.write("go", "")
    assert running.finish().code == 130
    done = resumed(workspace, command)
    assert done.code == 0, done.err
    assert "Iteration 2/5 starting..." in done.log
    assert statuses(last_run(rooda)) == [(1, "completed"), (2, "completed")]


def test_resume_of_an_aborted_run_resets_the_count_of_failures(
    workspace: Workspace, rooda: Rooda
) -> None:
    command = workspace.agents("exit 1", "exit 1", "exit 1", "exit 1", SUCCESS)
    assert workspace.work(command, "--failure-threshold", "2").code == 1
    done = resumed(workspace, command, "--failure-threshold", "2")
    assert done.code == 1
    assert "Iteration 3/5 starting..." in done.log
    assert "(failure, consecutive: 1/2)" in done.err
    third = asked(rooda, "show", "3")
    assert (third["failures_before"], third["failures_after"]) == (0, 1)
    # Each further resume resets the count again and continues the numbers of the iterations.
    done = resumed(workspace, command, "--failure-threshold", "2")
    assert done.code == 0, done.err
    found = last_run(rooda)
    assert [number for number, _ in statuses(found)] == [1, 2, 3, 4, 5]
    assert found["summary"]["failed_iterations"] == 4


def test_resume_after_max_iters_continues_with_a_larger_maximum(
    workspace: Workspace, rooda: Rooda
) -> None:
    assert workspace.work("true", "-n", "2").code == 2
    done = resumed(workspace, "true", "-n", "3")
    assert done.code == 2
    assert done.log[0].endswith("(max 3 iterations)") or "3" in done.log[0]
    assert [line for line in done.log if line.endswith("starting...")] == [
        "Iteration 3/3 starting..."
    ]
    found = last_run(rooda)
    assert [number for number, _ in statuses(found)] == [1, 2, 3]
    assert found["stats"]["count"] == 3
    assert found["max_iterations"] == 3


# -- nothing to resume ---------------------------------------------------------------------


def test_resume_is_refused_after_success_or_at_the_maximum(
    workspace: Workspace, rooda: Rooda
) -> None:
    refused(workspace.work("true", "--resume"), "no run of work", "rooda work")
    assert workspace.work("true", "-n", "2").code == 2
    refused(
        workspace.work("true", "--resume", "-n", "2"),
        "has run 2 iterations",
        " --max-iterations 12",
    )
    before = asked(rooda, "history")
    assert [run["status"] for run in before] == ["max-iters"]
    assert workspace.work(workspace.agent(SUCCESS), "-n", "1").code == 0
    refused(workspace.work("true", "--resume"), "ended as success")
    assert len(asked(rooda, "history")) == 2


def test_record_keeps_the_commands_that_start_and_resume_the_run(workspace: Workspace) -> None:
    assert workspace.work("true", "-n", "1").code == 2
    row = RecordReader(workspace.state).run(None)
    expected = RunCommands("rooda work", f"rooda resume {row.run}", LIMIT_FLAGS)
    assert row.commands == expected
    assert workspace.rooda("resume", "-n", "2").code == 2
    assert RecordReader(workspace.state).run(None).commands == expected


def test_run_of_another_procedure_is_not_resumed(workspace: Workspace, rooda: Rooda) -> None:
    workspace.config(PROCEDURE + OTHER)
    assert workspace.work("false", "--failure-threshold", "1").code == 1
    (run,) = asked(rooda, "history")
    name = run["run"]
    done = workspace.rooda("other", "--resume", "--ai-cmd", "true")
    refused(done, "no run of other")
    done = workspace.rooda("other", f"--resume={name}", "--ai-cmd", "true")
    refused(done, "is one of work, not of other", f"rooda resume {name}")
    done = workspace.rooda("work", "--resume=nonsense", "--ai-cmd", "true")
    refused(done, "there is no run 'nonsense'")


# -- which, and how ------------------------------------------------------------------------


def test_run_to_resume_is_chosen_by_a_prefix_of_its_name(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents(HANGS, "exit 0", SUCCESS)
    running = started(workspace, nursery, command)
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    first = last_run(rooda)["run"]
    (workspace.path / "agent.pid").unlink()
    assert workspace.work("true", "-n", "1").code == 2  # a later run, which stays as it is
    done = resumed(workspace, command, name=first[:-1])
    assert done.code == 0, done.err
    later, earlier = asked(rooda, "history")
    assert (earlier["run"], earlier["status"]) == (first, "success")
    assert later["status"] == "max-iters"


def test_run_without_resume_starts_with_empty_state(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents("exit 1", HANGS, "exit 1", SUCCESS)
    running = started(workspace, nursery, command)
    running.signal(signal.SIGKILL)
    running.finish()
    done = workspace.work(command)
    assert done.code == 0
    assert "Iteration 1/5 starting..." in done.log
    assert "(failure, consecutive: 1/3)" in done.err
    new, old = asked(rooda, "history")
    assert new["run"] != old["run"]
    assert (new["summary"]["total_iterations"], new["stats"]["count"]) == (2, 2)
    assert (old["status"], old["summary"]["total_iterations"]) == ("interrupted", 2)


def test_resume_uses_the_current_config(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agent(f"cat > prompt.$(ls | grep -c prompt); {HANGS}")
    running = started(workspace, nursery, command, "--failure-threshold", "7")
    running.signal(signal.SIGINT)
    running.finish()
    workspace.config(PROCEDURE.replace("content: look", "content: look again"))
    prints = workspace.agent(f"cat; {SUCCESS}", "agent.today")
    assert resumed(workspace, prints, "--failure-threshold", "4").code == 0
    one = asked(rooda, "show", "1")
    assert "look again" in one["prompt"]
    assert "look again" in one["result"]["stdout"]
    assert one["threshold"] == 4
    run = last_run(rooda)
    assert run["command"] == prints.strip("'")
    settings = {name: value for name, value, _ in run["settings"]}
    assert settings["loop.failure_threshold"] == "4"


def test_two_resumes_in_a_row_add_up_in_the_record(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents("exit 0", HANGS, HANGS, SUCCESS)
    for flags in ((), ("--resume",)):
        (workspace.path / "agent.pid").unlink(missing_ok=True)
        running = started(workspace, nursery, command, *flags)
        running.signal(signal.SIGINT)
        assert running.finish().code == 130
    assert resumed(workspace, command).code == 0
    found = last_run(rooda)
    assert statuses(found) == [(1, "completed"), (2, "completed")]
    assert found["iterations"][1]["attempt"] == 3
    assert [one["status"] for one in found["iterations"][1]["earlier_attempts"]] == [
        "interrupted",
        "interrupted",
    ]
    assert found["stats"]["count"] == 4


def test_run_that_is_still_running_cannot_be_resumed(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    running = started(workspace, nursery, workspace.agents(WAITS, SUCCESS))
    refused(workspace.work("true", "--resume"), "another run is at work")
    workspace.write("go", "")
    assert running.finish().code == 0
    assert statuses(last_run(rooda)) == [(1, "completed"), (2, "completed")]


def test_snapshot_0_survives_a_kill_in_the_first_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    """Snapshot 0 is the tree before the run, however often the run is resumed."""
    versioned(workspace)
    command = workspace.agents(f"echo changed > kept.txt; {HANGS}", SUCCESS)
    running = started(workspace, nursery, command)
    running.signal(signal.SIGKILL)
    running.finish()
    assert resumed(workspace, command).code == 0
    assert rooda("restore", "0").code == 0
    assert (workspace.path / "kept.txt").read_text() == "of the user\n"


def test_resume_keeps_feedback_and_snapshots(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    """The output of a failed check is in the next prompt, also if rooda was killed in between."""
    versioned(workspace)
    command = workspace.agents("echo 1 > made.txt", HANGS, f"cat; {SUCCESS}")
    check = "test -e good || { echo the roof leaks; exit 1; }"
    running = started(workspace, nursery, command, "--verify", check)
    running.signal(signal.SIGKILL)
    running.finish()
    workspace.write("good", "")
    assert resumed(workspace, command, "--verify", check).code == 0
    assert "the roof leaks" in asked(rooda, "show", "2")["prompt"]
    (run,) = asked(rooda, "history")
    refs = stored(workspace.path, "for-each-ref", "--format=%(refname)", "refs/rooda")
    assert refs.splitlines() == [f"refs/rooda/{run['run']}/{number}" for number in (0, 1, 2)]


@pytest.mark.long
def test_ten_interruptions_and_resumes_lose_no_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    """Each Ctrl+C comes in the middle of an iteration, and each is followed by a resume."""
    bodies = [body for _ in range(10) for body in ("exit 0", HANGS)]
    command = workspace.agents(*bodies, SUCCESS)
    pid = workspace.path / "agent.pid"
    for turn in range(10):
        pid.unlink(missing_ok=True)
        flags = ("--resume",) if turn else ()
        running = nursery.start(workspace, "work", "--ai-cmd", command, "-u", *flags)
        wait_for(pid)
        running.signal(signal.SIGINT)
        assert running.finish().code == 130
    assert resumed(workspace, command, "-u").code == 0
    until(lambda: workspace.starts == 21, "every start")
    found = last_run(rooda)
    assert statuses(found) == [(number, "completed") for number in range(1, 12)]
    assert [one["attempt"] for one in found["iterations"]] == [1, *[2] * 10]
    assert found["stats"]["count"] == 21
