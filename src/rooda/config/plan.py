"""The plan: the very object that a run executes and that the dry run prints."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rooda.config import checks as look
from rooda.config import overrides
from rooda.config.checks import Check
from rooda.config.layers import Layer, PhaseValue
from rooda.config.locate import World, read_builtin, read_files, read_preset
from rooda.config.origin import Origin, Tier
from rooda.config.problems import Problem, Severity, errors, in_order
from rooda.config.resolve import (
    AgentCommand,
    Iterations,
    Layers,
    Level,
    UnknownAlias,
    Values,
    environment,
    resolve,
    resolve_command,
    resolve_iterations,
)
from rooda.config.settings import (
    ITERATION_MODE,
    ITERATION_TIMEOUT,
    MAX_ITERATIONS,
    PRESET,
    SIGNALS_SUCCESS,
    WORKING_DIR,
    ZERO_MEANS_UNLIMITED,
)
from rooda.prompts import builtin
from rooda.prompts.compose import assemble
from rooda.prompts.context import Context, looks_like_path, text_or_file
from rooda.prompts.parts import PHASES, BuiltinPart, FilePart, Part, PromptError, TextPart
from rooda.text.nearmiss import did_you_mean
from rooda.text.paths import anchored


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. `flags` is `{setting key: (flag as written, text)}`."""

    procedure: str = ""
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    phases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config: str | None = None
    commands: frozenset[str] = frozenset()  # names that `rooda NAME` gives to a command


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run needs to know, decided."""

    procedure: str
    phases: Mapping[str, tuple[Part, ...]]
    contexts: tuple[Context, ...]
    command: AgentCommand
    argv: tuple[str, ...]
    iterations: Iterations
    values: Values
    workspace: Path
    working_dir: Path
    environ: Mapping[str, str]

    def prompt(self) -> str:
        """The prompt of an iteration, its files read anew."""
        return assemble(self.phases, self.contexts)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The plan as far as there is one, what is wrong with it, and what was looked at."""

    request: Request
    layers: Layers
    values: Values
    iterations: Iterations
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


def read_layers(request: Request, world: World, problems: list[Problem]) -> Layers:
    """Every tier, and the preset that the others choose."""
    cli = overrides.from_flags(request.flags, world.folder, problems)
    env = overrides.from_environment(world.environ, world.folder, problems)
    workspace, global_ = read_files(world, request.config, problems)
    layers = Layers(cli, env, workspace, global_, Layer(Tier.PRESET), read_builtin())
    chosen = resolve(layers.levels(request.procedure))[PRESET]
    return replace(layers, preset=read_preset(chosen))


def prepare(request: Request, world: World) -> Prepared:
    """Read everything, decide everything, and collect every problem on the way."""
    problems: list[Problem] = []
    layers = read_layers(request, world, problems)
    levels = layers.levels(request.procedure)
    values = resolve(levels)
    zero_means_unlimited = values[ZERO_MEANS_UNLIMITED]
    iterations = resolve_iterations(levels, zero_means_unlimited=zero_means_unlimited)
    problems += check_all(layers, request, zero_means_unlimited=zero_means_unlimited)
    problems += _iteration_warnings(layers.cli, iterations, values)

    phases = _phases(layers, request, world.folder, problems)
    command: AgentCommand | None = None
    argv: tuple[str, ...] = ()
    if not _is_unknown(layers, request):
        command, argv = _command(layers, request.procedure, problems)
    contexts = _contexts(request.contexts, world.folder, problems)
    chosen_dir = values[WORKING_DIR]
    working_dir = Path(chosen_dir) if chosen_dir else world.folder
    environ = environment(values, world.environ)

    found = [look.check_program(argv, working_dir, environ) if argv else None]
    for phase, value in phases.items():
        where = place(value.origin)
        for part in value.parts:
            name = f"procedures.{request.procedure}.{phase}"
            found.append(look.check_part(part, name, *where))
            problems += look.unused_parameters(part, name, *where)
    found += look.check_contexts(contexts)
    found += [look.check_working_dir(working_dir), look.check_workspace(world.folder)]
    problems += look.check_disk(world.folder)

    plan = None
    if command and argv and len(phases) == len(PHASES):
        plan = Plan(
            request.procedure,
            {phase: value.parts for phase, value in phases.items()},
            contexts,
            command,
            argv,
            iterations,
            values,
            world.folder,
            working_dir,
            environ,
        )
        problems += _unsaid_signal(plan)
    checks = tuple(check for check in found if check is not None)
    return Prepared(request, layers, values, iterations, command, plan, tuple(problems), checks)


