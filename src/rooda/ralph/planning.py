"""From ralph's home and arguments to the plan that the engine runs: everything is decided here."""

import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.config import checks as look
from rooda.config import overrides
from rooda.config.command import Agent, AgentCommand, choice_problems, choose, command_of, split
from rooda.config.git_checks import TITLE as GIT_TITLE
from rooda.config.git_checks import Obstacle, check_git, find_top
from rooda.config.layers import Layer, Layers, Valued
from rooda.config.locate import read_builtin, read_preset
from rooda.config.origin import Origin, Tier
from rooda.config.plan import Plan, Prepared, RunRequest
from rooda.config.problems import Problem, Severity
from rooda.config.resolve import Values, resolve
from rooda.config.setting import Setting
from rooda.config.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    MAX_ATTEMPTS,
    MAX_ITERATIONS,
    PRESET,
    PRESETS,
    REQUIRED_FILE,
    REQUIRED_MESSAGE,
    SESSION_LOG,
    VERIFY_COMMAND,
    WORKING_DIR,
)
from rooda.config.world import World
from rooda.prompts.parts import FilePart, PromptError
from rooda.ralph.config_file import LARGEST_FILE, ConfigFinding, RalphConfig, read_config
from rooda.ralph.home import Home
from rooda.ralph.plan_tasks import PlanTasks, RalphPrompt
from rooda.ralph.test_command import find_test_command
from rooda.text.paths import anchored, shown_from
from rooda.workspace.state_folder import read_plain_file
from rooda.workspace.tools import Tools

_NO_PLAN = "Implementation plan not found. Run 'ralph plan' first."
_AGENTS = "AGENTS.md"
_LARGEST_AGENTS = 1024 * 1024


class Wish(Struct, frozen=True):
    """What the user asked for. `file` is the prompt of `ralph prompt`."""

    mode: str
    max_iterations: tuple[str, str] | None = None  # the flag or argument, and the number
    config: str | None = None
    file: str | None = None


def prepare(wish: Wish, world: World) -> Prepared:
    """Read everything, decide everything, and collect every problem on the way."""
    return _Planning(wish, world).prepared()


def project_root(wish: Wish, world: World) -> Path:
    """The folder that has the record of ralph's runs."""
    return _Planning(wish, world).root


