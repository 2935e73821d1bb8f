"""The variables that the configuration sets for agents, for commands that need nothing else."""

import os
from pathlib import Path

from rooda.config.locate import CONFIG_NAME, LARGEST_FILE, file_above, global_folder, read_layers
from rooda.config.resolve import resolve
from rooda.config.settings import ENV
from rooda.config.world import World
from rooda.text.plain_files import read_plain_file


def configured_env(world: World, procedure: str) -> dict[str, str]:
    """Return the `env` of the config files as they are now; none of a file that can't be read."""
    own = world.folder / CONFIG_NAME
    found = [own if os.path.lexists(own) else file_above(world)]
    if (folder := global_folder(world)) is not None:
        found.append(folder / CONFIG_NAME)
    if not any(_has_env(path) for path in found if path is not None):
        return {}  # to read a file as YAML takes longer than the rest of a command
    values = resolve(read_layers(world, None, {}, []), procedure)[ENV]
    return {name: value for name, value in values.items() if value is not None}


def _has_env(path: Path) -> bool:
    try:
        return b"env" in read_plain_file(path, LARGEST_FILE, follow=True)
    except (OSError, ValueError):
        return False
