"""The plan: the very object that a run executes and that the dry run prints."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from rooda.agents.facts import passed_on
from rooda.config import checks as look
from rooda.config.checks import Check
from rooda.config.command import (
    Agent,
    AgentCommand,
    choice_problems,
    choose,
    command_of,
    fallbacks_of,
    split,
)
from rooda.config.git_checks import check_git
from rooda.config.layers import Layers, PhaseValue
from rooda.config.locate import read_layers
from rooda.config.problems import Problem, Severity, errors, in_order
from rooda.config.prompting import choose_contexts, choose_phases
from rooda.config.resolve import Values, resolve
from rooda.config.settings import (
    AI_CMD_FALLBACKS,
    CAPTURE,
    ENV,
    SIGNALS_FAILURE,
    SIGNALS_SUCCESS,
    WORKING_DIR,
)
from rooda.config.validate import (
    check_procedures,
    check_signal_words,
    check_zero_counts,
    unknown_procedure,
    warn_of_agents,
    warn_of_iterations,
)
from rooda.config.world import World, with_changes
from rooda.prompts.compose import assemble, promise_tag
from rooda.prompts.parts import PHASES, Context, Part, PromptError
from rooda.workspace.tools import Tools


class CurrentTask(Struct, frozen=True):
    """The task that an iteration works on, and the specification that it belongs to."""

    task: str = ""
    spec: str = "none"


class TaskSource(Protocol):
    """Tells which task an iteration works on."""

    def now(self) -> CurrentTask:
        """Return the task of the next iteration."""

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the task that the agent has worked on, after the agent has ended."""


class FixedTask(Struct, frozen=True):
    """One task for all iterations: rooda knows no more of a procedure than its description."""

    work: CurrentTask

    def now(self) -> CurrentTask:
        """Return the task."""
        return self.work

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the same task."""
        return before


class RunRequest(Struct, frozen=True):
    """What the user asked for. `flags` is `{setting key: (flag as written, text)}`."""

    procedure: str = ""
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    phases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config: str | None = None
    commands: frozenset[str] = frozenset()  # names that `rooda NAME` gives to a command


class PromptTemplate(Protocol):
    """A prompt that is made in another way than from four phases."""

    def read(self, iteration: int) -> str:
        """The prompt of an iteration. Raises PromptError."""


class Plan(Struct, frozen=True):
    """Everything that a run needs to know, decided."""

    procedure: str
    phases: Mapping[str, tuple[Part, ...]]
    contexts: tuple[Context, ...]
    agents: tuple[Agent, ...]  # the first does the work, the others stand in for it
    values: Values
    workspace: Path
    working_dir: Path
    environ: Mapping[str, str]
    work: TaskSource = FixedTask(CurrentTask())
    template: PromptTemplate | None = None  # in place of the phases
    mode: str = ""
    notes: tuple[tuple[str, str], ...] = ()  # for the summary of the session log
    tools: Tools = field(default_factory=Tools)  # rooda's own programs

    @property
    def agent(self) -> Agent:
        """The agent that was chosen."""
        return self.agents[0]

    def writes_to_files(self, agent: Agent) -> bool:
        """Whether the agent's output goes to files: a known CLI may exit before a pipe is empty."""
        chosen = self.values[CAPTURE]
        return chosen == "file" or (chosen == "auto" and agent.program.is_known)

    def environ_of(self, agent: Agent) -> Mapping[str, str]:
        """The agent's environment, without what would make it refuse to run inside of another."""
        meant: Mapping[str, str | None] = self.values[ENV]
        return passed_on(agent.program.adapter.facts, self.environ, meant)

    def prompt(self, feedback: str = "", iteration: int = 1) -> str:
        """The prompt of an iteration, its files read anew; `feedback` is of the one before."""
        if self.template is not None:
            return self.template.read(iteration)
        own = {
            SIGNALS_SUCCESS.default: self.values[SIGNALS_SUCCESS],
            SIGNALS_FAILURE.default: self.values[SIGNALS_FAILURE],
        }
        words = {default: word for default, word in own.items() if default and word}
        return assemble(self.phases, self.contexts, words, feedback)


