"""Whether the work is done, and what the next prompt says if it is not."""

import pytest
from msgspec import structs

from rooda.base.colors import Color
from rooda.loop.stages.doneness import about_removed, by_command, by_tasks
from rooda.world.process.exits import Exit, Exited, TimedOut
from rooda.world.tasks.standing import TaskCount, TaskLedger, TaskStanding
from rooda.world.tasks.task_file import tasks_in
from rooda.world.tools import Finished
from support.happenings import SUCCEEDED, with_facts


def standing(text: str, before: str = "") -> TaskStanding:
    tasks = tasks_in(text)
    return TaskLedger().after_agent(tasks_in(before), tasks, ()).standing(tasks)


@pytest.mark.parametrize(
    "found, is_done, why",
    [
        (standing("- [x] A\n- [x] B\n"), True, "all tasks in PLAN.md are done"),
        (standing("- [x] A\n- [ ] B\n"), False, "PLAN.md has 1 open task"),
        (standing("- [x] A\n- [!] B\n"), False, "PLAN.md has 1 open task"),
        (standing("- [x] A\n", "- [ ] B\n"), False, "PLAN.md has 1 open task (1 was removed)"),
        (
            standing("- [ ] A\n", "- [ ] B\n- [ ] C\n"),
            False,
            "PLAN.md has 3 open tasks (2 were removed)",
        ),
        (standing(""), False, "PLAN.md has no tasks"),
        (
            structs.replace(standing("- [x] A\n"), trouble="PLAN.md does not exist"),
            False,
            "rooda can't read the tasks: PLAN.md does not exist",
        ),
    ],
)
def test_all_tasks_have_to_be_done(found: TaskStanding, *, is_done: bool, why: str) -> None:
    answer = by_tasks(found, "PLAN.md")
    assert (answer.is_done, answer.why) == (is_done, why)


@pytest.mark.parametrize(
    "end, why",
    [
        (Exited(0), "`./x` reports that the work is done"),
        (Exited(1), "`./x` reports that the work is not done (exit code 1)"),
        (Exited(127), "`./x` did not answer (exit code 127)"),
        (TimedOut("verify.timeout", 1.0), "`./x` did not answer (timed out after 1s)"),
    ],
)
def test_only_exit_code_1_says_that_the_work_is_not_done(end: Exit, why: str) -> None:
    assert by_command("./x", Finished(end, b"", 0.1)).why == why


def test_prompt_names_at_most_ten_tasks() -> None:
    text = "".join(f"- [ ] Task {number}: T{number}\n" for number in range(1, 14))
    advice = by_tasks(standing(f"{text}- [!] Last\n"), "PLAN.md").advice
    assert advice.startswith(":\n\n    T1\n    T2\n")
    assert "\n    T10\n    ... 4 more\n\nFinish these tasks." in advice
    blocked = by_tasks(standing("- [!] B\n", "- [ ] C\n"), "PLAN.md")
    assert blocked.evidence == "C (was removed); B (blocked)"


def test_prompt_names_removed_tasks_even_without_a_signal() -> None:
    words = about_removed(standing("- [x] A\n", "- [ ] C\n"), "PLAN.md")
    assert words.startswith("These open tasks were removed from PLAN.md.")
    assert words.endswith("\n\n    C")


@pytest.mark.parametrize(
    "count, color", [(TaskCount(2, 3), Color.WARNING), (TaskCount(3, 3), Color.GOOD)]
)
def test_success_with_open_tasks_has_the_color_of_a_warning(count: TaskCount, color: Color) -> None:
    ended = with_facts(SUCCEEDED, tasks=count)
    assert ended.tone is color
    assert f"(3 iterations, {count.words}, total: " in ended.as_text()
