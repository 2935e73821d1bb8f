"""The folder and the environment that a command works with."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.problems import InvalidInput, Problem
from rooda.world.git.work_tree import folders_to_top
from rooda.world.state.home import NoStateHomeError
from rooda.world.state.record_place import RecordPlace, place_for


class World(Struct, frozen=True):
    """The current folder and the environment; an argument, so that tests can pass their own."""

    folder: Path
    environ: Mapping[str, str]
    place: RecordPlace | None = None  # the record that is known already: that of the run to resume
    is_apart: bool = False  # the user chose the state folder (--record)

    def record_place(self, root: Path | None = None) -> RecordPlace:
        """Return the place for the record of a run that starts here, or in the project's root.

        Raises NoStateHomeError.
        """
        return self.place or place_for(root or self.folder, self.environ)

    def workspace(self, root: Path | None = None) -> Path:
        """Return the work tree of a run that starts here, or in the project's root."""
        try:
            return self.record_place(root).tree
        except NoStateHomeError:
            return folders_to_top(root or self.folder)[-1]

    @property
    def top(self) -> Path | None:
        """The work tree of the known record."""
        return None if self.place is None else self.place.tree

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
