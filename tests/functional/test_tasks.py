"""The task file through the installed command: what a run shows of it, and when it is done."""

from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"
PLAN = """\
# Plan

### Task 1: Parse dates
Status: open

### Task 2: Print dates
Status: open

### Task 3: Round dates
Status: open
"""


def finish(*numbers: int) -> str:
    """Return the command with which an agent marks tasks as done."""
    return ";".join(f"sed -i.bak '/Task {one}:/{{n;s/open/done/;}}' PLAN.md" for one in numbers)


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        (found.path / "PLAN.md").write_text(PLAN)
        (found.path / ".gitignore").write_text("*.bak\n")
        found.commit()
        yield found


# -- shown only -----------------------------------------------------------------------------


def test_success_with_open_tasks_is_a_success_with_a_warning(work: GitWork) -> None:
    agents = work.agents(finish(1), f"{finish(2)}; {SUCCESS}")
    done = work.rooda("build", "--ai-cmd", agents)
    assert (done.code, work.starts) == (0, 2)
    assert "Completed: AI signaled SUCCESS (2 iterations, 2 of 3 tasks, total: " in done.err
    (warning,) = [line for line in done.err.splitlines() if "has unfinished tasks" in line]
    assert "PLAN.md" in warning
    assert "Round dates" in warning
    row = work.run_record()
    assert row["tasks"] == {"done": 2, "total": 3, "blocked": 0}
    assert row["tasks_left"]["open"] == ("Round dates",)
    assert [one["tasks"]["done"] for one in work.record()] == [1, 2]


def test_plan_that_is_only_a_draft_for_a_tracker_does_not_count(work: GitWork) -> None:
    (work.path / "AGENTS.md").write_text("Tasks are issues in the tracker: `bd ready`.\n")
    done = work.rooda("build", "--ai-cmd", work.agents(SUCCESS))
    assert (done.code, "tasks" in done.err) == (0, False)
    assert work.run_record()["tasks"] is None


# -- done_when: tasks -----------------------------------------------------------------------


def test_early_success_is_refused_and_the_last_task_ends_the_run_without_the_word(
    work: GitWork,
) -> None:
    agents = work.agents(f"{finish(1)}; {SUCCESS}", finish(2), finish(3))
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks", "--verify", "true")
    assert (done.code, work.starts) == (0, 3)
    assert "Completed: all tasks in PLAN.md are done (3 iterations, 3 of 3 tasks, " in done.err
    first, second, third = work.record()
    assert (first["kind"], first["reason"]) == ("not-done", "PLAN.md has 2 open tasks")
    assert first["verify"]["exit_code"] == 0
    asked = (
        "You signaled SUCCESS, but PLAN.md has 2 open tasks:\n\n    Print dates\n    Round dates"
    )
    assert asked in second["prompt"]
    assert (second["verdict"], third["verdict"]) == ("success", "done")
    row = work.run_record()
    assert (row["status"], row["rule"]) == ("success", "done")
    assert "Rule: done. The work is done, and no check failed.\n" in work.rooda("why").out
    assert "Evidence: Print dates; Round dates\n" in work.rooda("why", "1").out


def test_failing_verify_keeps_a_run_from_its_end(work: GitWork) -> None:
    agents = work.agents(f"{finish(1, 2, 3)}; {SUCCESS}", "touch good")
    check = ("--verify", "test -e good")
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks", *check)
    assert (done.code, work.starts) == (0, 2)
    assert [one["kind"] for one in work.record()] == ["verify", None]


def test_three_refusals_in_a_row_end_the_run(work: GitWork) -> None:
    limits = ("-n", "9", "--failure-threshold", "9")
    agents = work.agents(SUCCESS, "touch a", SUCCESS)
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks", *limits)
    assert (done.code, work.starts) == (1, 5)
    words = "Aborting: the agent signaled SUCCESS 3 times in a row, but PLAN.md has 3 open tasks"
    assert words in done.err
    assert work.run_record()["rule"] == "not-done"
    resumed = work.rooda("resume", "-n", "7")
    assert (resumed.code, work.starts) == (2, 7)


def test_refusals_and_removed_tasks_survive_between_processes(work: GitWork) -> None:
    """Each iteration of a fleet is a process of its own."""
    remove = "sed -i.bak '/Task 3/,$d' PLAN.md"
    agents = work.agents(f"{finish(1)}; {remove}; {SUCCESS}", f"{finish(2)}; {SUCCESS}", SUCCESS)
    flags = ("--done-when", "tasks", "--failure-threshold", "9", "-n", "9", "--pause-after", "1")
    codes = [work.rooda("build", "--ai-cmd", agents, *flags).code]
    codes += [work.rooda("resume", "--pause-after", "1").code for _ in range(2)]
    assert codes == [0, 0, 1]
    assert [one["tasks"]["done"] for one in work.record()] == [1, 2, 2]
    assert work.run_record()["tasks_left"]["open"] == ("Round dates (was removed)",)
    assert "Round dates (was removed)" in work.record()[2]["prompt"]
    assert work.run_record()["rule"] == "not-done"


def test_removed_task_is_named_at_the_end_because_the_file_does_not_show_it(work: GitWork) -> None:
    agents = work.agents(f"{finish(1, 2)}; sed -i.bak '/Task 3/,$d' PLAN.md")
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks", "-n", "1")
    assert done.code == 2
    assert "WARN: An agent removed open tasks from PLAN.md; they still count as open" in done.err
    shown = work.rooda("show").out
    assert "2 of 3 tasks; 1 open in PLAN.md: Round dates (was removed)" in shown