def check_all(layers: Layers, request: Request, *, zero_means_unlimited: bool) -> Iterator[Problem]:
    """What can be said of every procedure without looking at its files."""
    if not zero_means_unlimited:
        yield from _zero_counts(layers)
    for layer in layers.files():
        for name, procedure in layer.procedures.items():
            origin = procedure.origin
            missing = [
                phase
                for phase in PHASES
                if phase not in layers.phases(name)
                and not (name == request.procedure and phase in request.phases)
            ]
            if missing:
                yield problem_at(
                    origin,
                    f"the procedure {name!r} lacks {', '.join(missing)}",
                    f"Add `{missing[0]}: FILE` to it; all of {', '.join(PHASES)} are needed",
                    f"procedures.{name}",
                )
            if name in request.commands:
                yield problem_at(
                    origin,
                    f"the procedure {name!r} is also the name of a command",
                    f"Run it with `rooda run {name}`, or rename it",
                    f"procedures.{name}",
                    Severity.WARNING,
                )


def _zero_counts(layers: Layers) -> Iterator[Problem]:
    levels: list[tuple[Level, str]] = [(layers.cli.loop, "loop"), (layers.environment.loop, "loop")]
    for layer in layers.files():
        levels.append((layer.loop, "loop"))
        levels += [(layer.procedure(name), f"procedures.{name}") for name in layer.procedures]
    for level, field_ in levels:
        valued = level.get(MAX_ITERATIONS.key)
        if valued is not None and valued.value == 0:
            in_file = valued.origin.line is not None
            name = f"{field_}.{MAX_ITERATIONS.key}" if in_file else valued.origin.source
            yield problem_at(valued.origin, "must be 1 or more, not 0", MAX_ITERATIONS.fix, name)


def _iteration_warnings(cli: Layer, iterations: Iterations, values: Values) -> Iterator[Problem]:
    mode, count = cli.loop.get(ITERATION_MODE.key), cli.loop.get(MAX_ITERATIONS.key)
    if mode is not None and mode.value == "unlimited" and count is not None:
        yield Problem(
            f"{count.origin.source} and {mode.origin.source} were both given; the number wins",
            f"Drop {mode.origin.source}",
            field=mode.origin.source,
            severity=Severity.WARNING,
        )
    if iterations.maximum is None and values[ITERATION_TIMEOUT] is None:
        yield Problem(
            "the run is unlimited and has no clock: a hung agent would hold it for ever",
            "Set --iteration-timeout",
            severity=Severity.WARNING,
        )


def _command(
    layers: Layers, procedure: str, problems: list[Problem]
) -> tuple[AgentCommand | None, tuple[str, ...]]:
    chosen, beaten = resolve_command(layers, procedure)
    if chosen is None:
        problems.append(_no_command(procedure))
        return None, ()
    if isinstance(chosen, UnknownAlias):
        known = list(layers.aliases())
        problems.append(
            problem_at(
                chosen.origin,
                f"unknown AI command alias {chosen.name!r}",
                did_you_mean(chosen.name, known) or f"Known aliases: {', '.join(known)}",
                chosen.origin.source if chosen.origin.line is None else "ai_cmd_alias",
            )
        )
        return None, ()
    if beaten is not None:
        problems.append(
            Problem(
                f"the command {chosen.text!r} ({chosen.provenance}) is used, "
                f"not the alias {beaten.value!r} ({beaten.origin})",
                "Set only one of ai_cmd and ai_cmd_alias; `ai_cmd: null` takes a weaker one away",
                severity=Severity.WARNING,
            )
        )
    try:
        argv = tuple(shlex.split(chosen.text))
    except ValueError as error:
        message = f"the AI command can't be split into words: {error}"
        problems.append(Problem(message, "Check its quotes", field="ai_cmd"))
        return chosen, ()
    if not argv:
        problems.append(Problem("the AI command has no words", "Name a program", field="ai_cmd"))
    return chosen, argv


def _no_command(procedure: str) -> Problem:
    # Seed 004's sentence; `rooda list --aliases` shows every alias.
    names = "kiro-cli, claude, copilot, cursor-agent"
    return Problem(
        "must specify AI command via CLI flag (--ai-cmd or --ai-cmd-alias), "
        "config file (loop.ai_cmd or loop.ai_cmd_alias), "
        f"or built-in alias ({names})",
        f"Example: rooda {procedure or 'build'} --ai-cmd-alias kiro-cli",
        title="No AI command configured",
    )


