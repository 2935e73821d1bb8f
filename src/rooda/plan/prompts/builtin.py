"""Reads the built-in texts, and expands their `@include fragments/NAME.md` lines."""

import re
from functools import cache
from pathlib import Path

from rooda.base.lookup import did_you_mean

PREFIX = "builtin:"

# Not importlib.resources: its import takes as long as reading all prompts of a run.
_FOLDER = Path(__file__).parent / "builtin"

_INCLUDE = re.compile(r"^@include (\S+)$", re.MULTILINE)


def read(resource: str) -> str:
    """Return the text of `prompts/NAME.md` or `fragments/NAME.md`; raise KeyError if missing."""
    return _INCLUDE.sub(lambda match: _load(match[1]), _load(resource))


@cache
def _load(resource: str) -> str:
    if resource not in names():
        raise KeyError(resource)
    return (_FOLDER / resource).read_text(encoding="utf-8").strip("\n")


@cache
def names() -> frozenset[str]:
    """Return the names of all built-in texts, in the form that follows `builtin:`."""
    folders = [folder for folder in _FOLDER.iterdir() if folder.is_dir()]
    return frozenset(
        f"{folder.name}/{file.name}"
        for folder in folders
        for file in folder.iterdir()
        if file.name.endswith(".md")
    )


def suggestion(resource: str) -> str:
    """Return advice for a built-in name that does not exist."""
    return did_you_mean(f"{PREFIX}{resource}", [f"{PREFIX}{name}" for name in names()]) or (
        f"Built-in texts are named {PREFIX}prompts/NAME.md and {PREFIX}fragments/NAME.md"
    )
