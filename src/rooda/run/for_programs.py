"""What a program that starts rooda asks for besides the run itself. The record keeps none of it."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rooda.base.paths import is_folder
from rooda.base.problems import InvalidInput, Problem
from rooda.plan.command import Agent
from rooda.plan.world import World
from rooda.world.state.folder import StateFolder, make_state_folder
from rooda.world.state.record_place import RecordPlace

_TITLE = "Record not usable"


class ForPrograms(Struct, frozen=True):
    """The interfaces for programs; paths are absolute.

    `run_id` is the name of a new run; rooda chooses one without it. `result` is a file for the
    outcome. `account` names what the usage limits of the agent are about. The run pauses after
    `pause_after` more iterations.
    """

    run_id: str = ""
    result: Path | None = None
    account: str = ""
    pause_after: int | None = None

    def accounts(self, agents: Sequence[Agent]) -> dict[str, str]:
        """Return the account of each agent's command; a fallback of another kind has its own."""
        names = {one.command.text: _known_name(one) for one in agents}
        first = _known_name(agents[0])
        if self.account:
            names = {text: self.account if one == first else one for text, one in names.items()}
        return names


def _known_name(agent: Agent) -> str:
    """Return the name of the agent as its adapter knows it, else as the user does."""
    program = agent.program
    return program.adapter.name if program.is_known else agent.name


def record_apart(folder: Path, world: World) -> RecordPlace:
    """Return the place of a record in a folder that the user chose. Raises InvalidInput."""
    found = Path(os.path.realpath(folder))
    tree = world.workspace()
    if found.is_relative_to(tree):
        message = f"the record can't be in {found}, which is a part of the work tree {tree}"
        raise _refused(message)
    if found.exists() and not is_folder(found):
        raise _refused(f"the record can't be in {found}, which is not a folder")
    return RecordPlace(tree, StateFolder(found))


def make_record_folder(state: StateFolder) -> None:
    """Create the folder for a record, private to the user. Raises InvalidInput."""
    try:
        make_state_folder(state)
    except OSError as error:
        message = f"the folder {state} can't be created for the record: {error.strerror}"
        raise _refused(message) from None


def _refused(message: str) -> InvalidInput:
    advice = "Choose another folder with --record, outside of the work tree"
    return InvalidInput([Problem(message, advice, title=_TITLE)])
