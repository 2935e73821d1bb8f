"""Inspects the whole configuration, for `config show` and `config check`."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import Problem, Severity, Tier, in_order
from rooda.plan.command import (
    AgentChoice,
    AgentCommand,
    choose,
    command_of,
    split,
    unknown_alias,
)
from rooda.plan.layers import FILE_RUN, Layers
from rooda.plan.locate import read_layers
from rooda.plan.preflight import programs as look
from rooda.plan.preflight.validate import (
    check_notify,
    check_procedures,
    check_zero_counts,
    unknown_procedure,
)
from rooda.plan.repository_values import explain
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.flag_names import IN_FILES
from rooda.plan.settings.fleet_values import resolve_fleet
from rooda.plan.settings.settings import MAX_PROMPT_SIZE
from rooda.plan.world import World


class Inspection(Struct, frozen=True):
    """The configuration, its values, and everything that is wrong with it."""

    layers: Layers
    values: Values
    fleet: Values
    problems: tuple[Problem, ...]


def inspect(
    world: World,
    *,
    config: str | None = None,
    procedure: str = "",
    commands: frozenset[str] = frozenset(),
) -> Inspection:
    """Read the configuration, and check the files and commands of every procedure."""
    problems: list[Problem] = []
    layers = read_layers(world, config, {}, problems)
    if procedure and procedure not in (*layers.procedure_names(), FILE_RUN):
        problems.append(unknown_procedure(procedure, layers, frozenset()))
    problems += check_procedures(layers, commands, {})
    problems += check_zero_counts(layers, procedure)
    values = resolve(layers, procedure)
    problems += check_notify(values)
    problems += _refused(layers, [procedure] if procedure else ["", *layers.procedure_names()])
    problems += _prompts(layers)
    problems += _commands(layers, world)
    fleet = resolve_fleet(world, layers, {}, problems)
    return Inspection(layers, values, fleet, tuple(in_order(IN_FILES.problems(problems))))


def _refused(layers: Layers, procedures: Iterable[str]) -> Iterator[Problem]:
    """Yield what the file of the work tree may not decide, each once."""
    found = (explain(resolve(layers, name).refusals) for name in procedures)
    yield from dict.fromkeys(problem for problems in found for problem in problems)


def _prompts(layers: Layers) -> Iterator[Problem]:
    for name in layers.procedure_names():
        most = resolve(layers, name)[MAX_PROMPT_SIZE]
        for value in layers.phases(name).values():
            for part in value.parts:
                check = look.check_part(part, value, most)
                if check is not None and check.problem is not None:
                    yield check.problem
                yield from look.unused_parameters(part, value, most)


def _missing_program(
    words: tuple[str, ...], command: AgentCommand, world: World
) -> Iterator[Problem]:
    """Yield a warning, not an error: the config file may be for another machine."""
    problem = look.check_program(words, command, world.folder, world.environ).problem
    if problem is not None:
        yield replace(problem, severity=Severity.WARNING)


def _commands(layers: Layers, world: World) -> list[Problem]:
    """Return the unknown aliases and the wrong commands, each place once."""
    seen = set()
    problems: list[Problem] = []
    for name in ("", *layers.procedure_names()):
        choice = choose(layers, name)
        for valued in filter(None, (choice.direct, choice.alias)):
            if valued.origin in seen:
                continue
            seen.add(valued.origin)
            if valued is choice.direct:
                words = split(valued.value, valued.origin, valued.field, problems)
                command = command_of(layers, AgentChoice(direct=valued))
                if words and command is not None:
                    problems += _missing_program(words, command, world)
            elif valued.value not in layers.aliases():
                problems.append(unknown_alias(layers, valued))
    for defined in layers.aliases().values():
        if defined.origin.tier is not Tier.BUILTIN:
            split(defined.value.command, defined.origin, defined.field, problems)
    return problems
