"""The command lines that start the rooda of a run, in its slot or in a folder like it."""

from collections.abc import Sequence

from rooda.fleet.run_model import FleetTask
from rooda.world.process.first_moment import own_module

TASK_FILE = "../task.md"  # beside the work tree, at the same place in every slot


def first_words(task: FleetTask) -> list[str]:
    """Return the command of a new run, and its prompt."""
    return ["loop", TASK_FILE] if task.procedure is None else ["run", task.procedure]


def context_words(task: FleetTask) -> list[str]:
    """Return the words that give the text of a task to its procedure.

    A file: an argument has a limit, and other users can read it. To resume, too: in each slot the
    file is elsewhere.
    """
    return ["--context", TASK_FILE] if task.procedure is not None and task.text else []


def words_in_sandbox(
    task: FleetTask, flags: Sequence[str], record: str, command: str, *more: str
) -> tuple[str, ...]:
    """Return the words of a rooda that runs a command where the iterations of a run are at work.

    It makes the sandbox from the same flags, variables and config files as they do. So a command
    is never outside while they are inside.
    """
    alone = ("--record", record, "--only-run", command, *more)
    return tuple(own_module("rooda", *first_words(task), *alone, *context_words(task), *flags))
