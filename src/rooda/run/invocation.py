"""How a run was started: its flags for the record, and the command that continues it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import Problem, Severity
from rooda.loop.events.run import RunResumed
from rooda.loop.next_steps import RunCommands
from rooda.loop.state import State
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import PHASES, TextPart
from rooda.plan.world import World
from rooda.record.given_flags import GivenFlags
from rooda.run.for_programs import ForPrograms

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
