"""Names for shell completion, found without loading YAML, which takes too long for a Tab."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from rooda.agents.registry import COMMANDS
from rooda.text.plain_files import read_plain_file

_PRESETS = Path(__file__).parent.parent / "presets"
_MOST_READ = 1024 * 1024  # bytes of the config file
_KEY = re.compile(r"^( +)([A-Za-z0-9_.-]+):")


def procedure_names() -> list[str]:
    """Return the built-in procedures and those of a config file in this folder."""
    return _with_config_names(keys_below(_builtin(), "procedures"), "procedures")


def alias_names() -> list[str]:
    """Return the built-in aliases of agents and those of a config file in this folder."""
    return _with_config_names(COMMANDS, "ai_cmd_aliases")


def _builtin() -> str:
    return (_PRESETS / "builtin.yml").read_text(encoding="utf-8")


def _with_config_names(builtin: Iterable[str], section: str) -> list[str]:
    text = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = read_plain_file(Path("rooda-config.yml"), _MOST_READ, follow=True).decode("utf-8")
    return list(dict.fromkeys([*builtin, *keys_below(text, section)]))


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
