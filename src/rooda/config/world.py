"""The folder and the environment that a command works with."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.config.problems import InvalidInput, Problem
from rooda.workspace.record_place import workspace_for


class World(Struct, frozen=True):
    """The current folder and the environment; an argument, so that tests can pass their own."""

    folder: Path
    environ: Mapping[str, str]
    record: Path | None = None  # the folder with the record of the run that goes on
    is_apart: bool = False  # `record` is not a part of the project: the user chose it (--record)

    def workspace(self, root: Path | None = None) -> Path:
        """Return the folder with the record of a run that starts here, or of the project's root."""
        return self.record or workspace_for(root or self.folder)

    def project(self, root: Path | None = None) -> Path | None:
        """Return the folder that would have the record, if the user chose another; else None."""
        return workspace_for(root or self.folder) if self.is_apart else None

    @property
    def home(self) -> Path | None:
        """The home folder of the user; None if HOME is not set."""
        home = self.environ.get("HOME")
        return Path(home) if home else None


def this_world() -> World:
    """Return the current folder and environment. Raises InvalidInput if the folder is gone."""
    try:
        return World(Path.cwd(), os.environ)
    except OSError as error:
        problem = Problem(f"the current folder is gone: {error.strerror}", "Go to one that exists")
        raise InvalidInput([problem]) from None


def go_to(folder: Path) -> World:
    """Change to another folder, as if the user had started the command there."""
    if folder != this_world().folder:
        try:
            os.chdir(folder)
        except OSError as error:
            message = f"the folder {folder} can't be entered: {error.strerror}"
            raise InvalidInput([Problem(message, "Check the modes of the folder")]) from None
        os.environ["PWD"] = str(folder)
    return this_world()


def with_changes(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment with these variables set; a value of None removes the variable."""
    merged: dict[str, str | None] = {**environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}
