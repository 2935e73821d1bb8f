"""Whether the work is done, and what the next prompt says if it is not."""

import pytest
from msgspec import structs

from rooda.loop.doneness import about_removed, by_tasks
from rooda.tasks.markdown_tasks import tasks_in
from rooda.tasks.standing import TaskCount, TaskLedger, TaskStanding
from rooda.text.colors import Color
from support.happenings import SUCCEEDED


def standing(text: str, before: str = "") -> TaskStanding:
    tasks = tasks_in(text)
    return TaskLedger().after_agent(tasks_in(before), tasks, ()).standing(tasks)


@pytest.mark.parametrize(
    "found, is_done, why",
    [
        (standing("- [x] A\n- [x] B\n"), True, "all tasks in PLAN.md are done"),
        (standing("- [x] A\n- [ ] B\n"), False, "PLAN.md has 1 open task"),
        (standing("- [x] A\n- [!] B\n"), False, "PLAN.md has 1 open task"),
        (standing("- [x] A\n", "- [ ] B\n"), False, "PLAN.md has 1 open task"),
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
    ended = structs.replace(SUCCEEDED, tasks=count)
    assert ended.tone is color
    assert f"(3 iterations, {count.words}, total: " in ended.as_text()
