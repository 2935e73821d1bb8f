"""What the configuration may know of the machine."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.config.problems import InvalidInput, Problem


class World(Struct, frozen=True):
    """The folder that we are in and the environment: passed in, so that tests bring their own."""

    folder: Path
    environ: Mapping[str, str]

    @property
    def home(self) -> Path | None:
        """The user's home folder, if there is one."""
        home = self.environ.get("HOME")
        return Path(home) if home else None


def this_world() -> World:
    """The current folder and environment."""
    try:
        return World(Path.cwd(), os.environ)
    except OSError as error:
        problem = Problem(f"the current folder is gone: {error.strerror}", "Go to one that exists")
        raise InvalidInput([problem]) from None


def go_to(folder: Path) -> World:
    """Work in another folder, as if the user had started the command there."""
    if folder != this_world().folder:
        try:
            os.chdir(folder)
        except OSError as error:
            message = f"the folder {folder} can't be entered: {error.strerror}"
            raise InvalidInput([Problem(message, "Check the modes of the folder")]) from None
        os.environ["PWD"] = str(folder)
    return this_world()
