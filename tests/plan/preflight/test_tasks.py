"""Which file has the tasks of a run, and what is wrong with it before the start."""

from pathlib import Path

import pytest

from rooda.base.problems import errors
from support.config import planned

BY_TASKS = ("--done-when", "tasks", "--ai-cmd", "cat")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder in which a run of `tmp_path` starts."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def wrong(folder: Path, *arguments: str) -> list[str]:
    """Return the messages about tasks."""
    problems = errors(planned(folder, *arguments, *BY_TASKS).all_problems())
    return [one.message for one in problems if "tasks decide" in one.message]


def task_file(folder: Path, *arguments: str) -> str | None:
    plan = planned(folder, *arguments, "--ai-cmd", "cat").plan
    assert plan is not None
    return None if plan.tasks is None else plan.tasks.shown


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "but PLAN.md does not exist"),
        ("", "but PLAN.md has no tasks"),
        ("```\n- [ ] A\n```\n", "but PLAN.md has no tasks"),
        ("- [ ] A\n" * 200_000, "but PLAN.md is larger than 1,000,000 bytes"),
    ],
)
def test_missing_tasks_are_an_error(
    tmp_path: Path, work: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (work / "PLAN.md").write_text(content)
    (message,) = wrong(tmp_path, "build")
    assert message.endswith(words)
    assert wrong(tmp_path, "build", "--hooks-loop-start", "make plan") == []


def test_task_file_that_rooda_cannot_read_is_a_warning_where_the_signal_decides(
    tmp_path: Path, work: Path
) -> None:
    def warned() -> list[str]:
        problems = planned(tmp_path, "build", "--ai-cmd", "cat").all_problems()
        return [one.message for one in problems if "tasks" in one.message]

    assert warned() == []
    plan = work / "PLAN.md"
    plan.write_text("- [ ] A\n" * 200_000)
    assert warned() == ["rooda counts no tasks, because PLAN.md is larger than 1,000,000 bytes"]
    plan.write_text("- [ ] A\n", "utf-16")
    assert warned() == ["rooda counts no tasks, because PLAN.md is not text in UTF-8"]
    plan.unlink()
    plan.mkdir()
    assert warned() == ["rooda counts no tasks, because PLAN.md can't be read: is not a file"]


def test_procedure_without_a_task_file_is_an_error(tmp_path: Path, work: Path) -> None:
    (work / "PLAN.md").write_text("- [ ] A\n")
    assert wrong(tmp_path, "build") == []
    (message,) = wrong(tmp_path, "bootstrap")
    assert message.endswith("this run has no task file")
    assert wrong(tmp_path, "bootstrap", "--tasks", "PLAN.md") == []


@pytest.mark.parametrize(
    "agents, is_counted",
    [
        (None, True),
        ("Tasks are kept in PLAN.md. No tracker.\n", True),
        ("Work tracking: `./PLAN.md`\n", True),
        ("The plan is ../PLAN.md.\n", False),
        ("Run the tests with make.\n", True),
        ("## Known issues\n\nLinear search is slow; todo comments are fine.\n", True),
        ("Do not track build files. Report issues to the team.\n", True),
        ("## Work tracking\n\nNone.\n", True),
        ("## Work tracking\n\n`./next-task.sh` lists ready tasks.\n", False),
        ("Issues are in the tracker: `bd ready`.\n", False),
        ("Tasks are GitHub issues: `gh issue list`.\n", False),
        ("Our tasks are tickets in Linear.\n", False),
        ("The plan is docs/PLAN.md.\n", False),
    ],
)
def test_plan_counts_unless_agents_md_keeps_the_tasks_elsewhere(
    tmp_path: Path, work: Path, agents: str | None, *, is_counted: bool
) -> None:
    if agents is not None:
        (work / "AGENTS.md").write_text(agents)
    assert task_file(tmp_path, "build") == ("PLAN.md" if is_counted else None)
    assert task_file(tmp_path, "build", "--tasks", "PLAN.md") == "PLAN.md"
    assert task_file(tmp_path, "build", "--tasks", "none") is None
    assert task_file(tmp_path, "audit-spec") is None
