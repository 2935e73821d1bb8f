"""Names for shell completion, found without loading YAML: pressing Tab must be quick."""

import contextlib
import re
from importlib import resources
from pathlib import Path

_KEY = re.compile(r"^( +)([A-Za-z0-9_.-]+):")


def procedure_names() -> list[str]:
    """The built-in procedures and those of a config file in this folder."""
    return _names("procedures")


def alias_names() -> list[str]:
    """The same for the aliases of agent commands."""
    return _names("ai_cmd_aliases")


def _names(section: str) -> list[str]:
    texts = [(resources.files("rooda") / "presets" / "builtin.yml").read_text(encoding="utf-8")]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        texts.append(Path("rooda-config.yml").read_text(encoding="utf-8"))
    return list(dict.fromkeys(name for text in texts for name in keys_below(text, section)))


def keys_below(text: str, section: str) -> list[str]:
    """The first-level keys of a top-level section, by their indentation. A hint, not a parser."""
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
