"""Describes a run of ralph as a RunRequest, from the arguments and the files in `.ralph`."""

import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.paths import anchored, shown_from
from rooda.base.problems import Origin, Problem, Severity, Tier
from rooda.base.templates import SHELL, fill
from rooda.front.ralph.config_file import LARGEST_FILE, ConfigFinding, RalphConfig, read_config
from rooda.front.ralph.home import Home
from rooda.front.ralph.test_command import find_test_command
from rooda.plan.layers import Layer, Valued
from rooda.plan.locate import tree_around
from rooda.plan.plan import CurrentTask
from rooda.plan.preflight.tasks import task_file
from rooda.plan.prepare import OwnFiles, Prepared, RunRequest, prepare
from rooda.plan.prompts.parts import FilePart, PromptError, PromptTooLargeError, refuse_empty
from rooda.plan.resolve import ONCE
from rooda.plan.settings.flag_names import FlagNames
from rooda.plan.settings.kinds import WrongValue
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    DONE_WHEN,
    EXPECTED_FILE,
    ITERATION_MODE,
    MAX_ATTEMPTS,
    MAX_ITERATIONS,
    MAX_PROMPT_SIZE,
    PRESET,
    REQUIRED_FILE,
    REQUIRED_MESSAGE,
    SESSION_LOG,
    TASKS,
    VERIFY_COMMAND,
    WORKING_DIR,
)
from rooda.plan.world import World
from rooda.world.agents.registry import COMMANDS
from rooda.world.files.sight import Sight, read_named
from rooda.world.tasks.task_file import (
    Task,
    TaskFile,
    TaskFileError,
    became_complete,
    current_task,
    first_heading,
)

# The task of an iteration by ralph's implementation plan, and ralph's prompt.


_NO_TASK = "none"


class PlanTasks(Struct):
    """Reads the plan before and after the agent, which may have changed it."""

    plan: TaskFile | None  # None if the agent does not work on a task of the plan
    prompt: FilePart
    _before: tuple[Task, ...] = ()

    def now(self) -> CurrentTask:
        """Return the task in progress, else the first open one, else the heading of the prompt."""
        self._before = self._tasks()
        task = current_task(self._before)
        if task is not None:
            return CurrentTask(task.name, task.spec or "none")
        return CurrentTask(self._heading(), "none")

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the task that became complete, else the one before."""
        task = became_complete(self._before, self._tasks())
        return CurrentTask(task.name, task.spec or "none") if task is not None else before

    def in_sight(self, sight: Sight, /) -> "PlanTasks":
        """Return the tasks for an agent that sees only this."""
        plan = None if self.plan is None else replace(self.plan, sight=sight)
        return PlanTasks(plan, replace(self.prompt, sight=sight))

    def _tasks(self) -> tuple[Task, ...]:
        return () if self.plan is None else tasks_of(self.plan)

    def _heading(self) -> str:
        try:
            return first_heading(self.prompt.read(MAX_PROMPT_SIZE.default)) or _NO_TASK
        except PromptError:
            return _NO_TASK


def tasks_of(plan: TaskFile) -> tuple[Task, ...]:
    """Return the tasks in the plan; none if it can't be read."""
    try:
        return plan.read()
    except TaskFileError:
        return ()


class RalphPrompt(Struct, frozen=True):
    """A prompt file with `${NAME}`s in it."""

    file: FilePart
    names: tuple[tuple[str, str], ...]

    def in_sight(self, sight: Sight, /) -> "RalphPrompt":
        """Return the prompt for an agent that sees only this."""
        return replace(self, file=replace(self.file, sight=sight))

    def read(self, iteration: int, most: int | None = None, /) -> str:
        """Return the prompt of an iteration. Raises PromptError, also beyond `most` bytes."""
        text = self.file.read(most)
        refuse_empty(text, self.file.name)
        return fill(text, {**dict(self.names), "ITERATION": iteration}, SHELL)


_NO_PLAN = "Implementation plan not found. Run 'ralph plan' first."
_AGENTS = "AGENTS.md"
_OWN_NAMES = {
    AI_CMD.flag_name: "AGENT_CLI",
    DONE_WHEN.flag_name: "DONE_WHEN",
    AI_CMD_ALIAS.flag_name: "AGENT_CLI",
    VERIFY_COMMAND.flag_name: "TEST_COMMAND",
    MAX_ATTEMPTS.flag_name: "MAX_RETRIES",
}
_LARGEST_AGENTS = 1024 * 1024


class RalphArgs(Struct, frozen=True):
    """The arguments of ralph. `file` is the prompt of `ralph prompt`.

    `flags` is `{setting key: (flag or argument, text)}`.
    """

    mode: str
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    config: str | None = None
    file: str | None = None
    known: frozenset[str] = frozenset()  # the flags of the command


def prepare_ralph(
    args: RalphArgs, world: World, *, resumed: bool = False, is_preview: bool = False
) -> Prepared:
    """Return the plan of a run of ralph, and everything that is wrong with it."""
    request = RalphFiles(args, world).request()
    prepared = prepare(replace(request, resumed=resumed, is_preview=is_preview), world)
    plan = prepared.plan
    if plan is not None and args.mode == "build" and plan.values[VERIFY_COMMAND] is None:
        plan = replace(plan, notes=(("Tests", "none found"),))
    return replace(prepared, plan=plan)


