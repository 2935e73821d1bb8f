"""Texts with placeholders, such as `{procedure}: iteration {iteration}` or `run ${TEST_COMMAND}`.

A form of placeholders is a pattern. Its first group is the name; a match without a name is an
escape, which stands for its first character (`{{` for `{`).
"""

import re
from collections.abc import Mapping

_DOLLAR_NAME = r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}"

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")  # {name}
DOLLAR = re.compile(_DOLLAR_NAME)  # ${name}; a second `$` in front stays: `$${price}`
SHELL = re.compile(rf"(?<!\$){_DOLLAR_NAME}")  # ${NAME}; with a second `$` in front it stays as is


def fill(template: str, values: Mapping[str, object], form: re.Pattern[str] = BRACES) -> str:
    """Return the text with its placeholders replaced; None becomes "".

    It never fails: a placeholder with an unknown name stays as written. Values are not searched
    for placeholders, so that a value may contain braces of its own.
    """

    def filled(match: re.Match[str]) -> str:
        token, name = match[0], match[1]
        if name is None:
            return token[0]
        if name not in values:
            return token
        value = values[name]
        return "" if value is None else str(value)

    return form.sub(filled, template)


def names_in(template: str, form: re.Pattern[str] = BRACES) -> list[str]:
    """Return the name of every placeholder, in order."""
    return [match[1] for match in form.finditer(template) if match[1] is not None]


def has_lone_brace(template: str) -> bool:
    """Return whether a brace has no partner, so that its meaning is unclear."""
    return any(match[0] in ("{", "}") for match in BRACES.finditer(template))


def template_pattern(names: tuple[str, ...]) -> str:
    """Return a pattern for JSON Schema: a text that is not blank, with these `{name}`s only."""
    known = "|".join(map(re.escape, names))
    return rf"^(?=[\s\S]*\S)(?:[^{{}}]|\{{\{{|\}}\}}|\{{(?:{known})\}})*$"
