"""The machine as this process finds it."""

import os
from pathlib import Path

from rooda.config.problems import InvalidInput, Problem
from rooda.config.world import World


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
