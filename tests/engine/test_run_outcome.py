from msgspec.structs import replace

from rooda.engine.run_outcome import OutcomeKeeper
from rooda.tasks.standing import TaskCount
from support.happenings import SUCCEEDED


def test_outcome_for_programs_counts_the_tasks() -> None:
    tasks = TaskCount(14, 20, 1)
    found = OutcomeKeeper("a", "build", 20).outcome(replace(SUCCEEDED, tasks=tasks))
    assert (found.status, found.tasks) == ("success", tasks)
