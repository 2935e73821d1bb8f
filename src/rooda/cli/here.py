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
