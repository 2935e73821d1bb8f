"""From a request to a plan, for rooda and ralph: read and decide everything, check everything."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem, Severity, errors, in_order
from rooda.plan.command import (
    Agent,
    AgentChoice,
    AgentCommand,
    choice_problems,
    choose,
    command_of,
    fallbacks_of,
    split,
)
from rooda.plan.layers import FILE_RUN, Layer, Layers, PhaseValue
from rooda.plan.locate import read_layers
from rooda.plan.plan import CurrentTask, FixedTask, Plan, PromptTemplate, TaskSource
from rooda.plan.preflight.git import check_changes, check_git, check_publishing
from rooda.plan.preflight.programs import (
    Check,
    check_contexts,
    check_disk,
    check_floor,
    check_part,
    check_places,
    check_program,
    check_programs,
    unused_parameters,
)
from rooda.plan.preflight.sandbox import (
    check_paths,
    find_sandbox,
    variables_held_inside,
    variables_of_file,
)
from rooda.plan.preflight.state import check_state, record_place, warn_of_passing
from rooda.plan.preflight.tasks import check_tasks, find_task_file, warn_of_no_work
from rooda.plan.preflight.validate import (
    check_notify,
    check_procedures,
    check_signal_words,
    check_zero_counts,
    prompt_file_instead,
    unknown_procedure,
    warn_of_agents,
    warn_of_iterations,
)
from rooda.plan.prompting import choose_contexts, choose_file, choose_phases
from rooda.plan.prompts.compose import promise_tag
from rooda.plan.prompts.parts import PHASES, Context, PromptError
from rooda.plan.repository_values import explain
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.flag_names import FlagNames
from rooda.plan.settings.setting import UNSET
from rooda.plan.settings.settings import (
    AI_CMD_FALLBACKS,
    DONE_WHEN,
    ENV,
    MAX_PROMPT_SIZE,
    NOTIFY_URLS,
    SIGNALS_SUCCESS,
    TASKS,
    WORKING_DIR,
)
from rooda.plan.settings.text_kinds import BY_TASKS
from rooda.plan.world import World, with_changes
from rooda.world.files.file_systems import disk_places
from rooda.world.state.record_place import RecordPlace
from rooda.world.tools import Tools

_ANY_TAG = re.compile(r"<promise>\s*([A-Za-z0-9_-]{1,40})\s*</promise>")


class OwnFiles(Struct, frozen=True):
    """What a command with files of its own, such as ralph, brings instead of rooda's files.

    `procedure` is the name of the run in the record. `root` is the folder that the agent works in,
    `layer` has the settings from its files, `prompt` is None if it can't be read. `no_agent` is the
    problem to report if no agent is chosen, `problems` are those in its files, `flags` the flags
    that it has. It works in a git repository only.
    """

    procedure: str
    root: Path
    layer: Layer
    prompt: PromptTemplate | None
    tasks: TaskSource
    no_agent: Problem
    problems: tuple[Problem, ...] = ()
    flags: FlagNames = FlagNames()


class RunRequest(Struct, frozen=True):
    """What the user asked for.

    `flags` is `{setting key: (flag as written, text)}`. `commands` are the names that
    `rooda NAME` takes as commands. The prompt `file` replaces the phases, `own` replaces rooda's
    config files and procedures. An earlier run continues if `resumed` is true; a preview (the dry
    run) starts nothing.
    """

    procedure: str = ""
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    phases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config: str | None = None
    commands: frozenset[str] = frozenset()
    file: str | None = None
    own: OwnFiles | None = None
    resumed: bool = False
    is_preview: bool = False

    @property
    def name(self) -> str:
        """The name of the run in the record."""
        return self.procedure if self.own is None else self.own.procedure

    @property
    def words(self) -> str:
        """The procedure and the prompt file, as the user writes them after `rooda`."""
        return self.procedure if self.file is None else f"{FILE_RUN} {shlex.quote(self.file)}"

    @property
    def flag_names(self) -> FlagNames:
        """The flags that advice may name."""
        return FlagNames() if self.own is None else self.own.flags


class Prepared(Struct, frozen=True):
    """The plan (None if the input does not allow one), all problems, and all checks.

    `at_start` are warnings about the start of a run; a dry run does not show them.
    """

    request: RunRequest
    values: Values
    command: AgentCommand | None
    plan: Plan | None
    problems: tuple[Problem, ...]
    checks: tuple[Check, ...]
    at_start: tuple[Problem, ...] = ()

    def all_problems(self) -> list[Problem]:
        """Return the problems of the config and of the files and programs it names, in order."""
        found = [*self.problems, *(c.problem for c in self.checks if c.problem is not None)]
        return in_order(found)

    @property
    def valid(self) -> bool:
        """Whether a run may start."""
        return self.plan is not None and not errors(self.all_problems())


def prepare(request: RunRequest, world: World) -> Prepared:  # noqa: PLR0915 - one step each
    """Return the plan of a run and everything that is wrong with it. Starts and changes nothing."""
    own = request.own
    problems: list[Problem] = [] if own is None else [*own.problems]
    layer = None if own is None else own.layer
    layers = read_layers(world, request.config, _flags(request), problems, layer)
    values = resolve(layers, request.procedure)
    problems += _check_values(layers, values, request)

    root = world.folder if own is None else own.root
    workspace, place = world.workspace(root), _record_place(world, root, problems)
    working_dir = Path(values[WORKING_DIR] or root)
    environ, environ_outside = _environments(values, world, is_preview=request.is_preview)
    tools = Tools(environ_outside, [workspace, working_dir])
    command, agents = _agents(layers, values, request, root, problems)
    checks = _config_above(layers, request)
    checks += [check_program(one.argv, one.command, working_dir, environ) for one in agents]
    phases: dict[str, PhaseValue] = {}
    file: PhaseValue | None = None
    contexts: tuple[Context, ...] = ()
    at_start: tuple[Problem, ...] = ()
    if own is None:
        most = values[MAX_PROMPT_SIZE]
        if request.file is None:
            phases = choose_phases(layers, request.procedure, request.phases, root, problems, most)
        else:
            file = choose_file(request.file, root, problems)
        contexts = choose_contexts(request.contexts, root, problems, most)
        values_read = [*phases.values(), *([] if file is None else [file])]
        checks += _check_prompt(values_read, contexts, problems, most)
        at_start = tuple(warn_of_no_work(request.procedure, phases, contexts, working_dir))
    problems += warn_of_agents(agents, values)
    checks += check_places(values, working_dir, workspace)
    problems += check_git(values, working_dir, tools, is_needed=own is not None)
    if not request.resumed:
        problems += check_tasks(values, working_dir, world)
    problems += check_publishing(values, working_dir, tools)
    problems += check_programs(values, working_dir, environ, tools)
    state = None if place is None else place.state
    sandbox = find_sandbox(values, world, working_dir, (root, workspace), tools, state)
    problems += [*sandbox.problems, *check_paths(values, agents, phases.values(), working_dir)]
    checks.append(sandbox.check)
    if sandbox.plan is None or not sandbox.plan.has_left_git:  # else at the start of the run
        problems += check_changes(values, working_dir, tools, resumed=request.resumed)

    problems += check_disk(workspace)
    if place is not None:
        problems += check_floor(values, disk_places(working_dir, place.state))
        seen = () if sandbox.plan is None else sandbox.plan.shown
        problems += check_state(world, place, (working_dir, *seen))
        at_start += tuple(warn_of_passing(place))

    plan = None
    if state is not None and agents and _has_prompt(own, phases, file):
        task = FixedTask(CurrentTask(layers.description(request.procedure) or (request.file or "")))
        plan = Plan(
            procedure=request.name,
            phases={phase: value.parts for phase, value in phases.items()},
            contexts=contexts,
            agents=tuple(agents),
            values=values,
            workspace=workspace,
            state=state,
            working_dir=working_dir,
            environ=environ,
            work=task if own is None else own.tasks,
            template=None if own is None else own.prompt,
            file=None if file is None else file.parts[0],
            mode=request.procedure,
            tools=tools,
            flag_names=request.flag_names,
            started_in=world.folder,
            is_apart=world.is_apart,
            tasks=find_task_file(values, working_dir, world),
        ).in_sandbox(sandbox.plan)
        problems += _check_whole_prompt(plan, checks)
    names = request.flag_names
    return Prepared(
        request,
        values,
        command,
        plan,
        tuple(names.problems(problems)),
        tuple(_with_advice(check, names) for check in checks),
        at_start,
    )


def _record_place(world: World, root: Path, problems: list[Problem]) -> RecordPlace | None:
    try:
        return record_place(world, root)
    except InvalidInput as invalid:
        problems += invalid.problems
        return None


def _environments(
    values: Values, world: World, *, is_preview: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of the agent, and those of rooda's own programs.

    Neither agents nor hooks send messages for the user: they get no addresses of services.
    """
    own_variables: Mapping[str, str | None] = values[ENV]
    given = {NOTIFY_URLS.variable: None, **own_variables}
    held_inside = variables_of_file(values) if is_preview else variables_held_inside(values)
    outside = {name: value for name, value in given.items() if name not in held_inside}
    return with_changes(world.environ, given), with_changes(world.environ, outside)


