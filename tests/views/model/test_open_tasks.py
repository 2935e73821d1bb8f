"""What every view says about the tasks of a run, and which success is doubtful."""

from typing import Any

import pytest
from msgspec.structs import replace

from rooda.loop.events.run import TasksLeft
from rooda.views.model.build import summarize
from rooda.views.model.open_tasks import is_doubtful, known_count, still_open, tasks_line
from rooda.world.tasks.standing import TaskCount
from support.hostile import ALL
from support.nights import START, doubtful_night, night

SIX = ("A", "B", "C", "D", "E", "F")


def left(*names: str, blocked: tuple[str, ...] = (), file: str = "PLAN.md") -> TasksLeft:
    return TasksLeft(names, blocked, file)


@pytest.mark.parametrize(
    "tasks,tasks_left,expected",
    [
        (None, None, ""),
        (TaskCount(20, 20), None, "20 of 20 tasks"),
        (TaskCount(9, 14, 2), None, "9 of 14 tasks; 2 blocked"),
        (TaskCount(14, 20), left(*SIX), "14 of 20 tasks; 6 open in PLAN.md: A, B, C, 3 more"),
        (
            TaskCount(14, 20, 1),
            left(*SIX[:5], blocked=("G",)),
            "14 of 20 tasks; 5 open in PLAN.md: A, B, C, 2 more; 1 blocked: G",
        ),
        (
            TaskCount(3, 4, 1),
            left(blocked=("G",)),
            "3 of 4 tasks; 1 blocked in PLAN.md: G",
        ),
        (None, left("A", file=""), "1 open: A"),  # the record of an earlier version
    ],
)
def test_line_counts_the_tasks_and_names_the_first(
    tasks: TaskCount | None, tasks_left: TasksLeft | None, expected: str
) -> None:
    row = night(tasks=tasks, tasks_left=tasks_left)
    assert tasks_line(row) == expected
    assert tasks_line(summarize(row, [], START)) == expected


@pytest.mark.parametrize(
    "changed,expected",
    [
        ({}, "6 of 20 tasks are not done."),
        ({"tasks": TaskCount(19, 20)}, "1 of 20 tasks is not done."),
        ({"tasks": TaskCount(19, 20, 1)}, "1 of 20 tasks is not done."),
        ({"tasks": None}, "6 tasks are not done."),
        ({"tasks_left": None}, "6 of 20 tasks are not done."),
        ({"tasks": TaskCount(20, 20), "tasks_left": None}, ""),
        ({"tasks": None, "tasks_left": None}, ""),
        ({"rule": "once"}, ""),  # the user asked for one iteration, not for all tasks
        ({"status": "aborted", "rule": "failure-threshold"}, ""),
        ({"status": "running", "rule": None}, ""),
    ],
)
def test_success_is_doubtful_if_only_the_agent_says_that_all_is_done(
    changed: dict[str, Any], expected: str
) -> None:
    row, rows = doubtful_night(**changed)
    run = summarize(row, rows, START)
    assert (still_open(row), still_open(run)) == (expected, expected)
    assert is_doubtful(row) is run.is_doubtful is bool(expected)
    if expected:
        assert run.rule_text.endswith(f"verify passed after it. {expected}")
        assert "nothing to resume" not in run.next_hint


@pytest.mark.parametrize("forged", [(5, 3), (-1, 3), (1, 3, 9), (1, 3, -1), (0, 0), (0, -5)])
def test_counts_that_make_no_sense_are_not_shown(forged: tuple[int, ...]) -> None:
    """An agent can write to the record."""
    assert known_count(TaskCount(*forged)) is None
    assert tasks_line(night(tasks=TaskCount(*forged))) == ""


def test_summary_of_many_long_names_stays_small() -> None:
    row, _ = doubtful_night(tasks_left=left(*[ALL] * 1000, blocked=(ALL,) * 1000, file=ALL))
    row = replace(row, tasks=TaskCount(0, 2000, 1000))
    run = summarize(row, [], START)
    assert run.tasks_left is not None
    assert sum(map(len, (*run.tasks_left.open, *run.tasks_left.blocked))) <= 40 * 100
    assert len(tasks_line(run)) < 1000
    assert "997 more" in tasks_line(run)
    assert tasks_line(run) == tasks_line(row)
