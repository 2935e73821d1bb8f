"""Texts with names in braces that are filled in later: `{procedure}: iteration {iteration}`."""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text with its names filled in, None as nothing; `{{` and `}}` are braces.

    It never fails: what it doesn't know stays as it stands. And it never looks into what it has
    filled in, so that a value with braces of its own stays as it is.
    """

    def filled(match: re.Match[str]) -> str:
        token, name = match[0], match[1]
        if name is None:
            return token[0]
        if name not in values:
            return token
        value = values[name]
        return "" if value is None else str(value)

    return _TOKEN.sub(filled, template)


def names_in(template: str) -> list[str]:
    """Every name in braces, in order."""
    return [match[1] for match in _TOKEN.finditer(template) if match[1] is not None]


def has_lone_brace(template: str) -> bool:
    """Whether a brace has no partner, so that nobody can say what was meant."""
    return any(match[0] in ("{", "}") for match in _TOKEN.finditer(template))


def template_pattern(names: tuple[str, ...]) -> str:
    """What a template with these names looks like, for JSON Schema: not empty, nothing unknown."""
    known = "|".join(map(re.escape, names))
    return rf"^(?=[\s\S]*\S)(?:[^{{}}]|\{{\{{|\}}\}}|\{{(?:{known})\}})*$"
