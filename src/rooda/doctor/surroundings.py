"""The configuration as it holds here, and the environment that it makes for an agent."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rooda.agents.accounts import dropped, passed_on
from rooda.agents.launching import variables
from rooda.config.command import Agent
from rooda.config.environment import with_changes
from rooda.config.layers import Layers
from rooda.config.locate import read_layers
from rooda.config.problems import Problem
from rooda.config.resolve import Values, resolve
from rooda.config.settings import ENV, WORKING_DIR
from rooda.config.world import World
from rooda.workspace.tools import Tools


@dataclass(frozen=True, slots=True)
class Wish:
    """What the doctor is asked for: a config file, and flags as a run has them."""

    config: str | None = None
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for all agents: the environment, what the config adds to it, and who we are."""

    environ: Mapping[str, str]
    own_variables: tuple[str, ...] = ()
    is_root: bool = False

    def environ_of(self, agent: Agent) -> dict[str, str]:
        """The environment of an agent, with what its command line sets itself."""
        passed = passed_on(agent.program.adapter.facts, self.environ, self.own_variables)
        return with_changes(passed, variables(agent.argv))

    def dropped(self, agent: Agent) -> tuple[str, ...]:
        """The variables that the agent won't see."""
        return dropped(agent.program.adapter.facts, self.environ, self.own_variables)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The layers, the values that hold for the loop, and where and in what an agent would run."""

    world: World
    layers: Layers
    values: Values
    environ: Mapping[str, str]
    working_dir: Path
    tools: Tools

    @classmethod
    def of(cls, world: World, wish: Wish, problems: list[Problem]) -> "Surroundings":
        """Read the configuration; what is wrong with it is left out, and a problem."""
        layers = read_layers(world, wish.config, wish.flags, problems)
        values = resolve(layers)
        added: Mapping[str, str | None] = values[ENV]
        environ = with_changes(world.environ, added)
        chosen = values[WORKING_DIR]
        working_dir = Path(chosen) if chosen else world.folder
        tools = Tools(environ, [world.folder, working_dir])
        return cls(world, layers, values, environ, working_dir, tools)

    @property
    def circumstances(self) -> Circumstances:
        """What holds for every agent."""
        added: Mapping[str, str | None] = self.values[ENV]
        return Circumstances(self.environ, tuple(added), os.geteuid() == 0)
