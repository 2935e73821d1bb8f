"""Decides the settings below `fleet`, for `rooda fleet` and `rooda worker`."""

from collections.abc import Mapping

from rooda.base.problems import InvalidInput, Problem, errors, in_order
from rooda.plan.layers import Layers
from rooda.plan.locate import read_layers
from rooda.plan.overrides import read_flags, read_variables
from rooda.plan.resolve import Values
from rooda.plan.settings.fleet_settings import FLEET_KEYS, FLEET_SETTINGS
from rooda.plan.world import World


def read_fleet(
    world: World, flags: Mapping[str, tuple[str, str]], config: str | None = None
) -> tuple[Values, Layers]:
    """Return the settings of the fleet, and all layers. Raises InvalidInput for what is wrong.

    `flags` are `{key: (flag as written, text)}`.
    """
    problems: list[Problem] = []
    layers = read_layers(world, config, {}, problems)
    values = resolve_fleet(world, layers, flags, problems)
    if errors(problems):
        raise InvalidInput(in_order(problems))
    return values, layers


def resolve_fleet(
    world: World,
    layers: Layers,
    flags: Mapping[str, tuple[str, str]],
    problems: list[Problem],
) -> Values:
    """Return the strongest value of each setting: flag, variable, workspace file, global file."""
    given = read_flags(FLEET_KEYS, flags, world, problems)
    variables = read_variables(FLEET_SETTINGS, world, problems)
    weakest_first = (layers.global_.fleet, layers.workspace.fleet, variables, given)
    return Values({key: valued for level in weakest_first for key, valued in level.items()})
