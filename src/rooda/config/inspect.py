"""Look at the whole configuration, for `config show` and `config check`."""

from dataclasses import dataclass

from rooda.config import checks as look
from rooda.config.locate import World
from rooda.config.plan import Request, check_all, place, problem_at, read_layers
from rooda.config.problems import Problem, in_order
from rooda.config.resolve import (
    Iterations,
    Layers,
    UnknownAlias,
    Values,
    resolve,
    resolve_command,
    resolve_iterations,
)
from rooda.config.settings import ZERO_MEANS_UNLIMITED
from rooda.text.nearmiss import did_you_mean


@dataclass(frozen=True, slots=True)
class Inspection:
    """The configuration as it holds, and all that is wrong with it."""

    layers: Layers
    values: Values
    iterations: Iterations
    problems: tuple[Problem, ...]


def inspect(request: Request, world: World) -> Inspection:
    """Read everything; look at the files and aliases of every procedure."""
    problems: list[Problem] = []
    layers = read_layers(request, world, problems)
    levels = layers.levels(request.procedure)
    values = resolve(levels)
    zero = values[ZERO_MEANS_UNLIMITED]
    names = layers.procedure_names()
    if request.procedure and request.procedure not in names:
        guess = did_you_mean(request.procedure, names) or "`rooda list` shows the procedures"
        problems.append(Problem(f"there is no procedure named {request.procedure!r}", guess))
    problems += check_all(layers, request, zero_means_unlimited=zero)
    for name in names:
        for phase, value in layers.phases(name).items():
            for part in value.parts:
                field = f"procedures.{name}.{phase}"
                check = look.check_part(part, field, *place(value.origin))
                if check is not None and check.problem is not None:
                    problems.append(check.problem)
                problems += look.unused_parameters(part, field, *place(value.origin))
    problems += _aliases(layers, names)
    iterations = resolve_iterations(levels, zero_means_unlimited=zero)
    return Inspection(layers, values, iterations, tuple(in_order(problems)))


def _aliases(layers: Layers, names: list[str]) -> list[Problem]:
    """Aliases that are used and don't exist; each place once."""
    unknown = {}
    for name in names:
        chosen, _ = resolve_command(layers, name)
        if isinstance(chosen, UnknownAlias):
            unknown[chosen.origin] = chosen
    known = list(layers.aliases())
    return [
        problem_at(
            alias.origin,
            f"unknown AI command alias {alias.name!r}",
            did_you_mean(alias.name, known) or f"Known aliases: {', '.join(known)}",
            "ai_cmd_alias",
        )
        for alias in unknown.values()
    ]
