"""Whether the work is done, by the tasks or by a command of the user (`done_when`). Pure."""

from collections.abc import Sequence

from msgspec import Struct

from rooda.base.numbers import count
from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.stages import verify
from rooda.world.tasks.standing import TaskStanding, some
from rooda.world.tools import Finished

_MOST_TITLES = 10  # in the prompt
_ADVICE = (
    "Finish these tasks. Set the status of each task that is done, and do not remove tasks: one "
    "that is gone counts as open. If only a person can unblock a task, mark it as blocked."
)


class Answer(Struct, frozen=True):
    """Whether the work is done, and why; if it is not, with `advice` for the next prompt."""

    why: str
    advice: str = ""
    evidence: str = ""
    is_done: bool = False
    interrupted: bool = False


def by_tasks(standing: TaskStanding, file: str) -> Answer:
    """Return whether all tasks of the file are done."""
    if standing.trouble:
        advice = ". Bring the file back, with all of its tasks and their status."
        return Answer(f"rooda can't read the tasks: {standing.trouble}", advice)
    if standing.is_done:
        return Answer(f"all tasks in {file} are done", is_done=True)
    if not standing.count.total:
        advice = ". Bring its tasks back, each with its status."
        return Answer(f"{file} has no tasks", advice)
    left = [*standing.unfinished, *(f"{name} (blocked)" for name in standing.blocked)]
    gone = len(standing.removed)
    removed = f" ({gone} {'was' if gone == 1 else 'were'} removed)" if gone else ""
    why = f"{file} has {count(standing.count.open, 'open task')}{removed}"
    return Answer(why, f":\n\n{_titles(left)}\n\n{_ADVICE}", some(left))


def by_command(command: str, finished: Finished) -> Answer:
    """Return whether a command that has ended says that the work is done."""
    shown = without_secret_values(command)
    if finished.was_interrupted:
        return Answer(finished.error, interrupted=True)
    if finished.passed:
        return Answer(f"`{shown}` reports that the work is done", is_done=True)
    said = finished.last_words(verify.SHOWN) or "(nothing)"
    advice = f". The end of what it printed:\n\n{verify.indented(said)}"
    answer = "reports that the work is not done" if finished.exit_code == 1 else "did not answer"
    return Answer(f"`{shown}` {answer} ({finished.error})", advice, said)


def about_removed(standing: TaskStanding, file: str) -> str:
    """Return what the next prompt says about open tasks that the agent has removed."""
    return (
        f"These open tasks were removed from {file}. They still count as open: bring them back, "
        f"each with its status.\n\n{_titles(standing.removed)}"
    )


def _titles(names: Sequence[str]) -> str:
    more = len(names) - _MOST_TITLES
    lines = [*names[:_MOST_TITLES], *([f"... {more} more"] if more > 0 else [])]
    return verify.indented("\n".join(lines))