def test_task_that_the_agent_moved_to_plan_done_is_done(work: GitWork) -> None:
    move = f"{finish(1, 2, 3)}; mv PLAN.md PLAN-DONE.md; echo '# Plan' > PLAN.md"
    done = work.rooda("build", "--ai-cmd", work.agents(move), "--done-when", "tasks")
    assert (done.code, "3 of 3 tasks" in done.err) == (0, True)


def test_only_blocked_tasks_left_end_the_run_and_are_named(work: GitWork) -> None:
    block = "sed -i.bak '/Task 3:/{n;s/open/blocked by the API/;}' PLAN.md"
    agents = work.agents(f"{finish(1, 2)}; {block}; {SUCCESS}", finish(3))
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks")
    assert (done.code, work.starts) == (1, 1)
    assert "Aborting: only blocked tasks are left: Round dates (" in done.err
    assert work.run_record()["rule"] == "blocked-tasks"
    again = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks")
    assert (again.code, work.starts) == (1, 1)


def test_run_without_anything_to_do_starts_no_agent(work: GitWork) -> None:
    (work.path / "PLAN.md").write_text(PLAN.replace("open", "done"))
    agents = work.agents("touch good")
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks")
    assert (done.code, work.starts) == (0, 0)
    assert "Completed: nothing to do, all tasks in PLAN.md are done (0 iterations, " in done.err
    check = ("--verify", "test -e good")
    done = work.rooda("build", "--ai-cmd", agents, "--done-when", "tasks", *check)
    assert (done.code, work.starts) == (0, 1)


def test_finished_tasks_are_work_while_the_check_fails(work: GitWork) -> None:
    (work.path / "PLAN.md").write_text("- [x] A\n")
    flags = ("--done-when", "tasks", "--verify-baseline", "off")
    agents = work.agents("touch good")
    done = work.rooda("build", "--ai-cmd", agents, *flags, "--verify", "test -e good")
    assert (done.code, work.starts) == (0, 1)
    again = work.rooda("build", "--ai-cmd", agents, *flags, "--verify", "test -e good")
    assert (again.code, work.starts) == (0, 1)
    assert "nothing to do, all tasks in PLAN.md are done" in again.err


def test_missing_program_of_the_command_is_named_before_the_start(work: GitWork) -> None:
    done = work.rooda("build", "--ai-cmd", "true", "--dry-run", "--done-when", "command: no-such x")
    assert "the program that says whether the work is done does not exist: no-such" in done.out


def test_missing_tasks_are_an_error_before_the_start_and_not_done_during_the_run(
    work: GitWork,
) -> None:
    agents = work.agents(f"rm PLAN.md; {SUCCESS}", f"git checkout -q PLAN.md; {SUCCESS}")
    flags = ("--ai-cmd", agents, "--done-when", "tasks")
    done = work.rooda("build", *flags, "-n", "2")
    assert (done.code, [one["kind"] for one in work.record()]) == (2, ["not-done", "not-done"])
    assert "rooda can't read the tasks: PLAN.md does not exist" in work.record()[1]["prompt"]
    (work.path / "PLAN.md").write_text("# Plan\n")
    wrong = work.rooda("build", *flags, "--verify", "no-such-program-at-all")
    assert (wrong.code, work.starts) == (1, 2)
    assert "but PLAN.md has no tasks" in wrong.err
    assert "no-such-program-at-all" in wrong.err
    assert "this run has no task file" in work.work(agents, "--done-when", "tasks").err


def test_task_file_of_a_prompt_file_decides_when_the_work_is_done(work: GitWork) -> None:
    (work.path / "PROMPT.md").write_text("Work on one task.\n")
    agents = work.agents(f"{finish(1, 2)}; {SUCCESS}", finish(3))
    done = work.rooda("loop", "PROMPT.md", "--ai-cmd", agents, "--tasks", "PLAN.md")
    assert (done.code, work.starts, work.run_record()["rule"]) == (0, 2, "done")


def test_confirmation_asks_for_another_iteration_after_the_last_task(work: GitWork) -> None:
    agents = work.agents(finish(1, 2, 3), "true")
    flags = ("--done-when", "tasks", "--signals-confirm", "2")
    done = work.rooda("build", "--ai-cmd", agents, *flags)
    assert (done.code, [one["successes"] for one in work.record()]) == (0, [1, 2])


# -- done_when: command ---------------------------------------------------------------------


def test_command_decides_when_the_work_is_done(work: GitWork) -> None:
    command = "test -e odd && { echo strange; exit 7; }; test -e good || { echo no good; exit 1; }"
    work.settings(done_when=f"command: {command}")
    done = work.work(work.agents(SUCCESS, "touch odd", "rm odd; touch good"))
    assert (done.code, work.starts) == (0, 3)
    assert [one["kind"] for one in work.record()] == ["not-done", None, None]
    assert "The end of what it printed:\n\n    no good" in work.record()[1]["prompt"]
    (warning,) = [line for line in done.err.splitlines() if "WARN" in line]
    assert "The command of done_when has trouble, so the work counts as not done" in warning
    assert "    | strange" in done.err
    assert "Completed: `test -e odd" in done.err
    again = work.work(work.agents("true"))
    assert (again.code, "nothing to do" in again.err) == (0, True)


def test_command_that_hangs_counts_as_not_done(work: GitWork) -> None:
    work.settings(done_when="command: sleep 60", verify={"timeout": 1})
    done = work.work(work.agents(SUCCESS), "-n", "1")
    assert (done.code, work.record()[0]["kind"]) == (2, "not-done")
    assert "timed out" in work.record()[0]["reason"]
