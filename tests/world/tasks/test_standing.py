"""The count of tasks, and what becomes of tasks that an agent removes, moves or renames."""

import pytest

from rooda.world.tasks.standing import TaskCount, TaskLedger, TaskStanding
from rooda.world.tasks.task_file import Task, tasks_in

PLAN = """\
# Plan

### Task 1: Parse dates
Status: done

### Task 2: Print dates
Status: open

### Task 3: Ask the service
Status: blocked
"""
ONE_DONE = "- [x] Parse\n- [ ] Print\n"


def after(before: str, now: str, archive: str = "", ledger: TaskLedger | None = None) -> TaskLedger:
    known = ledger or TaskLedger()
    return known.after_agent(tasks_in(before), tasks_in(now), tasks_in(archive))


def stands(before: str, now: str, archive: str = "") -> TaskStanding:
    return after(before, now, archive).standing(tasks_in(now))


def test_blocked_tasks_count_as_open() -> None:
    found = TaskLedger().standing(tasks_in(PLAN))
    assert (found.count, found.count.open) == (TaskCount(1, 3, blocked=1), 2)
    assert (found.open, found.blocked) == (("Print dates",), ("Ask the service",))
    assert not found.is_done
    assert not found.is_blocked


@pytest.mark.parametrize(
    "count, words",
    [(TaskCount(14, 20), "14 of 20 tasks"), (TaskCount(0, 1), "0 of 1 task")],
)
def test_words(count: TaskCount, words: str) -> None:
    assert count.words == words


@pytest.mark.parametrize(
    "now, archive, done, total, removed",
    [
        ("- [x] Parse\n- [x] Print\n", "", 2, 2, ()),
        ("- [x] Parse\n", "", 1, 2, ("Print",)),
        ("- [x] Parse\n", "- [x] Print\n", 2, 2, ()),
        ("- [x] Parse\n", "- [ ] Print\n", 1, 2, ("Print",)),
        ("- [ ] Print\n", "", 1, 2, ()),  # a task that was done may leave the file
        ("", "", 1, 2, ("Print",)),
        ("- [x] Parse\n- [x] Print (in print.py)\n", "", 2, 2, ()),
        ("- [x] Parse\n- [x] Printer\n", "", 2, 3, ("Print",)),
        ("- [x] Parse\n- [x] print\n", "", 2, 2, ()),
        ("- [x] Parse\n- [ ] Print\n- [ ] More\n", "", 1, 3, ()),
        ("```\n- [x] Print\n```\n- [x] Parse\n", "", 1, 2, ("Print",)),
    ],
)
def test_open_task_that_an_agent_removes_still_counts_as_open(
    now: str, archive: str, done: int, total: int, removed: tuple[str, ...]
) -> None:
    found = stands(ONE_DONE, now, archive)
    assert (found.count.done, found.count.total, found.removed) == (done, total, removed)


def test_task_whose_name_begins_another_name_is_not_mistaken_for_it() -> None:
    before = "- [ ] Add\n- [ ] Add tests\n"
    assert stands(before, "- [x] Add tests\n").removed == ("Add",)
    assert stands(before, "- [x] Add tests\n- [x] Add it (in a.py)\n").is_done


def test_numbered_task_is_known_by_its_number() -> None:
    renamed = PLAN.replace("Print dates", "Print dates and times").replace("open", "done")
    assert stands(PLAN, renamed).removed == ()
    assert stands(PLAN, PLAN.replace("Task 2", "Task 4")).removed == ("Print dates",)


PHASES = """\
## Phase 1
### Task 1: Parse
Status: open
## Phase 2
### Task 1: Print
Status: open
"""


@pytest.mark.parametrize(
    "now, archive, removed",
    [
        ("### Task 1: Parse\nStatus: done\n", "", ("Print",)),
        ("### Task 1: Print\nStatus: done\n", "", ("Parse",)),
        ("# Plan\n", "", ("Parse", "Print")),
        ("### Task 1: Parse\nStatus: done\n", "### Task 1: Print\nStatus: done\n", ()),
        (PHASES.replace("open", "done").replace("Print", "Print it"), "", ()),
    ],
)
def test_tasks_of_two_phases_may_have_the_same_number(
    now: str, archive: str, removed: tuple[str, ...]
) -> None:
    found = stands(PHASES, now, archive)
    assert (found.removed, found.is_done) == (removed, not removed)
    ledger, back = after(PHASES, now, archive), PHASES.replace("open", "done")
    assert after(now, back, archive, ledger).standing(tasks_in(back)).is_done


def test_task_of_an_earlier_plan_with_the_same_number_is_another_task() -> None:
    now, old = PLAN.replace("Task 2: Print dates\nStatus: open", ""), "- [x] Task 2: Old words\n"
    assert stands(PLAN, now, old).removed == ("Print dates",)
    for archive in (f"{old}- [x] Task 2: Print dates (a1b2c3)\n", f"- [x] Print dates\n{old}"):
        assert stands(PLAN, now, archive).removed == ()


def test_removed_task_stays_open_until_it_is_back_and_done() -> None:
    first = after(ONE_DONE, "- [x] Parse\n")
    second = after("- [x] Parse\n", "- [x] Parse\n", ledger=first)
    assert second.standing(tasks_in("- [x] Parse\n")).unfinished == ("Print (was removed)",)
    back = "- [x] Parse\n- [x] Print\n"
    assert after("- [x] Parse\n", back, ledger=second).standing(tasks_in(back)).is_done


def test_what_the_user_removes_between_iterations_is_gone() -> None:
    ledger = after(ONE_DONE, ONE_DONE)
    assert ledger.standing(tasks_in("- [x] Parse\n")).is_done


@pytest.mark.parametrize(
    "text, is_done, is_blocked",
    [
        ("", False, False),
        ("- [x] A\n", True, False),
        ("- [!] A\n", False, True),
        ("- [x] A\n- [!] B\n", False, True),
        ("- [ ] A\n- [!] B\n", False, False),
    ],
)
def test_when_all_is_done_or_only_blocked_tasks_are_left(
    text: str, *, is_done: bool, is_blocked: bool
) -> None:
    found = TaskLedger().standing(tasks_in(text))
    assert (found.is_done, found.is_blocked) == (is_done, is_blocked)


def test_ledger_of_many_tasks_stays_small_and_takes_linear_time() -> None:
    before = [Task(f"a{number}") for number in range(60_000)]
    now = [Task(f"b{number}") for number in range(60_000)]
    assert len(TaskLedger().after_agent(before, now, ()).removed) == 1000
