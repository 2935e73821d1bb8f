"""Names as patterns that git and `fnmatch` read alike."""

import re

_SPECIAL = re.compile(r"([*?[])")
_DIGIT = re.compile(r"[0-9]")


def exactly(name: str) -> str:
    """A pattern for this name alone."""
    return _SPECIAL.sub(r"[\1]", name)


def alike(name: str) -> str:
    """A pattern for a file and for those of other times in its folder: `session-20261115.log`."""
    folder, slash, file = name.rpartition("/")
    return exactly(folder + slash) + _DIGIT.sub("[0-9]", exactly(file))
