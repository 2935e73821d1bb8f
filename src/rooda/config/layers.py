"""One layer of configuration: what a single file, the environment or the flags say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rooda.config.origin import Origin, Tier
from rooda.prompts.parts import Part


@dataclass(frozen=True, slots=True)
class Valued:
    """A checked value and where it came from. `None` means explicitly none."""

    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Alias:
    """A named agent command; `adapter` says whose output it prints, when the name doesn't."""

    command: str
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class PhaseValue:
    """The parts of one phase."""

    parts: tuple[Part, ...]
    origin: Origin


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
