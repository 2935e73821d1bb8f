"""Which agent is tried, and the command that is really run."""

from dataclasses import dataclass
from pathlib import Path

from rooda.agents.accounts import Account, account_of
from rooda.config.command import Agent, Choice, choice_problems, choose, command_of, split
from rooda.config.problems import InvalidInput, Problem, errors
from rooda.config.settings import AI_CMD, AI_CMD_ALIAS, ITERATION_TIMEOUT, SIGNALS_SUCCESS
from rooda.config.world import World
from rooda.doctor.canary import trial
from rooda.doctor.discretion import shown_command, without_secrets
from rooda.doctor.surroundings import Surroundings, Wish

TIMEOUT = "5m"
_OWN_FLAGS = ("--timeout", "--ai-cmd", "--canary", "--config")


@dataclass(frozen=True, slots=True)
class Canary:
    """The agent, its words made fit for another folder, and who pays.

    `config_errors` is how much of the configuration could not be used.
    """

    agent: Agent
    here: Surroundings
    account: Account
    config_errors: int = 0

    @property
    def command(self) -> str:
        """The command, for people to see."""
        return self.discreet(shown_command(self.agent.argv))

    def discreet(self, text: str) -> str:
        """A text of others without what nobody should see."""
        return without_secrets(text, self.here.circumstances.environ_of(self.agent))

    @property
    def timeout(self) -> float | None:
        """How long it may take."""
        return self.here.values[ITERATION_TIMEOUT]


def choose_canary(
    world: World, config: str | None, alias: str, command: str, timeout: str
) -> Canary:
    """The agent: an alias, a command, or with neither what the loop would start.

    Raises InvalidInput where there is none, with everything that is wrong with the question.
    """
    flags = {**trial.OFF, ITERATION_TIMEOUT.key: ("--timeout", timeout)}
    if alias:
        flags |= {AI_CMD_ALIAS.key: ("--canary", alias)}
    if command:
        flags |= {AI_CMD.key: ("--ai-cmd", command)}
    problems: list[Problem] = []
    here = Surroundings.of(world, Wish(config, flags), problems)
    if here.values[SIGNALS_SUCCESS] is None:  # nobody would listen; the canary has to be heard
        flags |= {SIGNALS_SUCCESS.key: ("--canary", str(SIGNALS_SUCCESS.default))}
        here = Surroundings.of(world, Wish(config, flags), [])
    wrong = [one for one in errors(problems) if one.field in _OWN_FLAGS]
    agent = _agent(here, wrong)
    if agent is None or errors(wrong):
        raise InvalidInput(errors(wrong))
    environ = here.circumstances.environ_of(agent)
    account = account_of(agent.program.adapter.facts, environ)
    return Canary(agent, here, account, len(errors(problems)))


def _agent(here: Surroundings, problems: list[Problem]) -> Agent | None:
    choice = choose(here.layers, "")
    if choice == Choice():
        advice = "Name one: rooda doctor --canary claude"
        problems.append(Problem("no agent is chosen here", advice))
        return None
    problems += choice_problems(here.layers, choice, "")
    command = command_of(here.layers, choice)
    if command is None:
        return None
    argv = split(command.text, command.origin, command.field, problems)
    return Agent.of(command, _portable(argv, here.working_dir)) if argv else None


def _portable(argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The words as they mean the same in another folder: files of this one by their whole path."""
    program, *rest = argv
    shown = _whole(program, folder) if "/" in program else program  # else the PATH has it
    return (shown, *(_whole(word, folder) if "/" in word or "." in word else word for word in rest))


def _whole(word: str, folder: Path) -> str:
    path = folder / word
    try:
        return str(path.absolute()) if path.is_file() else word
    except (OSError, ValueError):
        return word
