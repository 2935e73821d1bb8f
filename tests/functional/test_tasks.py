"""The task file through the installed command: what a run shows of it, and when it is done."""

from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace

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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_plan_that_is_only_a_draft_for_a_tracker_does_not_count(work: GitWork) -> None:
    (work.path / "AGENTS.md").write_text("Tasks are issues in the tracker: `bd ready`.\n")
    done = work.rooda("build", "--ai-cmd", work.agents(SUCCESS))
    assert (done.code, "tasks" in done.err) == (0, False)
    assert work.run_record()["tasks"] is None
