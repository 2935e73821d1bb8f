"""Words that count from the end: `last` and `-1`, then `-2`, and so on. Pure."""

import re

LAST = "last"
_FROM_END = re.compile(r"-([1-9][0-9]{0,5})")


def from_end(word: str) -> int | None:
    """Return 1 for `last` and `-1`, 2 for `-2`, and so on; None for any other word."""
    if word == LAST:
        return 1
    match = _FROM_END.fullmatch(word)
    return int(match[1]) if match else None
