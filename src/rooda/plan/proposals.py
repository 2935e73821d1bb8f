"""What `rooda init` finds on the machine and in the project, to propose it in the config file."""

import os
import shutil

from msgspec import Struct

from rooda.plan.locate import CONFIG_NAME, read_global
from rooda.plan.project_tests import CheckCommand, find_tests
from rooda.plan.settings.settings import AI_CMD, AI_CMD_ALIAS
from rooda.plan.world import World
from rooda.world.agents.registry import COMMANDS
from rooda.world.git.work_tree import work_tree
from rooda.world.tools import Tools

_PROMPTS = ("prompts", "PROMPT.md", "PROMPT_build.md", "PROMPT_plan.md")
_CI = (
    *(".github/workflows", ".gitlab-ci.yml", ".circleci", ".ci", "Jenkinsfile", ".travis.yml"),
    *("azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite", ".drone.yml"),
    *(".woodpecker", ".woodpecker.yml", ".forgejo/workflows", ".gitea/workflows"),
)


class Proposals(Struct, frozen=True):
    """The installed agents and the test commands, the most likely first of each.

    `protect` are paths that the agent should not change: the config, the prompts and the CI files.
    `chosen_in` is the user's global config file, if it chooses an agent.
    """

    agents: tuple[str, ...] = ()
    tests: tuple[CheckCommand, ...] = ()
    chosen_in: str = ""
    protect: tuple[str, ...] = (CONFIG_NAME,)

    @property
    def agent(self) -> str | None:
        """The agent that the file chooses; None if there is none, or if the user has chosen one."""
        return None if self.chosen_in else next(iter(self.agents), None)


def find_proposals(world: World) -> Proposals:
    """Look for agents, tests, prompts and CI files. Starts no program."""
    return Proposals(
        _installed_agents(world),
        find_tests(world.folder),
        _chosen_in(world),
        _worth_protecting(world),
    )


def _worth_protecting(world: World) -> tuple[str, ...]:
    """Return the config file, and the prompts and CI files that exist, from the top of the tree."""
    top, here = work_tree(world.folder), world.folder.resolve()
    prompts = [here / name for name in _PROMPTS]
    found = [path for path in (*prompts, *(top / name for name in _CI)) if path.exists()]
    names = [f"{os.path.relpath(path, top)}{'/' if path.is_dir() else ''}" for path in found]
    return (CONFIG_NAME, *dict.fromkeys(names))


def _installed_agents(world: World) -> tuple[str, ...]:
    """Return the agents on the PATH; what is in the work tree may be an agent's own program."""
    tools = Tools(world.environ, [world.folder])
    found = {name: shutil.which(name, path=tools.path) for name in COMMANDS}
    return tuple(name for name, path in found.items() if path and not tools.is_in_work_tree(path))


def _chosen_in(world: World) -> str:
    layer = read_global(world, [])
    chosen = any(layer.loop.get(setting.key) for setting in (AI_CMD, AI_CMD_ALIAS))
    return layer.file if chosen else ""
