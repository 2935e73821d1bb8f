"""Prompts with names in them: `${SPECS_DIR}`."""

import re
from collections.abc import Mapping

_NAME = re.compile(r"(?<!\$)\$\{([^${}]++)\}")


def substitute(text: str, names: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced for exactly these names; all else stays as it stands.

    What was put in is never looked into again, so a value may hold `${...}` of its own.
    """
    return _NAME.sub(lambda match: names.get(match[1], match[0]), text)
