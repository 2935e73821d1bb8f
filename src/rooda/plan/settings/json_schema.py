"""The JSON Schema of rooda-config.yml, from the table of settings."""

from collections.abc import Mapping
from typing import Any

from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.fleet_settings import FLEET_SETTINGS
from rooda.plan.settings.kinds import Schema
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import OLD_KEYS, SETTINGS, SHORT_FORMS
from rooda.plan.settings.text_kinds import Text, TextMap
from rooda.world.agents.registry import ADAPTERS

# Text without quotes: YAML reads it as a number or a boolean, and rooda takes it as text.
_WORDS: Schema = {"type": ["string", "number", "boolean"], "pattern": r"\S"}


def schema() -> Schema:
    """Return the schema, for editors that complete and check YAML."""
    procedure = _object(
        {
            "description": _WORDS | {"description": "One line for `rooda list`"},
            **{phase: {"$ref": "#/$defs/phase"} for phase in PHASES},
            **_settings([setting for setting in SETTINGS if setting.per_procedure]),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rooda-config.yml",
        **_object(
            {
                "loop": _or_null(_object(_settings(list(SETTINGS)))),
                "fleet": _or_null(_object(_settings(list(FLEET_SETTINGS), old={}))),
                "procedures": _or_null(
                    {
                        "type": "object",
                        "propertyNames": {"pattern": r"^(?!-).*\S"},
                        "additionalProperties": _or_null(procedure),
                    }
                ),
                "ai_cmd_aliases": _or_null(
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/alias"}}
                ),
            }
        ),
        "patternProperties": {"^x-": {"description": "Free: a place for YAML anchors"}},
        "$defs": {"phase": _phase(), "alias": _alias()},
    }


def _settings(settings: list[Setting[Any]], old: Mapping[str, str] = OLD_KEYS) -> Schema:
    properties: Schema = {}
    sections: Schema = {}
    for setting in settings:
        section, dot, name = setting.key.partition(".")
        target = sections.setdefault(section, {}) if dot else properties
        target[name if dot else section] = _setting(setting)
    for section, inner in sections.items():
        properties[section] = _object(inner) | _short_form(section)
    for name, new in old.items():
        properties[name] = properties[new] | {"deprecated": True}
    return properties


def _short_form(section: str) -> Schema:
    """Return what may replace a section: null, or a value for its main setting."""
    short = SHORT_FORMS.get(section)
    if short is None:
        return {"type": ["object", "null"]}
    whole = short.kind.schema()
    if "enum" in whole:
        return {"anyOf": [{"type": "object"}, whole], "description": short.help}
    kinds = whole.get("anyOf", [whole])
    types = [kind["type"] for kind in kinds]
    merged = {key: value for kind in kinds for key, value in kind.items()}
    # Their other keywords do not apply to objects.
    return merged | {"type": ["object", "null", *types], "description": short.help}


def _setting(setting: Setting[Any]) -> Schema:
    kind = setting.kind.schema()
    described: Schema = {"description": setting.help}
    if isinstance(setting.default, (str, int, float)):
        described["default"] = setting.default
    return (_or_null(kind) if setting.nullable else kind) | described


def _phase() -> Schema:
    item = _object(
        {
            "path": _WORDS,
            "content": _WORDS,
            "parameters": TextMap().schema(),
        }
    ) | {"oneOf": [{"required": ["path"]}, {"required": ["content"]}]}
    return {
        "description": "A path (`builtin:...` for rooda's own texts), or a list of items",
        "anyOf": [
            Text().schema(),
            {"type": "array", "minItems": 1, "items": {"anyOf": [Text().schema(), item]}},
        ],
    }


def _alias() -> Schema:
    return {
        "anyOf": [
            _WORDS,
            {"type": "null"},
            _object({"command": _WORDS, "adapter": {"enum": list(ADAPTERS)}})
            | {"required": ["command"]},
        ]
    }


def _object(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _or_null(kind: Schema) -> Schema:
    return {"anyOf": [kind, {"type": "null"}]}
