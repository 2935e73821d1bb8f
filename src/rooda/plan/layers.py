"""The layers of configuration: what each file, the environment and the flags set."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

import msgspec
from msgspec import Struct

from rooda.base.problems import Origin, Problem, Severity, Tier
from rooda.plan.prompts.parts import PHASES, Part
from rooda.plan.settings.settings import PRESET

# The name of a run of one prompt file, `rooda loop FILE`: its settings in a config file, and its
# procedure in the record.
FILE_RUN = "loop"


class Valued(Struct, frozen=True):
    """A checked value, its origin, and its name there.

    A value of None means that the user has unset it. `field` is a key such as `loop.env`, a flag or
    a variable; `parts` of a merged map are the origins of its names.
    """

    value: Any
    origin: Origin
    field: str
    parts: Mapping[str, Origin] = msgspec.field(default_factory=dict)

    def problem(
        self, message: str, suggestion: str, severity: Severity = Severity.ERROR
    ) -> Problem:
        """Return a problem with the value."""
        return Problem.at(self.origin, self.field, message, suggestion, severity)


class Alias(Struct, frozen=True):
    """A named agent command; `adapter` names the agent if the command does not."""

    command: str
    adapter: str | None = None


class PhaseValue(Struct, frozen=True):
    """The parts of one phase; none if all of them are wrong."""

    parts: tuple[Part, ...]
    origin: Origin
    field: str


class ProcedureLayer(Struct):
    """What one layer sets for one procedure."""

    origin: Origin
    description: str | None = None
    phases: dict[str, PhaseValue] = msgspec.field(default_factory=dict)
    values: dict[str, Valued] = msgspec.field(default_factory=dict)


class Layer(Struct):
    """What one tier sets; the keys of `loop` and `fleet` are those of settings, with dots."""

    tier: Tier
    file: str = ""  # its name in messages, if there is one
    broken: bool = False  # the file could not be read or parsed
    loop: dict[str, Valued] = msgspec.field(default_factory=dict)
    procedures: dict[str, ProcedureLayer] = msgspec.field(default_factory=dict)
    aliases: dict[str, Valued] = msgspec.field(default_factory=dict)
    fleet: dict[str, Valued] = msgspec.field(default_factory=dict)

    def procedure(self, name: str) -> Mapping[str, Valued]:
        """Return the values that this layer sets for this procedure only."""
        known = self.procedures.get(name)
        return known.values if known else {}


class Scope(Enum):
    """What a level is for; the values of a procedure beat those of the loop."""

    FLAGS = auto()
    PROCEDURE = auto()
    LOOP = auto()


class ConfigLevel(Struct, frozen=True):
    """One place that may set values."""

    scope: Scope
    values: Mapping[str, Valued]

    def get(self, key: str) -> Valued | None:
        """Return the value that this level sets; None if it sets none."""
        return self.values.get(key)


class Layers(Struct, frozen=True):
    """All tiers of one invocation."""

    cli: Layer
    environment: Layer
    workspace: Layer
    global_: Layer
    presets: Mapping[str, Layer]
    builtin: Layer

    def files(self) -> tuple[Layer, Layer]:
        """Return the user's files, strongest first."""
        return self.workspace, self.global_

    def levels(self, procedure: str) -> list[ConfigLevel]:
        """Return every level that may set a value, strongest first.

        The values that files set for a procedure beat those of the loop from any file or variable;
        those of a built-in procedure rank as built-in. The stronger levels choose the preset.
        """
        strong = [
            ConfigLevel(Scope.FLAGS, self.cli.loop),
            *(ConfigLevel(Scope.PROCEDURE, layer.procedure(procedure)) for layer in self.files()),
            ConfigLevel(Scope.LOOP, self.environment.loop),
            *(ConfigLevel(Scope.LOOP, layer.loop) for layer in self.files()),
        ]
        chosen = (level.get(PRESET.key) for level in strong)
        preset = next((valued.value for valued in chosen if valued is not None), PRESET.default)
        return [
            *strong,
            ConfigLevel(Scope.LOOP, self.presets[preset].procedure(procedure)),
            ConfigLevel(Scope.LOOP, self.presets[preset].loop),
            ConfigLevel(Scope.LOOP, self.builtin.procedure(procedure)),
        ]

    def procedure_names(self) -> list[str]:
        """Return the built-in procedures in their order, then the user's."""
        layers = (self.builtin, self.global_, self.workspace)
        return list(dict.fromkeys(name for layer in layers for name in layer.procedures))

    def names_to_run(self) -> list[str]:
        """Return the procedures that have a prompt; `loop` can have settings alone."""
        return [one for one in self.procedure_names() if one != FILE_RUN or self.phases(one)]

    def description(self, procedure: str) -> str:
        """Return the strongest description; empty if there is none."""
        layers = (*self.files(), self.builtin)
        known = (layer.procedures.get(procedure) for layer in layers)
        return next((p.description for p in known if p and p.description), "")

    def phases(self, procedure: str) -> dict[str, PhaseValue]:
        """Return the strongest value of each phase that a layer sets."""
        found: dict[str, PhaseValue] = {}
        for layer in (*self.files(), self.builtin):
            if procedure in layer.procedures:
                for phase, value in layer.procedures[procedure].phases.items():
                    found.setdefault(phase, value)
        return {phase: found[phase] for phase in PHASES if phase in found}

    def aliases(self) -> dict[str, Valued]:
        """Return every alias with its strongest definition; null removes an alias."""
        merged: dict[str, Valued] = {}
        for layer in (self.builtin, self.global_, self.workspace):
            merged.update(layer.aliases)
        return {name: valued for name, valued in merged.items() if valued.value is not None}
