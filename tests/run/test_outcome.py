from rooda.run.outcome import OutcomeKeeper
from rooda.world.tasks.standing import TaskCount
from support.happenings import SUCCEEDED, with_facts


def test_outcome_for_programs_counts_the_tasks() -> None:
    tasks = TaskCount(14, 20, 1)
    found = OutcomeKeeper("a", "build").outcome(with_facts(SUCCEEDED, tasks=tasks))
    assert (found.status, found.tasks) == ("success", tasks)
