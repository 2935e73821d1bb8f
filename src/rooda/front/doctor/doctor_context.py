"""The configuration that a run would use here, and every agent in it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from rooda.base.problems import Problem
from rooda.plan.command import Agent, AgentCommand, choose, command_of, fallbacks_of
from rooda.plan.layers import Alias, Layers
from rooda.plan.locate import read_layers
from rooda.plan.preflight.sandbox import variables_of_file
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.settings import AI_CMD_FALLBACKS, ENV, SANDBOX_KIND, WORKING_DIR
from rooda.plan.world import World, with_changes
from rooda.world.agents.agent_program import variables
from rooda.world.agents.facts import dropped, passed_on
from rooda.world.tools import Tools


class DoctorOptions(Struct, frozen=True):
    """The config file to read (None: the default file), and flags in the form of a run's flags.

    `fleet`: look at what `rooda fleet` and `rooda worker` need, too.
    """

    config: str | None = None
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    fleet: bool = False


class DoctorContext(Struct, frozen=True):
    """The input of the checks: the configuration, and the folder and environment of an agent.

    `values` are the settings of the loop. `environ` is the environment with the changes of `env`;
    `tools` have it without those of the work tree's file.
    """

    world: World
    layers: Layers
    values: Values
    environ: Mapping[str, str]
    working_dir: Path
    tools: Tools
    is_root: bool = False

    @classmethod
    def read(cls, world: World, options: DoctorOptions, problems: list[Problem]) -> "DoctorContext":
        """Read the configuration; invalid values are skipped and added to `problems`."""
        layers = read_layers(world, options.config, options.flags, problems)
        values = resolve(layers)
        added: Mapping[str, str | None] = values[ENV]
        environ = with_changes(world.environ, added)
        chosen = values[WORKING_DIR]
        working_dir = Path(chosen) if chosen else world.folder
        of_file = variables_of_file(values)
        of_user = {name: value for name, value in added.items() if name not in of_file}
        folders = [world.workspace(), world.folder, working_dir]
        tools = Tools(with_changes(world.environ, of_user), folders)
        return cls(world, layers, values, environ, working_dir, tools, os.geteuid() == 0)

    def environ_of(self, agent: Agent) -> dict[str, str]:
        """Return the environment of an agent, with the changes made by its command line."""
        passed = passed_on(agent.program.adapter.facts, self.environ, self._own_variables)
        environ = with_changes(passed, variables(agent.argv))
        has_sandbox = self.values[SANDBOX_KIND] != SANDBOX_KIND.default
        return {**environ, **agent.program.adapter.needs.environ} if has_sandbox else environ

    def environ_outside(self, agent: Agent) -> dict[str, str]:
        """Return the same without what the file of the work tree sets."""
        environ = passed_on(agent.program.adapter.facts, self.tools.environ, self._own_variables)
        is_of_user = agent.command.written.tree is None
        return with_changes(environ, variables(agent.argv) if is_of_user else {})

    def dropped(self, agent: Agent) -> tuple[str, ...]:
        """Return the variables that rooda does not pass on to the agent."""
        return dropped(agent.program.adapter.facts, self.environ, self._own_variables)

    @property
    def _own_variables(self) -> tuple[str, ...]:
        """The variables that the configuration sets."""
        added: Mapping[str, str | None] = self.values[ENV]
        return tuple(added)


class Candidate(Struct, frozen=True):
    """An alias, or a command that a setting gives without an alias.

    `source` is the place of its definition. `chosen_by` are the settings that choose it.
    """

    command: AgentCommand
    source: str
    chosen_by: tuple[str, ...] = ()


def candidates(layers: Layers) -> list[Candidate]:
    """Return all aliases in their order, then the commands without an alias."""
    choosers: dict[tuple[str | None, str], list[str]] = {}
    direct: dict[str, AgentCommand] = {}
    for command in _chosen_commands(layers):
        chooser = f"{command.field} ({command.origin.exact})"
        choosers.setdefault((command.alias, command.text), []).append(chooser)
        if command.alias is None:
            direct.setdefault(command.text, command)
    found = [
        (_alias_command(layers, name), defined.origin.exact)
        for name, defined in layers.aliases().items()
    ]
    found += [(command, command.origin.exact) for command in direct.values()]
    return [
        Candidate(
            command, source, tuple(dict.fromkeys(choosers.get((command.alias, command.text), [])))
        )
        for command, source in found
    ]


def _alias_command(layers: Layers, name: str) -> AgentCommand:
    defined = layers.aliases()[name]
    alias: Alias = defined.value
    origin = defined.origin
    known = alias.adapter, name, origin
    return AgentCommand(alias.command, str(origin), origin, defined.field, *known)


def _chosen_commands(layers: Layers) -> Iterator[AgentCommand]:
    """Yield the commands and fallbacks of the loop and of every procedure."""
    for procedure in ("", *layers.procedure_names()):
        command = command_of(layers, choose(layers, procedure))
        if command is not None:
            yield command
        values = resolve(layers, procedure)
        origin, field_name = values.origin(AI_CMD_FALLBACKS), values.field(AI_CMD_FALLBACKS)
        words = values[AI_CMD_FALLBACKS]
        yield from fallbacks_of(layers, words, origin, field_name)
