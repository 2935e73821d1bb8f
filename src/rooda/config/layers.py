"""One layer of configuration: what a single file, the environment or the flags say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rooda.config.origin import Origin, Tier
from rooda.config.problems import Problem, Severity
from rooda.prompts.parts import PHASES, Part


@dataclass(frozen=True, slots=True)
class Valued:
    """A checked value, where it came from, and what it is called there.

    `None` means explicitly none. `field` is a key such as `loop.env`, a flag or a variable.
    """

    value: Any
    origin: Origin
    field: str

    def problem(
        self, message: str, suggestion: str, severity: Severity = Severity.ERROR
    ) -> Problem:
        """Something is wrong with the value."""
        return Problem.at(self.origin, self.field, message, suggestion, severity)


@dataclass(frozen=True, slots=True)
class Alias:
    """A named agent command; `adapter` says whose output it prints, when the name doesn't."""

    command: str
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class PhaseValue:
    """The parts of one phase; none where what was written can't be used."""

    parts: tuple[Part, ...]
    origin: Origin
    field: str


@dataclass(slots=True)
class ProcedureLayer:
    """What one layer says of one procedure."""

    origin: Origin
    description: str | None = None
    phases: dict[str, PhaseValue] = field(default_factory=dict)
    values: dict[str, Valued] = field(default_factory=dict)


@dataclass(slots=True)
class Layer:
    """What one tier says; keys of `loop` are the settings' dotted keys."""

    tier: Tier
    loop: dict[str, Valued] = field(default_factory=dict)
    procedures: dict[str, ProcedureLayer] = field(default_factory=dict)
    aliases: dict[str, Valued] = field(default_factory=dict)

    def procedure(self, name: str) -> Mapping[str, Valued]:
        """The values that this layer sets for a procedure alone."""
        known = self.procedures.get(name)
        return known.values if known else {}


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
