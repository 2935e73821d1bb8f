"""The configuration as it holds, with the origin of every value."""

import json
from typing import Any

from rooda.config.inspect import Inspection
from rooda.config.kinds import TextMap
from rooda.config.settings import SETTINGS, Setting


def as_yaml(found: Inspection) -> str:
    """YAML that could be pasted into a config file; the origins are comments."""
    rows = [(setting.key, _yaml(_shown(found, setting)), setting) for setting in SETTINGS]
    lines = ["loop:"]
    section = ""
    for key, value, setting in rows:
        outer, dot, name = key.partition(".")
        if dot and outer != section:
            section = outer
            lines.append(f"  {outer}:")
        indent, word = ("    ", name) if dot else ("  ", key)
        line = f"{indent}{word}: {value}"
        lines.append(f"{line:<50}  # {found.values.origin(setting).exact}")
    maximum = found.iterations.maximum
    shown = "unlimited" if maximum is None else maximum
    lines.append(f"# so the maximum of iterations is: {shown} ({found.iterations.origin.exact})")
    return "\n".join(lines) + "\n"


def as_json(found: Inspection) -> str:
    """The same for programs."""
    values = {
        setting.key: {
            "value": _shown(found, setting),
            "tier": (origin := found.values.origin(setting)).tier.label,
            "source": origin.source or None,
            "line": origin.line,
        }
        for setting in SETTINGS
    }
    limit = {"value": found.iterations.maximum, "origin": found.iterations.origin.exact}
    return json.dumps({"loop": values, "max_iterations": limit}, indent=2) + "\n"


def _shown(found: Inspection, setting: Setting[Any]) -> Any:
    value = found.values[setting]
    # Values of the environment may be secrets.
    return dict.fromkeys(value, "...") if isinstance(setting.kind, TextMap) else value


def _yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 - slow to load, and Tab must be quick

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
