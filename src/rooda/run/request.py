"""How a run was started: its flags for the record, and the command that continues it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.paths import is_folder
from rooda.base.problems import InvalidInput, Problem, Severity
from rooda.loop.events.run import RunResumed
from rooda.loop.next_steps import RunCommands
from rooda.loop.state import State
from rooda.plan.command import Agent
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import PHASES, TextPart
from rooda.plan.world import World
from rooda.record.given_flags import GivenFlags
from rooda.world.state.folder import StateFolder, make_state_folder
from rooda.world.state.record_place import RecordPlace

# What a program that starts rooda asks for besides the run itself. The record keeps none of it.


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


_PROMPT_FLAGS = frozenset({"--context", *(f"--{phase}" for phase in PHASES)})


class TakenUp(Struct, frozen=True):
    """An earlier run that rooda resumes, in its folder and with these flags."""

    run: str
    world: World
    given: GivenFlags
    parameters: Mapping[str, Any]  # of the command, with the flags of both
    news: RunResumed  # `told` fills in the iteration

    def told(self, state: State) -> RunResumed:
        """Return the event that reports it."""
        return replace(self.news, iteration=state.iteration + 1)

    def explained(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems of the run, with a hint if its flags were not recorded."""
        if self.news.recorded:
            return [*problems]
        message = f"the flags of run {self.run} were not recorded"
        advice = "Give them again: version 0.1 did not keep them"
        return [*problems, Problem(message, advice, severity=Severity.WARNING)]


class Invocation(Struct, frozen=True):
    """One start of the command line."""

    commands: RunCommands  # their name of the run is `{run}`
    given: GivenFlags
    taken_up: TakenUp | None = None  # the earlier run that rooda resumes
    programs: ForPrograms = ForPrograms()


def readable_again(given: GivenFlags, plan: Plan) -> GivenFlags:
    """Return the flags with the text of each pipe, such as `-c <(command)`: a pipe is read once."""
    parts = [part.source for every in plan.phases.values() for part in every]
    sources = [*parts, *(context.source for context in plan.contexts)]
    pipes = {
        source.name: source.text
        for source in sources
        if isinstance(source, TextPart) and source.name != TextPart("").name
    }
    flags = tuple(
        (words[0], pipes.get(words[1], words[1])) if words[0] in _PROMPT_FLAGS else words
        for words in given.flags
    )
    return replace(given, flags=flags)
