"""Look at everything. Nothing is refused: what is broken is a finding, and the look goes on."""

import platform
from dataclasses import dataclass
from typing import Any

from rooda import __version__
from rooda.config.inspect import inspect
from rooda.config.origin import Tier
from rooda.config.resolve import Values
from rooda.config.settings import GIT_COMMIT, GIT_PUSH, GIT_REQUIRE_CHANGES
from rooda.config.world import World
from rooda.doctor import machine
from rooda.doctor.agent_report import AgentReport
from rooda.doctor.agents_here import look_at_agents
from rooda.doctor.findings import Finding, is_broken
from rooda.doctor.repository import look_at_git
from rooda.doctor.surroundings import Surroundings, Wish
from rooda.doctor.versions import PATIENCE

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found: of each agent, and of the machine."""

    agents: tuple[AgentReport, ...]
    machine: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        """How many things are broken that the configuration chooses or needs."""
        everything = [*self.machine, *(one for agent in self.agents for one in agent.findings)]
        return sum(is_broken([one]) for one in everything)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.problems == 0,
            "rooda": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "agents": [agent.to_json() for agent in self.agents],
            "machine": [one.to_json() for one in self.machine],
        }


def examine(
    world: World,
    wish: Wish,
    patience: float = PATIENCE,
    commands: frozenset[str] = frozenset(),
) -> Examination:
    """Look at every agent and at the machine; `commands` are the names that procedures can't have.

    `patience` is how long a program may take to tell its version.
    """
    found = inspect(world, config=wish.config, commands=commands)
    here = Surroundings.of(world, wish, [])
    return Examination(
        agents=tuple(look_at_agents(here, patience)),
        machine=(
            *look_at_git(here.working_dir, here.tools, needed=_needs_git(here.values)),
            machine.look_at_lock(world.folder),
            machine.look_at_disk(world.folder),
            *machine.look_at_places(here.values, here.working_dir, world),
            *machine.look_at_config(found.layers, found.problems),
        ),
    )


def _needs_git(values: Values) -> bool:
    """Whether a run would fail without git; who chose a preset that pushes can do without."""
    pushes = values[GIT_PUSH] and values.origin(GIT_PUSH).tier > Tier.PRESET
    return pushes or values[GIT_COMMIT] or values[GIT_REQUIRE_CHANGES]