class _Planning:
    def __init__(self, wish: Wish, world: World) -> None:
        self._wish = wish
        self._world = world
        self._problems: list[Problem] = []
        self._home = Home.find(world.folder)
        self._config, self._shown = self._read_config()
        self._root = self._project_root()

    @property
    def root(self) -> Path:
        return self._root

    def prepared(self) -> Prepared:
        wish, root = self._wish, self._root
        layers = self._layers()
        values = resolve(layers, wish.mode)
        template = self._template()
        command, argv = self._command(layers)
        environ = dict(self._world.environ)
        found = []
        if command is not None and argv:
            found.append(look.check_program(argv, command, root, environ))
        found += look.check_places(values, root, root)
        self._problems += look.check_disk(root)
        tools = Tools(environ, [root])
        self._problems += self._check_repository(values, tools)
        self._problems += self._check_specs()
        plan = None
        if command is not None and argv and template is not None:
            plan = self._plan(values, template, command, argv, tools)
        request = RunRequest(f"ralph {wish.mode}")
        return Prepared(request, values, command, plan, tuple(self._problems), tuple(found))

    def _plan(
        self,
        values: Values,
        template: RalphPrompt,
        command: AgentCommand,
        argv: tuple[str, ...],
        tools: Tools,
    ) -> Plan:
        wish = self._wish
        untested = wish.mode == "build" and values[VERIFY_COMMAND] is None
        return Plan(
            procedure=f"ralph {wish.mode}",
            phases={},
            contexts=(),
            agents=(Agent.of(command, argv),),
            values=values,
            workspace=self._root,
            working_dir=self._root,
            environ=tools.environ,
            tools=tools,
            work=PlanTasks(None if wish.mode == "prompt" else self._home.plan, template.file),
            template=template,
            mode=wish.mode,
            notes=(("Tests", "none found"),) if untested else (),
        )

    # -- what the files say ------------------------------------------------------------------

    def _read_config(self) -> tuple[RalphConfig, str]:
        given = self._wish.config
        world = self._world
        path = self._home.config if given is None else anchored(world.folder, given, world.home)
        shown = shown_from(world.folder, path, world.home)
        try:
            data = read_plain_file(path.resolve(), LARGEST_FILE + 1)
        except FileNotFoundError:
            if given is not None:
                problem = Problem("the file does not exist", "Correct --config", file=shown)
                self._problems.append(problem)
            return RalphConfig(), shown
        except OSError as error:
            message = f"can't be read: {error.strerror or error}"
            self._problems.append(Problem(message, "Check its path and mode", file=shown))
            return RalphConfig(), shown
        config, findings = read_config(data, shown)
        self._problems += [_problem(finding, shown) for finding in findings]
        return config, shown

    def _project_root(self) -> Path:
        """The project, unless the config names another; relative to the config's folder."""
        named = self._config.project_root
        if named is None:
            return self._home.project
        root = anchored(self._home.folder, named, self._world.home).resolve()
        if not root.is_dir():
            message, advice = f"{root} is not a folder", "Correct PROJECT_ROOT, or remove it"
            line = self._config.lines.get("PROJECT_ROOT")
            self._problems.append(Problem(message, advice, self._shown, line, "PROJECT_ROOT"))
            return self._home.project
        return root

    def _template(self) -> RalphPrompt | None:
        """The prompt, which must be there before the first iteration."""
        wish, world = self._wish, self._world
        if wish.file is not None:
            path = anchored(world.folder, wish.file, world.home)
        else:
            path = self._home.prompt(wish.mode)
        file = FilePart(path, shown_from(world.folder, path, world.home))
        template = RalphPrompt(file, tuple(self._names().items()))
        try:
            template.read(1)
        except PromptError as error:
            hint = "Make one with `ralph init`" if wish.file is None else error.hint
            self._problems.append(Problem(str(error), hint, title="Prompt file invalid"))
            return None
        return template

    def _names(self) -> Mapping[str, str]:
        """What `${NAME}` stands for in a prompt."""
        config = self._config
        return {
            "PROJECT_ROOT": str(self._root),
            "SPECS_DIR": config.specs_dir or "specs",
            "AGENT_CLI": config.agent_cli or "",
            "AGENT_ARGS": config.agent_args or "",
            "DEFAULT_MAX_ITERATIONS": str(config.default_max_iterations or 10),
            "MAX_RETRIES": str(config.max_retries or 3),
            "TEST_COMMAND": (self._test_command() or ("", None))[0],
            "PLAN_PATH": os.path.relpath(self._home.plan, self._root),
            "MODE": self._wish.mode,
        }

    def _test_command(self) -> tuple[str, Origin] | None:
        """The command, and where it was found; an empty one means none, and nobody looks on."""
        config = self._config
        if config.test_command is not None:
            line = config.lines.get("TEST_COMMAND")
            found = config.test_command.strip()
            return (found, Origin(Tier.WORKSPACE, self._shown, line)) if found else None
        for folder in (self._root, self._home.folder):
            path = folder / _AGENTS
            try:
                text = read_plain_file(path.resolve(), _LARGEST_AGENTS).decode("utf-8", "replace")
            except OSError:
                continue
            if (command := find_test_command(text)) is not None:
                shown = shown_from(self._world.folder, path, self._world.home)
                return (command, Origin(Tier.WORKSPACE, shown)) if command else None
        return None

    # -- layers ------------------------------------------------------------------------------

    def _layers(self) -> Layers:
        flags = {}
        if self._wish.max_iterations is not None:
            flags[MAX_ITERATIONS.key] = self._wish.max_iterations
        workspace = Layer(Tier.WORKSPACE, self._shown)
        workspace.loop.update(self._file_values())
        environment = overrides.from_environment(self._world, self._problems)
        environment.loop.pop(PRESET.key, None)  # it is about rooda; this is ralph
        return Layers(
            cli=overrides.from_flags(flags, self._world, self._problems),
            environment=environment,
            workspace=workspace,
            global_=Layer(Tier.GLOBAL),
            presets={name: read_preset(name) for name in PRESETS},
            builtin=replace(read_builtin(), procedures={}),
        )

    def _file_values(self) -> dict[str, Valued]:
        """The settings that ralph's files and modes stand for."""
        config, mode = self._config, self._wish.mode
        values: dict[str, Valued] = {}

        def put(setting: Setting[Any], value: object, name: str = "") -> None:
            origin = Origin(Tier.WORKSPACE, self._shown, config.lines.get(name))
            values[setting.key] = Valued(value, origin, name or setting.field)

        put(PRESET, "ralph")
        put(WORKING_DIR, str(self._root))
        put(SESSION_LOG, str(self._home.session_log(datetime.now().astimezone())))
        for name, setting, value in self._agent():
            put(setting, value, name)
        if mode == "prompt":
            return values  # the rest is about loops
        if config.default_max_iterations is not None:
            put(MAX_ITERATIONS, config.default_max_iterations, "DEFAULT_MAX_ITERATIONS")
        if config.max_retries is not None:
            put(MAX_ATTEMPTS, config.max_retries, "MAX_RETRIES")
        if mode == "build":
            put(REQUIRED_FILE, str(self._home.plan))
            put(REQUIRED_MESSAGE, _NO_PLAN)
            if (found := self._test_command()) is not None:
                command, origin = found
                values[VERIFY_COMMAND.key] = Valued(command, origin, "TEST_COMMAND")
        return values

    def _agent(self) -> Iterator[tuple[str, Setting[Any], str]]:
        """The agent's command; a known name without arguments means its headless form."""
        cli, arguments = self._config.agent_cli, self._config.agent_args
        if cli is None:
            return
        if arguments is None and cli in read_builtin().aliases:
            yield "AGENT_CLI", AI_CMD_ALIAS, cli
        else:
            # The program is one word, whatever is in it; its arguments are split like a shell's.
            words = f"{shlex.quote(cli) if Path(cli).exists() else cli} {arguments or ''}".strip()
            yield "AGENT_CLI", AI_CMD, words

    def _command(self, layers: Layers) -> tuple[AgentCommand | None, tuple[str, ...]]:
        choice = choose(layers, self._wish.mode)
        if choice.direct is None and choice.alias is None:
            names = ", ".join(read_builtin().aliases)
            problem = Problem(
                "no agent is named",
                f"Write AGENT_CLI=NAME into it; known names: {names}",
                self._shown,
                field="AGENT_CLI",
                title="No agent",
            )
            self._problems.append(problem)
            return None, ()
        self._problems += choice_problems(layers, choice, self._wish.mode)
        command = command_of(layers, choice)
        if command is None:
            return None, ()
        return command, split(command.text, command.origin, command.field, self._problems)

    # -- what has to be there ----------------------------------------------------------------

    def _check_repository(self, values: Values, tools: Tools) -> Iterator[Problem]:
        """Ralph works in git repositories alone, whatever it is told of commits."""
        found = find_top(self._root, tools)
        if isinstance(found, Obstacle):
            yield Problem(found.reason, found.fix, title=GIT_TITLE)
        else:
            yield from check_git(values, self._root, tools)

    def _check_specs(self) -> Iterator[Problem]:
        name = self._config.specs_dir or "specs"
        if self._wish.mode != "prompt" and not (self._root / name).is_dir():
            yield Problem(
                f"the folder of specifications is missing: {name}",
                "Create it, or name another with SPECS_DIR",
                field="SPECS_DIR",
                severity=Severity.WARNING,
            )
        if self._wish.mode == "build" and self._test_command() is None:
            yield Problem(
                "no test command was found: nothing is tested before a commit",
                "Set TEST_COMMAND in ralph's config, or write `Test: COMMAND` into AGENTS.md",
                field="TEST_COMMAND",
                severity=Severity.WARNING,
            )


def _problem(finding: ConfigFinding, shown: str) -> Problem:
    severity = Severity.ERROR if finding.is_error else Severity.WARNING
    return Problem(finding.message, finding.suggestion, shown, finding.line, finding.key, severity)
