"""What the configuration may know of the machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class World:
    """The folder that we are in and the environment: passed in, so that tests bring their own."""

    folder: Path
    environ: Mapping[str, str]

    @property
    def home(self) -> Path | None:
        """The user's home folder, if there is one."""
        home = self.environ.get("HOME")
        return Path(home) if home else None
