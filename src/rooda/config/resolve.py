"""Which value holds: pure functions over the layers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rooda.config.kinds import TextMap
from rooda.config.layers import Alias, Layer, PhaseValue, Valued
from rooda.config.origin import BUILTIN, Origin
from rooda.config.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    ENV,
    ITERATION_MODE,
    MAX_ITERATIONS,
    SETTINGS,
    Setting,
)
from rooda.prompts.parts import PHASES

T = TypeVar("T")

Level = Mapping[str, Valued]


@dataclass(frozen=True, slots=True)
class Layers:
    """All tiers of one invocation."""

    cli: Layer
    environment: Layer
    workspace: Layer
    global_: Layer
    preset: Layer
    builtin: Layer

    def files(self) -> tuple[Layer, Layer]:
        """The user's files, strongest first."""
        return self.workspace, self.global_

    def levels(self, procedure: str) -> list[Level]:
        """Every place that may set a value, strongest first.

        A procedure's own value beats the loop's from whichever file or variable that came, but a
        built-in procedure's values rank as built-in.
        """
        return [
            self.cli.loop,
            *(layer.procedure(procedure) for layer in self.files()),
            self.environment.loop,
            *(layer.loop for layer in self.files()),
            self.preset.loop,
            self.builtin.procedure(procedure),
        ]

    def procedure_names(self) -> list[str]:
        """Built-in procedures first, in their order, then the user's."""
        layers = (self.builtin, self.global_, self.workspace)
        return list(dict.fromkeys(name for layer in layers for name in layer.procedures))

    def description(self, procedure: str) -> str:
        """The strongest description."""
        layers = (*self.files(), self.builtin)
        known = (layer.procedures.get(procedure) for layer in layers)
        return next((p.description for p in known if p and p.description), "")

    def phases(self, procedure: str) -> dict[str, PhaseValue]:
        """The strongest value of each phase that anybody gives."""
        found: dict[str, PhaseValue] = {}
        for layer in (*self.files(), self.builtin):
            if procedure in layer.procedures:
                for phase, value in layer.procedures[procedure].phases.items():
                    found.setdefault(phase, value)
        return {phase: found[phase] for phase in PHASES if phase in found}

    def aliases(self) -> dict[str, Valued]:
        """Every alias, the strongest first; one that is set to null is gone."""
        merged: dict[str, Valued] = {}
        for layer in (self.builtin, self.global_, self.workspace):
            merged.update(layer.aliases)
        return {name: valued for name, valued in merged.items() if valued.value is not None}


class Values:
    """The values that hold, each with its origin: `values[FAILURE_THRESHOLD]`."""

    def __init__(self, held: Mapping[str, Valued] | None = None) -> None:
        self._held = dict(held or {})

    def __getitem__(self, setting: Setting[T]) -> T:
        held = self._held.get(setting.key)
        return setting.default if held is None else held.value

    def origin(self, setting: Setting[Any]) -> Origin:
        """Where the value came from."""
        held = self._held.get(setting.key)
        return BUILTIN if held is None else held.origin

    def __iter__(self) -> Iterator[Setting[Any]]:
        return iter(SETTINGS)


def resolve(levels: Iterable[Level]) -> Values:
    """The strongest value of every setting; maps are merged key by key."""
    held: dict[str, Valued] = {}
    ordered = list(levels)
    for setting in SETTINGS:
        given = [level[setting.key] for level in ordered if setting.key in level]
        if not given:
            continue
        value = _merged(given) if isinstance(setting.kind, TextMap) else given[0].value
        held[setting.key] = Valued(value, given[0].origin)
    return Values(held)


def _merged(given: list[Valued]) -> dict[str, str]:
    merged: dict[str, str | None] = {}
    for valued in reversed(given):
        merged.update(valued.value)
    return {name: value for name, value in merged.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Iterations:
    """How many iterations may run; no maximum means unlimited."""

    maximum: int | None
    origin: Origin


def resolve_iterations(levels: Iterable[Level], *, zero_means_unlimited: bool) -> Iterations:
    """The strongest level that says anything about mode or count decides.

    A level that sets a count and no mode means max-iterations at that level; one that sets the
    mode alone takes the count from the levels below.
    """
    ordered = list(levels)
    for depth, level in enumerate(ordered):
        mode, count = level.get(ITERATION_MODE.key), level.get(MAX_ITERATIONS.key)
        if mode is not None and mode.value == "unlimited" and not _flag_count(depth, count):
            return Iterations(None, mode.origin)
        if mode is not None and count is None:
            below = (lower.get(MAX_ITERATIONS.key) for lower in ordered[depth + 1 :])
            count = next((valued for valued in below if valued is not None), None)
            if count is None:
                return Iterations(MAX_ITERATIONS.default, mode.origin)
        if count is not None:
            if count.value == 0 and zero_means_unlimited:
                return Iterations(None, count.origin)
            return Iterations(count.value, count.origin)
    return Iterations(MAX_ITERATIONS.default, BUILTIN)


def _flag_count(depth: int, count: Valued | None) -> bool:
    # On the command line the number wins over --unlimited; in a file the mode rules the count.
    return depth == 0 and count is not None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """The AI command as it was chosen; `provenance` is what the dry run shows."""

    text: str
    provenance: str
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownAlias:
    """The alias that was chosen does not exist."""

    name: str
    origin: Origin


def resolve_command(
    layers: Layers, procedure: str
) -> tuple[AgentCommand | UnknownAlias | None, Valued | None]:
    """The AI command by seed 000's order, and the alias that it beats, if that is no weaker.

    Flags, then the procedure, then the loop; at each of these the direct command comes first.
    A `null` takes weaker values away.
    """
    all_levels = layers.levels(procedure)
    groups = [all_levels[:1], all_levels[1:3], all_levels[3:]]
    cleared: set[str] = set()
    for group in groups:
        direct = _strongest(group, AI_CMD, cleared)
        alias = _strongest(group, AI_CMD_ALIAS, cleared)
        if direct is not None:
            beaten = alias if alias and alias.origin.tier >= direct.origin.tier else None
            return AgentCommand(direct.value, str(direct.origin)), beaten
        if alias is not None:
            return _aliased(layers, alias), None
    return None, None


def _strongest(group: Iterable[Level], setting: Setting[Any], cleared: set[str]) -> Valued | None:
    for level in group:
        valued = level.get(setting.key)
        if valued is None or setting.key in cleared:
            continue
        if valued.value is not None:
            return valued
        cleared.add(setting.key)
    return None


def _aliased(layers: Layers, chosen: Valued) -> AgentCommand | UnknownAlias:
    defined = layers.aliases().get(chosen.value)
    if defined is None:
        return UnknownAlias(chosen.value, chosen.origin)
    alias: Alias = defined.value
    provenance = f'{chosen.origin} "{chosen.value}" → {defined.origin.tier.label} alias'
    return AgentCommand(alias.command, provenance, alias.adapter)


def environment(values: Values, environ: Mapping[str, str]) -> dict[str, str]:
    """The agent's environment: rooda's own, and what `loop.env` adds."""
    added: Mapping[str, str] = values[ENV]
    return {**environ, **added}
