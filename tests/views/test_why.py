"""`rooda why` on rows of a night: what a person reads."""

import pytest

from rooda.loop.work_events import VerifyEnded
from rooda.views import why
from support.nights import checked, iteration, night


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
