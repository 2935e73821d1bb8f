"""What `rooda init` finds on the machine and in the project, to propose it in the config file."""

import shutil

from msgspec import Struct

from rooda.agents.registry import COMMANDS
from rooda.config.locate import read_global
from rooda.config.project_tests import CheckCommand, find_tests
from rooda.config.settings import AI_CMD, AI_CMD_ALIAS
from rooda.config.world import World
from rooda.workspace.tools import Tools


class Proposals(Struct, frozen=True):
    """The installed agents and the test commands, the most likely first of each.

    `chosen_in` is the user's global config file, if it chooses an agent.
    """

    agents: tuple[str, ...] = ()
    tests: tuple[CheckCommand, ...] = ()
    chosen_in: str = ""

    @property
    def agent(self) -> str | None:
        """The agent that the file chooses; None if there is none, or if the user has chosen one."""
        return None if self.chosen_in else next(iter(self.agents), None)


def find_proposals(world: World) -> Proposals:
    """Look for agents and tests. Starts no program."""
    return Proposals(_installed_agents(world), find_tests(world.folder), _chosen_in(world))


def _installed_agents(world: World) -> tuple[str, ...]:
    """Return the agents on the PATH; what is in the work tree may be an agent's own program."""
    tools = Tools(world.environ, [world.folder])
    found = {name: shutil.which(name, path=tools.path) for name in COMMANDS}
    return tuple(name for name, path in found.items() if path and not tools.is_in_work_tree(path))


def _chosen_in(world: World) -> str:
    layer = read_global(world, [])
    chosen = any(layer.loop.get(setting.key) for setting in (AI_CMD, AI_CMD_ALIAS))
    return layer.file if chosen else ""