class RalphFiles:
    """The files of ralph: each is read once, and `problems` has what is wrong with them."""

    def __init__(self, args: RalphArgs, world: World) -> None:
        self._args = args
        self._world = world
        self.problems: list[Problem] = []
        self._home = Home.find(world.folder, world.top)
        path, self._tree = self._home.config, tree_around(self._home.project, world.folder)
        if args.config is not None:
            path = anchored(world.folder, args.config, world.home)
            self._tree = tree_around(path.parent, world.folder)
        self._shown = shown_from(world.folder, path, world.home)
        self._config = self._read_config(path)
        self.root = self._project_root()

    def request(self) -> RunRequest:
        """Return the run that the arguments and files ask for."""
        mode = self._args.mode
        layer = Layer(Tier.WORKSPACE, self._shown, loop=self._values())
        file = self._prompt_file()
        prompt = self._prompt(file)
        self.problems += self._warnings()
        own = OwnFiles(
            procedure=f"ralph {mode}",
            root=self.root,
            layer=layer,
            prompt=prompt,
            tasks=PlanTasks(self._plan if mode == "build" else None, file),
            no_agent=self._no_agent(),
            problems=tuple(self.problems),
            flags=FlagNames(self._args.known, _OWN_NAMES),
        )
        return RunRequest(mode, self._args.flags, own=own)

    # -- what the files say ------------------------------------------------------------------

    def _read_config(self, path: Path) -> RalphConfig:
        try:
            data = read_named(path, LARGEST_FILE + 1)
        except FileNotFoundError:
            if self._args.config is not None:
                problem = Problem("the file does not exist", "Correct --config", file=self._shown)
                self.problems.append(problem)
            return RalphConfig()
        except OSError as error:
            message = f"can't be read: {error.strerror or error}"
            problem = Problem(message, "Check its path and mode", file=self._shown)
            self.problems.append(problem)
            return RalphConfig()
        config, findings = read_config(data, self._shown)
        self.problems += [_problem(finding, self._shown) for finding in findings]
        return config

    def _project_root(self) -> Path:
        """Return PROJECT_ROOT, which is relative to ralph's home, else the folder around it."""
        named = self._config.project_root
        if named is None:
            return self._home.project
        root = anchored(self._home.folder, named, self._world.home).resolve()
        if not root.is_dir():
            message, advice = f"{root} is not a folder", "Correct PROJECT_ROOT, or remove it"
            line = self._config.lines.get("PROJECT_ROOT")
            self.problems.append(Problem(message, advice, self._shown, line, "PROJECT_ROOT"))
            return self._home.project
        return root

    @property
    def _plan(self) -> TaskFile:
        return task_file(self._home.plan, self._world, (self.root, self._home.project))

    def _prompt_file(self) -> FilePart:
        args, world = self._args, self._world
        path = self._home.prompt(args.mode)
        if args.file is not None:
            path = anchored(world.folder, args.file, world.home)
        return FilePart(path, shown_from(world.folder, path, world.home))

    def _prompt(self, file: FilePart) -> RalphPrompt | None:
        """Return the prompt; None, and a problem, if it can't be read before the first start."""
        prompt = RalphPrompt(file, tuple(self._names().items()))
        try:
            prompt.read(1, MAX_PROMPT_SIZE.default)
        except PromptTooLargeError:
            return prompt  # the check of the plan reports it, with the size that the user has set
        except PromptError as error:
            hint = "Make one with `ralph init`" if self._args.file is None else error.hint
            self.problems.append(Problem(str(error), hint, title="Prompt file invalid"))
            return None
        return prompt

    def _names(self) -> Mapping[str, str]:
        """Return the names for `${NAME}` in a prompt, and their values."""
        config, found = self._config, self._test_command
        return {
            "PROJECT_ROOT": str(self.root),
            "SPECS_DIR": config.specs_dir or "specs",
            "AGENT_CLI": config.agent_cli or "",
            "AGENT_ARGS": config.agent_args or "",
            "DEFAULT_MAX_ITERATIONS": str(config.default_max_iterations or 10),
            "MAX_RETRIES": str(config.max_retries or 3),
            "TEST_COMMAND": "" if found is None else found[0],
            "PLAN_PATH": os.path.relpath(self._home.plan, self.root),
            "MODE": self._args.mode,
        }

    @cached_property
    def _test_command(self) -> tuple[str, Origin] | None:
        """The test command and its origin. An empty TEST_COMMAND means none and ends the search."""
        config = self._config
        if config.test_command is not None:
            line = config.lines.get("TEST_COMMAND")
            found = config.test_command.strip()
            return (found, Origin(Tier.WORKSPACE, self._shown, line)) if found else None
        for folder in (self.root, self._home.folder):
            path = folder / _AGENTS
            try:
                data = read_named(path, _LARGEST_AGENTS)
                text = data.decode("utf-8", "replace")
            except OSError:
                continue
            if (command := find_test_command(text)) is not None:
                shown = shown_from(self._world.folder, path, self._world.home)
                return (command, Origin(Tier.WORKSPACE, shown)) if command else None
        return None

    # -- the settings that they stand for ----------------------------------------------------

    def _values(self) -> dict[str, Valued]:
        config, mode = self._config, self._args.mode
        values: dict[str, Valued] = {}

        def put(setting: Setting[Any], value: object, name: str = "") -> None:
            origin = Origin(Tier.WORKSPACE, self._shown, config.lines.get(name), self._tree)
            values[setting.key] = Valued(value, origin, name or setting.field)

        put(PRESET, "ralph")
        put(WORKING_DIR, str(self.root), "PROJECT_ROOT")
        put(SESSION_LOG, str(self._home.session_log(datetime.now().astimezone())))
        for setting, value in self._agent():
            put(setting, value, "AGENT_CLI")
        if mode == "prompt":
            put(ITERATION_MODE, ONCE)
            return values  # the other settings are for loops
        if config.default_max_iterations is not None:
            put(MAX_ITERATIONS, config.default_max_iterations, "DEFAULT_MAX_ITERATIONS")
        if config.max_retries is not None:
            put(MAX_ATTEMPTS, config.max_retries, "MAX_RETRIES")
        if mode == "plan":
            put(EXPECTED_FILE, str(self._home.plan))
        if mode == "build":
            put(REQUIRED_FILE, str(self._home.plan))
            put(REQUIRED_MESSAGE, _NO_PLAN)
            put(TASKS, str(self._home.plan))
            if (done_when := self._done_when()) is not None:
                put(DONE_WHEN, done_when, "DONE_WHEN")
            if self._test_command is not None:
                command, origin = self._test_command
                values[VERIFY_COMMAND.key] = Valued(command, origin, "TEST_COMMAND")
        return values

    def _done_when(self) -> str | None:
        """Return what decides that the work is done; None, and maybe a problem, if not set."""
        if self._config.done_when is None:
            return None
        try:
            return str(DONE_WHEN.check(self._config.done_when))
        except WrongValue as wrong:
            line = self._config.lines.get("DONE_WHEN")
            problem = Problem(str(wrong), wrong.suggestion, self._shown, line, "DONE_WHEN")
            self.problems.append(problem)
            return None

    def _agent(self) -> Iterator[tuple[Setting[Any], str]]:
        """Yield the agent's command; a known agent without arguments gets those of its alias."""
        cli, arguments = self._config.agent_cli, self._config.agent_args
        if cli is None:
            return
        if arguments is None and cli in COMMANDS:
            yield AI_CMD_ALIAS, cli
            return
        if arguments is None and (known := COMMANDS.get(Path(cli).name)) is not None:
            arguments = known.partition(" ")[2]
        # A program that exists is one word, even with spaces in its path.
        words = f"{shlex.quote(cli) if Path(cli).exists() else cli} {arguments or ''}".strip()
        yield AI_CMD, words

    # -- problems ----------------------------------------------------------------------------

    def _no_agent(self) -> Problem:
        advice = f"Write AGENT_CLI=NAME into it; known names: {', '.join(COMMANDS)}"
        if not self._home.config.exists() and self._args.config is None:
            advice = f"Make the file with `ralph init`. {advice}"
        return Problem(
            "no agent is named",
            advice,
            self._shown,
            field="AGENT_CLI",
            title="No agent",
        )

    def _warnings(self) -> Iterator[Problem]:
        name = self._config.specs_dir or "specs"
        if self._args.mode != "prompt" and not (self.root / name).is_dir():
            yield Problem(
                f"the folder of specifications is missing: {name}",
                "Create it, or name another with SPECS_DIR",
                field="SPECS_DIR",
                severity=Severity.WARNING,
            )
        if self._args.mode == "build":
            yield from self._warn_of_plan()
        if self._args.mode == "build" and self._test_command is None:
            yield Problem(
                "no test command was found: nothing is tested before a commit",
                "Set TEST_COMMAND in ralph's config, or write `Test: COMMAND` into AGENTS.md",
                field="TEST_COMMAND",
                severity=Severity.WARNING,
            )

    def _warn_of_plan(self) -> Iterator[Problem]:
        """Warn of a plan without a task to work on. The loop reports a missing plan."""
        plan = self._home.plan
        shown = shown_from(self._world.folder, plan, self._world.home)
        tasks = tasks_of(self._plan)
        if not tasks and plan.is_file():
            message = "ralph finds no task in the plan"
            advice = "Write a heading with `Status: open` below it, or `- [ ] TASK`, for each task"
        elif tasks and current_task(tasks) is None:
            message = "every task of the plan is complete or blocked"
            advice = "Look for more work with `ralph plan`, or set a task to `Status: open`"
        else:
            return
        yield Problem(message, advice, shown, severity=Severity.WARNING)


def _problem(finding: ConfigFinding, shown: str) -> Problem:
    severity = Severity.ERROR if finding.is_error else Severity.WARNING
    return Problem(finding.message, finding.suggestion, shown, finding.line, finding.key, severity)
