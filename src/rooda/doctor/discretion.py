"""Keep secrets out of what we show: names are told, values never."""

import re
import shlex
from collections.abc import Mapping, Sequence

from rooda.text.controls import one_line

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.+", re.DOTALL)
_SECRET = re.compile(r"key|token|secret|passw|credential|auth(?!or)", re.IGNORECASE)
_SHORTEST = 8  # of a value that is worth hiding: shorter ones are ordinary words
_HIDDEN = "..."


def shown_command(words: Sequence[str]) -> str:
    """A command line for people to see: without the values of variables and of secret flags."""
    shown: list[str] = []
    hide = False
    for word in words:
        shown.append(_HIDDEN if hide else _shown(word))
        name, equals, _ = word.partition("=")
        hide = not hide and name.startswith("-") and not equals and bool(_SECRET.search(name))
    return one_line(shlex.join(shown).replace(f"'{_HIDDEN}'", _HIDDEN))


def _shown(word: str) -> str:
    if found := _ASSIGNMENT.fullmatch(word):
        return f"{found[1]}={_HIDDEN}"
    name, equals, _ = word.partition("=")
    is_secret_flag = equals and name.startswith("-") and _SECRET.search(name)
    return f"{name}={_HIDDEN}" if is_secret_flag else word


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """A text of others on one line, where no value of a secret variable is left."""
    shown = one_line(text)
    held = {name: value for name, value in environ.items() if _SECRET.search(name)}
    for name, value in sorted(held.items(), key=lambda pair: -len(pair[1])):
        if len(value) >= _SHORTEST:
            shown = shown.replace(value, f"[{name}]")
    return shown