class Prepared(Struct, frozen=True):
    """The plan as far as there is one, what is wrong with it, and what was looked at."""

    request: RunRequest
    values: Values
    command: AgentCommand | None
    plan: Plan | None
    problems: tuple[Problem, ...]
    checks: tuple[Check, ...]

    def all_problems(self) -> list[Problem]:
        """Problems of the config, and of the files and programs that it names, file by file."""
        found = [*self.problems, *(c.problem for c in self.checks if c.problem is not None)]
        return in_order(found)

    @property
    def valid(self) -> bool:
        """Whether a run may start."""
        return self.plan is not None and not errors(self.all_problems())


def prepare(request: RunRequest, world: World) -> Prepared:
    """Read everything, decide everything, and collect every problem on the way."""
    problems: list[Problem] = []
    layers = read_layers(world, request.config, request.flags, problems)
    values = resolve(layers, request.procedure)
    problems += check_procedures(
        layers, request.commands, {request.procedure: tuple(request.phases)}
    )
    problems += check_zero_counts(layers, request.procedure)
    problems += check_signal_words(values)
    problems += warn_of_iterations(layers.cli, values)

    folder = world.folder
    phases = choose_phases(layers, request.procedure, request.phases, folder, problems)
    contexts = choose_contexts(request.contexts, folder, problems)
    command, argv = _command(layers, request, problems)
    chosen_dir = values[WORKING_DIR]
    working_dir = Path(chosen_dir) if chosen_dir else folder
    added: Mapping[str, str | None] = values[ENV]
    environ = with_changes(world.environ, added)
    tools = Tools(environ, [folder, working_dir])

    agents = [Agent.of(command, argv)] if command is not None and argv else []
    agents += _fallbacks(layers, values, problems) if agents else []
    found = [
        *(look.check_program(one.argv, one.command, working_dir, environ) for one in agents),
        *_look_at_prompt(phases, contexts, problems),
    ]
    problems += warn_of_agents(agents, values)
    found += look.check_places(values, working_dir, folder)
    problems += look.check_disk(folder)
    problems += check_git(values, working_dir, tools)

    plan = None
    if agents and all(phase in phases and phases[phase].parts for phase in PHASES):
        plan = Plan(
            procedure=request.procedure,
            phases={phase: value.parts for phase, value in phases.items()},
            contexts=contexts,
            agents=tuple(agents),
            values=values,
            workspace=folder,
            working_dir=working_dir,
            environ=environ,
            work=FixedTask(CurrentTask(layers.description(request.procedure))),
            mode=request.procedure,
            tools=tools,
        )
        problems += _unsaid_signal(plan)
    return Prepared(request, values, command, plan, tuple(problems), tuple(found))


def _command(
    layers: Layers, request: RunRequest, problems: list[Problem]
) -> tuple[AgentCommand | None, tuple[str, ...]]:
    name = request.procedure
    known = name in layers.procedure_names() or set(request.phases) == set(PHASES)
    # It may well stand in a file that could not be read.
    if not known and not any(layer.broken for layer in layers.files()):
        problems.append(unknown_procedure(name, layers, request.commands))
        return None, ()  # its command can't be known either
    choice = choose(layers, name)
    problems += choice_problems(layers, choice, name)
    command = command_of(layers, choice)
    if command is None:
        return None, ()
    return command, split(command.text, command.origin, command.field, problems)


def _fallbacks(layers: Layers, values: Values, problems: list[Problem]) -> Iterator[Agent]:
    origin, field = values.origin(AI_CMD_FALLBACKS), values.field(AI_CMD_FALLBACKS)
    words = values[AI_CMD_FALLBACKS]
    for command in fallbacks_of(layers, words, origin, field):
        argv = split(command.text, origin, field, problems)
        if argv:
            yield Agent.of(command, argv)


def _look_at_prompt(
    phases: Mapping[str, PhaseValue], contexts: tuple[Context, ...], problems: list[Problem]
) -> Iterator[Check]:
    for value in phases.values():
        for part in value.parts:
            check = look.check_part(part, value)
            if check is not None:
                yield check
            problems += look.unused_parameters(part, value)
    yield from look.check_contexts(contexts)


def _unsaid_signal(plan: Plan) -> Iterator[Problem]:
    word = plan.values[SIGNALS_SUCCESS]
    if word is None:
        return
    try:
        prompt = plan.prompt()
    except PromptError:
        return  # said already
    tag = promise_tag(word)
    if tag not in prompt:
        yield Problem(
            f"the prompt never names {tag}, so the agent can't know how to say that it is done",
            "Add builtin:fragments/signals.md to the act phase, or say it in your own words",
            field=f"procedures.{plan.procedure}",
            severity=Severity.WARNING,
        )
