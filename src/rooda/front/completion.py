"""Names for shell completion, found without loading YAML, which takes too long for a Tab."""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rooda.record.run_names import LAST
from rooda.world.agents.registry import COMMANDS
from rooda.world.files.plain_files import read_plain_file

_PRESETS = Path(__file__).parents[1] / "plan" / "presets"
_MOST_READ = 1024 * 1024  # bytes of the config file
_MOST_RUNS = 10  # names that a Tab offers
_KEY = re.compile(r"^( +)([A-Za-z0-9_.-]+):")


def procedure_names() -> list[str]:
    """Return the built-in procedures and those of the config file of this folder."""
    return _with_config_names(keys_below(_builtin(), "procedures"), "procedures")


def alias_names() -> list[str]:
    """Return the built-in aliases of agents and those of the config file of this folder."""
    return _with_config_names(COMMANDS, "ai_cmd_aliases")


def complete_runs(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer `last` and the newest runs; for the word after a run, only `last`."""
    names = [LAST] if ctx.params.get(param.name) else [LAST, *_newest_runs()]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _newest_runs() -> list[str]:
    """Return the names of the newest runs that have a folder; names begin with the date."""
    from rooda.record.run_folders import run_folders
    from rooda.world.state.record_place import find_place

    with contextlib.suppress(OSError):
        place = find_place(Path.cwd(), os.environ)
        if place is not None:
            return run_folders(place.state)[: -_MOST_RUNS - 1 : -1]
    return []


def _builtin() -> str:
    return (_PRESETS / "builtin.yml").read_text(encoding="utf-8")


def _with_config_names(builtin: Iterable[str], section: str) -> list[str]:
    return list(dict.fromkeys([*builtin, *keys_below(_config(), section)]))


def _config() -> str:
    """Return the text of the nearest config file; empty if it can't be read."""
    from rooda.world.git.work_tree import folders_to_top  # help loads this module too

    with contextlib.suppress(OSError, UnicodeDecodeError):
        for folder in folders_to_top(Path.cwd()):
            with contextlib.suppress(FileNotFoundError):
                data = read_plain_file(folder / "rooda-config.yml", _MOST_READ, follow=True)
                return data.decode("utf-8")
    return ""


def keys_below(text: str, section: str) -> list[str]:
    """Return the first-level keys of a top-level section, told by their indentation."""
    names: list[str] = []
    inside, indent = False, ""
    for line in text.splitlines():
        if line[:1] not in (" ", "#", ""):
            inside, indent = line.startswith(f"{section}:"), ""
        elif inside and (match := _KEY.match(line)):
            indent = indent or match[1]
            if match[1] == indent:
                names.append(match[2])
    return names
