"""The configuration as it holds, with the origin of every value."""

import json
from collections.abc import Iterable
from typing import Any

from rooda.base.formats import flow_yaml
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.inspect import Inspection
from rooda.plan.resolve import Values
from rooda.plan.settings.fleet_settings import FLEET_SETTINGS
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import SETTINGS
from rooda.plan.settings.text_kinds import TextMap


def as_yaml(found: Inspection) -> str:
    """The settings in the form of a config file, with their origins as comments."""
    return _section("loop", SETTINGS, found.values) + _section("fleet", FLEET_SETTINGS, found.fleet)


def _section(name: str, settings: Iterable[Setting[Any]], values: Values) -> str:
    lines = [f"{name}:"]
    section = ""
    for setting in settings:
        outer, dot, name = setting.key.partition(".")
        if dot and outer != section:
            section = outer
            lines.append(f"  {outer}:")
        indent, word = ("    ", name) if dot else ("  ", setting.key)
        origin = values.origin(setting).exact
        if parts := values.parts(setting):
            lines.append(f"{indent}{word}:")
            lines += [_line(f"{indent}  {part}: ...", at.exact) for part, at in parts.items()]
        else:
            shown = flow_yaml(_masked(setting.plain(values[setting])))
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
    shown = {
        "loop": _objects(SETTINGS, found.values),
        "fleet": _objects(FLEET_SETTINGS, found.fleet),
    }
    return json.dumps(shown, indent=2) + "\n"


def _objects(settings: Iterable[Setting[Any]], values: Values) -> dict[str, dict[str, object]]:
    return {
        setting.key: {
            # Values of the environment may be secrets.
            "value": dict.fromkeys(values.parts(setting), "...")
            if isinstance(setting.kind, TextMap)
            else _masked(setting.plain(values[setting])),
            "tier": (origin := values.origin(setting)).tier.label,
            "source": origin.source or None,
            "line": origin.line,
            **({"note": origin.note} if origin.note else {}),
        }
        for setting in settings
    }
