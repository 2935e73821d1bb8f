"""Texts with placeholders, such as `{procedure}: iteration {iteration}` or `run ${TEST_COMMAND}`.

A placeholder syntax is a regular expression. Its first group is the name; a match without a name is
an escape, which is replaced by its first character (`{{` by `{`).
"""

import re
from collections.abc import Mapping

_DOLLAR_NAME = r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}"

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")  # {name}
DOLLAR = re.compile(_DOLLAR_NAME)  # ${name}; a preceding `$` is kept: `$${price}`
SHELL = re.compile(rf"(?<!\$){_DOLLAR_NAME}")  # ${NAME}; `$${NAME}` is not a placeholder


def fill(template: str, values: Mapping[str, object], form: re.Pattern[str] = BRACES) -> str:
    """Return the text with its placeholders replaced; None becomes "".

    Never raises: a placeholder with an unknown name is left unchanged. Inserted values are not
    searched for placeholders, so a value may contain braces.
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
    """Return the names of all placeholders in their order of occurrence."""
    return [match[1] for match in form.finditer(template) if match[1] is not None]


def has_lone_brace(template: str) -> bool:
    """Return whether the template has an unpaired brace."""
    return any(match[0] in ("{", "}") for match in BRACES.finditer(template))


def template_pattern(names: tuple[str, ...]) -> str:
    """Return a JSON Schema pattern for a non-blank text with no other `{name}`s than these."""
    known = "|".join(map(re.escape, names))
    return rf"^(?=[\s\S]*\S)(?:[^{{}}]|\{{\{{|\}}\}}|\{{(?:{known})\}})*$"
