"""Where a value came from."""

from enum import IntEnum
from pathlib import Path

from msgspec import Struct


class Tier(IntEnum):
    """The layers of configuration, weakest first, so that they can be compared."""

    BUILTIN = 0
    PRESET = 1
    GLOBAL = 2
    WORKSPACE = 3
    ENVIRONMENT = 4
    CLI = 5

    @property
    def label(self) -> str:
        """The tier's name as users see it."""
        return _LABELS[self]


_LABELS = {
    Tier.BUILTIN: "built-in",
    Tier.PRESET: "preset",
    Tier.GLOBAL: "global",
    Tier.WORKSPACE: "workspace",
    Tier.ENVIRONMENT: "env",
    Tier.CLI: "cli",
}


class Origin(Struct, frozen=True):
    """A tier and what the value is called there: a file, a variable, a flag, a preset.

    `tree` is the work tree that the file belongs to, if others than the user write that file.
    `note` says why another value does not count.
    """

    tier: Tier
    source: str = ""
    line: int | None = None
    tree: Path | None = None
    note: str = ""

    def __str__(self) -> str:
        """Return tier and source, as the dry run shows them: `workspace: ./rooda-config.yml`."""
        return self._with_note(self._place)

    @property
    def exact(self) -> str:
        """The same with the line: `workspace: ./rooda-config.yml:12`."""
        return self._with_note(f"{self._place}:{self.line}" if self.line else self._place)

    @property
    def _place(self) -> str:
        if not self.source:
            return self.tier.label
        is_bare_file = self.line is not None and not self.source.startswith(("/", "~", "."))
        return f"{self.tier.label}: {'./' if is_bare_file else ''}{self.source}"

    def _with_note(self, place: str) -> str:
        return f"{place}; {self.note}" if self.note else place


BUILTIN = Origin(Tier.BUILTIN)
