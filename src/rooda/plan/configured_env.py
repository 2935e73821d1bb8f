"""The variables that the configuration sets for agents, and its secrets, for the masks of views."""

import os
from pathlib import Path

from rooda.plan.locate import CONFIG_NAME, LARGEST_FILE, file_above, global_folder, read_layers
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.settings import ENV, NOTIFY_URLS
from rooda.plan.world import World
from rooda.world.files.sight import read_named


def configured_env(world: World, procedure: str) -> dict[str, str]:
    """Return the `env` of the config files as they are now; none of a file that can't be read.

    The addresses of `notify.urls` are in it as their variable, which agents do not get.
    """
    own = world.folder / CONFIG_NAME
    found = [own if os.path.lexists(own) else file_above(world)]
    if (folder := global_folder(world)) is not None:
        found.append(folder / CONFIG_NAME)
    if not any(_has_any(path) for path in found if path is not None):
        return {}  # to read a file as YAML takes longer than the rest of a command
    values = resolve(read_layers(world, None, {}, []), procedure)
    found_env = {name: value for name, value in values[ENV].items() if value is not None}
    return found_env | address_variable(values)


def address_variable(values: Values) -> dict[str, str]:
    """Return the addresses of services as their variable, for a masker; {} if there are none."""
    urls = values[NOTIFY_URLS]
    return {NOTIFY_URLS.variable: " ".join(urls)} if urls else {}


def _has_any(path: Path) -> bool:
    try:
        content = read_named(path, LARGEST_FILE)
    except (OSError, ValueError):
        return False
    return b"env" in content or b"notify" in content
