"""`rooda why` on rows of a night: what a person reads."""

import pytest

from rooda.loop.events.work import VerifyEnded
from rooda.views.terminal import why
from support.nights import checked, doubtful_night, iteration, night


@pytest.mark.parametrize(
    "verify,expected",
    [
        (checked(1), "\nVerify: passed after 40.0s (make test)\n"),
        (None, "\nVerify: did not run; only the agent says that the work is done\n"),
    ],
)
def test_an_end_says_whether_a_check_agrees_with_the_agent(
    verify: VerifyEnded | None, expected: str
) -> None:
    last = iteration(1, signal="SUCCESS", verdict="done", verify=verify)
    assert expected in why.of_run(night(), last, None)
    assert expected in why.of_iteration(night(), last, None)


def test_success_with_open_tasks_is_a_claim_of_the_agent() -> None:
    row, rows = doubtful_night()
    text = why.of_run(row, rows[-1], None)
    assert (
        "\nRule: signal. The agent signaled that the work is done, but 6 of 20 tasks are " in text
    )
    assert "\nTasks: 14 of 20 tasks; 6 open in PLAN.md: Parse dates, " in text
    found = why.as_object(row, rows[-1])
    assert found["tasks"] == found["iteration"]["tasks"] == {"done": 14, "total": 20, "blocked": 0}


def test_run_at_work_shows_how_many_tasks_are_done() -> None:
    row, rows = doubtful_night(status="running", rule=None, tasks_left=None)
    assert "\nTasks: 14 of 20 tasks\n" in why.of_run(row, rows[-1], None)