def _phases(
    layers: Layers, request: Request, folder: Path, problems: list[Problem]
) -> dict[str, PhaseValue]:
    found = layers.phases(request.procedure)
    for phase, texts in request.phases.items():
        flag = f"--{phase}"
        parts = [_phase_part(text, flag, folder, problems) for text in texts]
        found[phase] = PhaseValue(tuple(part for part in parts if part), Origin(Tier.CLI, flag))
        if not found[phase].parts:
            del found[phase]  # nothing of it can be used, and that was said
    names = layers.procedure_names()
    if _is_unknown(layers, request):
        problems.append(_unknown_procedure(request, names))
    return {phase: found[phase] for phase in PHASES if phase in found}


def _is_unknown(layers: Layers, request: Request) -> bool:
    """Nobody defines the procedure, and the flags don't give all of its phases either."""
    return request.procedure not in layers.procedure_names() and set(request.phases) != set(PHASES)


def _unknown_procedure(request: Request, names: list[str]) -> Problem:
    name, title = request.procedure, "Unknown procedure"
    if name in request.commands:
        return Problem(f"{name!r} is a command", f"Put it first: rooda {name}", title=title)
    return Problem(
        f"there is no procedure or command named {name!r}",
        did_you_mean(name, [*names, *request.commands]) or "`rooda list` shows the procedures",
        title=title,
    )


def _phase_part(text: str, flag: str, folder: Path, problems: list[Problem]) -> Part | None:
    if text.startswith(builtin.PREFIX):
        return Part(BuiltinPart(text.removeprefix(builtin.PREFIX)))
    source = _given(text, flag, folder, problems)
    if source is None:
        return None
    folder_named = isinstance(source, TextPart) and _is_folder(folder, text)
    if folder_named:
        problems.append(Problem(f"{text!r} is a folder", "Give text or a file", field=flag))
        return None
    if not _missing_file(source, text):
        return Part(source)
    problems.append(
        Problem(
            f"{text!r} looks like a file, and there is no such file",
            "Correct the path; text with a space in it is taken as text",
            field=flag,
        )
    )
    return None


def _contexts(texts: tuple[str, ...], folder: Path, problems: list[Problem]) -> tuple[Context, ...]:
    flag = "--context"
    contexts = []
    for text in texts:
        source = _given(text, flag, folder, problems)
        if source is None:
            continue
        if _missing_file(source, text):
            problems.append(
                Problem(
                    f"{text!r} looks like a file, and there is no such file: it is taken as text",
                    "Correct the path if a file was meant",
                    field=flag,
                    severity=Severity.WARNING,
                )
            )
        contexts.append(Context(source))
    return tuple(contexts)


def _given(
    text: str, flag: str, folder: Path, problems: list[Problem]
) -> TextPart | FilePart | None:
    if text.strip():
        return text_or_file(text, folder)
    problems.append(Problem("must not be empty", "Give text or a file", field=flag))
    return None


def _is_folder(folder: Path, text: str) -> bool:
    try:
        return anchored(folder, text).is_dir()
    except (OSError, ValueError):
        return False  # too long for a name


def _missing_file(source: TextPart | FilePart, text: str) -> bool:
    """Whether text that was most likely meant as a file was taken as text."""
    return isinstance(source, TextPart) and source.text == text and looks_like_path(text)


def _unsaid_signal(plan: Plan) -> Iterator[Problem]:
    word = plan.values[SIGNALS_SUCCESS]
    if word is None:
        return
    try:
        prompt = plan.prompt()
    except PromptError:
        return  # said already
    tag = f"<promise>{word}</promise>"
    if tag not in prompt:
        yield Problem(
            f"the prompt never names {tag}, so the agent can't know how to say that it is done",
            "Add builtin:fragments/signals.md to the act phase, or say it in your own words",
            field=f"procedures.{plan.procedure}",
            severity=Severity.WARNING,
        )


def place(origin: Origin) -> tuple[str, int | None]:
    """File and line for a problem; only files have them."""
    in_file = origin.tier in (Tier.WORKSPACE, Tier.GLOBAL)
    return (origin.source.removeprefix("./") if in_file else "", origin.line)


def problem_at(
    origin: Origin,
    message: str,
    suggestion: str,
    field_: str,
    severity: Severity = Severity.ERROR,
) -> Problem:
    """A problem with a value, at the value's place."""
    file, line = place(origin)
    return Problem(message, suggestion, file=file, line=line, field=field_, severity=severity)
