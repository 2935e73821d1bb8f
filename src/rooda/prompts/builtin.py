"""The texts that come with rooda. `@include fragments/NAME.md` lines are put in place here."""

import re
from functools import cache
from importlib import resources

from rooda.text.nearmiss import did_you_mean

PREFIX = "builtin:"

_INCLUDE = re.compile(r"^@include (\S+)$", re.MULTILINE)


def read(resource: str) -> str:
    """The text of `prompts/NAME.md` or `fragments/NAME.md`; KeyError if there is none."""
    return _INCLUDE.sub(lambda match: _load(match[1]), _load(resource))


@cache
def _load(resource: str) -> str:
    if resource not in names():
        raise KeyError(resource)
    return (_root() / resource).read_text(encoding="utf-8").strip("\n")


@cache
def names() -> frozenset[str]:
    """Every built-in text, as it is written after `builtin:`."""
    rooms = [room for room in _root().iterdir() if room.is_dir()]
    return frozenset(
        f"{room.name}/{file.name}"
        for room in rooms
        for file in room.iterdir()
        if file.name.endswith(".md")
    )


def suggestion(resource: str) -> str:
    """What to write instead of a built-in name that does not exist."""
    return did_you_mean(f"{PREFIX}{resource}", [f"{PREFIX}{name}" for name in names()]) or (
        f"Built-in texts are named {PREFIX}prompts/NAME.md and {PREFIX}fragments/NAME.md"
    )


def _root() -> resources.abc.Traversable:
    return resources.files(__package__) / "builtin"
