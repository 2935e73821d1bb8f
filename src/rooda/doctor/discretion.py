"""Keep secrets out of what we show: names are told, values never."""

import re
import shlex
from collections.abc import Mapping, Sequence

from rooda.config.sensitive import HIDDEN, names_a_secret
from rooda.text.controls import one_line

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=.+", re.DOTALL)
_SHORTEST = 8  # of a value that is worth hiding: shorter ones are ordinary words


def shown_command(words: Sequence[str]) -> str:
    """A command line for people to see: without the values of variables and of secret flags."""
    shown: list[str] = []
    hide = False
    for word in words:
        shown.append(HIDDEN if hide else _shown(word))
        name, equals, _ = word.partition("=")
        hide = not hide and name.startswith("-") and not equals and names_a_secret(name)
    return one_line(shlex.join(shown).replace(f"'{HIDDEN}'", HIDDEN))


def _shown(word: str) -> str:
    if found := _ASSIGNMENT.fullmatch(word):
        return f"{found[1]}={HIDDEN}"
    name, equals, _ = word.partition("=")
    is_secret_flag = equals and name.startswith("-") and names_a_secret(name)
    return f"{name}={HIDDEN}" if is_secret_flag else word


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """A text of others on one line, where no value of a secret variable is left."""
    shown = one_line(text)
    held = {name: value for name, value in environ.items() if names_a_secret(name)}
    for name, value in sorted(held.items(), key=lambda pair: -len(pair[1])):
        if len(value) >= _SHORTEST:
            shown = shown.replace(value, f"[{name}]")
    return shown
