"""The options for programs that start rooda: they are no settings, and no flags of the run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rooda.console.options import RunOption

SECTION = "For programs"  # the section of the help

_OPTIONS: Mapping[str, tuple[str, str]] = {
    "--record": ("DIR", "Keep the record of the run in DIR, not in the work tree"),
}
NAMES = frozenset(flag.removeprefix("--").replace("-", "_") for flag in _OPTIONS)


def program_options() -> list[click.Parameter]:
    """Return the options; only `--help-all` shows them."""
    return [
        RunOption([flag], metavar=metavar, help=words, section=SECTION, common=False)
        for flag, (metavar, words) in _OPTIONS.items()
    ]


def absolute(path: str | None) -> Path | None:
    """Return the path that the user named, as seen from the current folder."""
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100


def record_of(parameters: Mapping[str, Any]) -> Path | None:
    """Return the folder for the record that `--record` names. Raises InvalidInput."""
    # Imported here: help and completion need none of it.
    from rooda.config.world import this_world
    from rooda.engine.for_programs import record_apart

    folder = absolute(parameters.get("record"))
    return None if folder is None else record_apart(folder, this_world())