def _flags(request: RunRequest) -> Mapping[str, tuple[str, str]]:
    """Return the flags; a task file for a prompt file also says when the work is done."""
    flag, name = request.flags.get(TASKS.key, ("", UNSET))
    if request.procedure != FILE_RUN or name == UNSET or DONE_WHEN.key in request.flags:
        return request.flags
    return {**request.flags, DONE_WHEN.key: (flag, BY_TASKS)}


def _with_advice(check: Check, names: FlagNames) -> Check:
    if check.problem is None:
        return check
    (problem,) = names.problems([check.problem])
    return replace(check, problem=problem, details=tuple(map(names.advice, check.details)))


def _config_above(layers: Layers, request: RunRequest) -> list[Check]:
    """Return a line for the dry run that names a config file above the current folder."""
    file = layers.workspace.file
    is_above = request.own is None and request.config is None and "/" in file
    return [Check(f"Config file: {file}")] if is_above else []


def _check_values(layers: Layers, values: Values, request: RunRequest) -> Iterator[Problem]:
    """Yield what is wrong with the settings and procedures, without a look at other files."""
    given = {request.procedure: tuple(request.phases)}
    yield from check_procedures(layers, request.commands, given)
    yield from check_zero_counts(layers, request.procedure)
    yield from check_signal_words(values)
    yield from warn_of_iterations(layers.cli, values)
    yield from check_notify(values)
    yield from explain(values.refusals)


