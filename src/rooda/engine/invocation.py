"""How a run was started: its flags for the record, and the command that continues it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.config.plan import Plan
from rooda.config.problems import Problem, Severity
from rooda.config.world import World
from rooda.engine.for_programs import ForPrograms
from rooda.loop.run_events import RunResumed
from rooda.loop.state import State
from rooda.loop.stops import MORE_ITERATIONS, StopRule
from rooda.prompts.parts import PHASES, TextPart
from rooda.record.given_flags import GivenFlags

# After these ends there is nothing to continue, or the user has what they asked for.
_AT_THE_END = (StopRule.DONE, StopRule.SIGNAL, StopRule.ONCE, StopRule.MAX_ITERATIONS)
_LOOKING = ("rooda show", "rooda report")  # for the runs of ralph too
_PROMPT_FLAGS = frozenset({"--context", *(f"--{phase}" for phase in PHASES)})
BUDGETS = {
    StopRule.MAX_COST: "--max-cost",
    StopRule.MAX_TOKENS: "--max-tokens",
    StopRule.MAX_DURATION: "--max-duration",
}


class Front(Struct, frozen=True):
    """The commands with which the user starts a run and continues it.

    `limits` are the flags of the command that raise the limit of a rule. `then` is the command that
    usually follows a run that has nothing left to do.
    """

    start: str
    resume: str  # with {run}
    limits: Mapping[StopRule, str] = field(default_factory=dict)
    then: str = ""

    def continuing(self, run: str, rule: StopRule | None = None, limit: str = "MORE") -> str:
        """Return the command that resumes the run, with a higher limit if a rule is given."""
        command = self.resume.format(run=run)
        flag = None if rule is None else self.limits.get(rule)
        return command if flag is None else f"{command} {flag} {limit}"

    def after(self, run: str, rule: StopRule) -> str:
        """Return the command that resumes a run that this rule ended; empty if there is none."""
        if rule in _AT_THE_END or (rule in BUDGETS and rule not in self.limits):
            return ""
        return self.continuing(run, rule if rule in BUDGETS else None)

    def next_commands(self, run: str, most: int | None, rule: StopRule) -> tuple[str, ...]:
        """Return the commands for the user after a run that this rule ended.

        `most` is the maximum of iterations that the run had.
        """
        going_on = self.after(run, rule)
        if rule in _AT_THE_END:
            going_on = self.then
        if rule is StopRule.MAX_ITERATIONS and not going_on and rule in self.limits:
            going_on = self.continuing(run, rule, str((most or 0) + MORE_ITERATIONS))
        return (*_LOOKING, going_on) if going_on else _LOOKING


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

    front: Front
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
