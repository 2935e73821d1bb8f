"""The configuration as it holds, with the origin of every value."""

import json

from rooda.config.inspect import Inspection
from rooda.config.sensitive import without_secret_values
from rooda.config.settings import SETTINGS
from rooda.config.text_kinds import TextMap
from rooda.text.formats import flow_yaml


def as_yaml(found: Inspection) -> str:
    """The settings in the form of a config file, with their origins as comments."""
    lines = ["loop:"]
    section = ""
    for setting in SETTINGS:
        outer, dot, name = setting.key.partition(".")
        if dot and outer != section:
            section = outer
            lines.append(f"  {outer}:")
        indent, word = ("    ", name) if dot else ("  ", setting.key)
        origin = found.values.origin(setting).exact
        if parts := found.values.parts(setting):
            lines.append(f"{indent}{word}:")
            lines += [_line(f"{indent}  {part}: ...", at.exact) for part, at in parts.items()]
        else:
            shown = flow_yaml(_masked(setting.plain(found.values[setting])))
            lines.append(_line(f"{indent}{word}: {shown}", origin))
    return "\n".join(lines) + "\n"


def _masked(value: object) -> object:
    """Return the value without the secrets in its texts, which may be commands."""
    if isinstance(value, str):
        return without_secret_values(value)
    if isinstance(value, list | tuple):
        return [_masked(one) for one in value]
    if isinstance(value, dict):
        return {name: _masked(one) for name, one in value.items()}
    return value


def _line(text: str, origin: str) -> str:
    return f"{text:<50}  # {origin}"


def as_json(found: Inspection) -> str:
    """The same for programs."""
    values = {
        setting.key: {
            # Values of the environment may be secrets.
            "value": dict.fromkeys(found.values.parts(setting), "...")
            if isinstance(setting.kind, TextMap)
            else _masked(setting.plain(found.values[setting])),
            "tier": (origin := found.values.origin(setting)).tier.label,
            "source": origin.source or None,
            "line": origin.line,
        }
        for setting in SETTINGS
    }
    return json.dumps({"loop": values}, indent=2) + "\n"