def _has_prompt(
    own: OwnFiles | None, phases: Mapping[str, PhaseValue], file: PhaseValue | None
) -> bool:
    if own is not None:
        return own.prompt is not None
    if file is not None:
        return True
    return all(phase in phases and phases[phase].parts for phase in PHASES)


# -- the agents ------------------------------------------------------------------------------


def _agents(
    layers: Layers, values: Values, request: RunRequest, root: Path, problems: list[Problem]
) -> tuple[AgentCommand | None, list[Agent]]:
    """Return the command, and the agents: the one that it starts, and those that take over."""
    command = _command(layers, request, root, problems)
    if command is None:
        return None, []
    argv = split(command.text, command.origin, command.field, problems)
    if not argv:
        return command, []
    return command, [Agent.of(command, argv), *_fallbacks(layers, values, problems)]


def _command(
    layers: Layers, request: RunRequest, root: Path, problems: list[Problem]
) -> AgentCommand | None:
    name, own = request.procedure, request.own
    known = name in layers.names_to_run() or set(request.phases) == set(PHASES)
    known = known or request.file is not None
    # A procedure that seems unknown may be in a file that could not be read.
    if own is None and not known and not any(layer.broken for layer in layers.files()):
        instead = prompt_file_instead(name, root) if FILE_RUN in request.commands else None
        problems.append(instead or unknown_procedure(name, layers, request.commands))
        return None  # an unknown procedure has no command
    choice = choose(layers, name)
    if own is not None and choice == AgentChoice():
        problems.append(own.no_agent)
        return None
    problems += choice_problems(layers, choice, request.words)
    return command_of(layers, choice)


def _fallbacks(layers: Layers, values: Values, problems: list[Problem]) -> Iterator[Agent]:
    origin, name = values.origin(AI_CMD_FALLBACKS), values.field(AI_CMD_FALLBACKS)
    words = values[AI_CMD_FALLBACKS]
    for command in fallbacks_of(layers, words, origin, name):
        argv = split(command.text, origin, name, problems)
        if argv:
            yield Agent.of(command, argv)


# -- the prompt ------------------------------------------------------------------------------


def _check_prompt(
    values: Iterable[PhaseValue],
    contexts: tuple[Context, ...],
    problems: list[Problem],
    most: int,
) -> Iterator[Check]:
    for value in values:
        for part in value.parts:
            check = check_part(part, value, most)
            if check is not None:
                yield check
            problems += unused_parameters(part, value, most)
    yield from check_contexts(contexts, most)


def _check_whole_prompt(plan: Plan, checks: Sequence[Check]) -> Iterator[Problem]:
    """Yield what is wrong with the whole prompt: its size, or the success signal is missing.

    The words of a template are the user's own affair.
    """
    try:
        prompt = plan.prompt()
    except PromptError as error:
        reported = {check.problem.message for check in checks if check.problem is not None}
        if str(error) not in reported:  # by `_check_prompt`
            yield Problem(str(error), error.hint, title="Prompt invalid")
        return
    word = plan.values[SIGNALS_SUCCESS]
    if word is None or plan.template is not None:
        return
    tag = promise_tag(word)
    if tag not in prompt:
        advice = "Add builtin:fragments/signals.md to the act phase, or say it in your own words"
        place = f"procedures.{plan.procedure}"
        if plan.file is not None:
            advice, place = _advice_on_signals(tag, prompt), plan.file.source.name
        yield Problem(
            f"the prompt never names {tag}, so the agent can't know how to say that it is done",
            advice,
            field=place,
            severity=Severity.WARNING,
        )


def _advice_on_signals(tag: str, prompt: str) -> str:
    """Return what to do about a prompt file that names another signal than that of the run."""
    other = _ANY_TAG.search(prompt)
    flag = "" if other is None else f"Add {SIGNALS_SUCCESS.flag_name} {other[1]}. Or: "
    return f"{flag}Name {tag} in the file, or no <promise> at all: rooda then adds its own rules"
