"""Runs all checks. A failed check becomes a finding, and the other checks still run."""

import platform
from typing import Any

from msgspec import Struct

from rooda import __version__
from rooda.base.problems import Tier
from rooda.base.system import system_name
from rooda.front.doctor import machine_checks
from rooda.front.doctor.agent_checks import AgentExamination, check_agents
from rooda.front.doctor.doctor_context import DoctorContext, DoctorOptions
from rooda.front.doctor.findings import Finding, Mark, has_problem
from rooda.front.doctor.fleet_checks import check_fleet
from rooda.front.doctor.machine_checks import check_notifications, check_sandbox
from rooda.front.doctor.programs import VERSION_TIMEOUT
from rooda.plan.inspect import inspect
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import GIT_COMMIT, GIT_PUSH, GIT_REQUIRE_CHANGES, MIN_FREE_DISK
from rooda.plan.world import World

SCHEMA_VERSION = 1


class Examination(Struct, frozen=True):
    """The findings about each agent and about the machine; about the fleet, if that was asked."""

    agents: tuple[AgentExamination, ...]
    machine: tuple[Finding, ...]
    fleet: tuple[Finding, ...] = ()

    @property
    def problems(self) -> int:
        """The number of things that the configuration needs and that do not work."""
        return sum(has_problem([one]) for one in self._everything)

    @property
    def warnings(self) -> int:
        """The number of things that may go wrong."""
        return sum(one.mark is Mark.WARNING for one in self._everything)

    @property
    def _everything(self) -> list[Finding]:
        of_agents = (one for agent in self.agents for one in agent.findings)
        return [*self.machine, *self.fleet, *of_agents]

    def to_json(self) -> dict[str, Any]:
        """Return all fields under their names in the JSON output."""
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.problems == 0,
            "rooda": __version__,
            "python": platform.python_version(),
            "platform": system_name(),
            "agents": [agent.to_json() for agent in self.agents],
            "machine": [one.to_json() for one in self.machine],
            **({"fleet": [one.to_json() for one in self.fleet]} if self.fleet else {}),
        }


def examine(
    world: World,
    options: DoctorOptions,
    timeout: float = VERSION_TIMEOUT,
    commands: frozenset[str] = frozenset(),
) -> Examination:
    """Check every agent and the machine; `commands` are names that procedures cannot have.

    `timeout` limits the seconds a program may take to print its version.
    """
    found = inspect(world, config=options.config, commands=commands)
    context = DoctorContext.read(world, options, [])
    return Examination(
        agents=tuple(check_agents(context, timeout)),
        machine=(
            *machine_checks.check_git(
                context.working_dir, context.tools, needed=_needs_git(context.values)
            ),
            machine_checks.check_lock(world.folder),
            machine_checks.check_free_space(world.folder, context.values[MIN_FREE_DISK]),
            *machine_checks.check_permissions(context.values, context.working_dir, world),
            *check_sandbox(context.values, context.tools, context.working_dir),
            *check_notifications(context.values, context.tools, world.environ),
            *machine_checks.check_config(found.layers, found.problems),
        ),
        fleet=tuple(check_fleet(world, options.config, context.tools)) if options.fleet else (),
    )


def _needs_git(values: Values) -> bool:
    """Return whether a run fails without git. A preset only pushes if pushing is possible."""
    pushes = values[GIT_PUSH] and values.origin(GIT_PUSH).tier > Tier.PRESET
    return pushes or values[GIT_COMMIT] or values[GIT_REQUIRE_CHANGES]
