"""Names of runs, and words that count from the end: `last` and `-1`, then `-2`, ... Pure."""

import re

LAST = "last"
_FROM_END = re.compile(r"-([1-9][0-9]{0,5})")
# A chosen name is also a part of git's refs, which have no `..`, no dot at the end and no `.lock`.
_CHOSEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(?<!\.lock)")
_ITERATION = re.compile(r"[0-9]{1,6}")
_LONGEST = 64
_TAKEN = (LAST, "undo", "fleet")  # words in the place of a run, here and in git's refs


def wrong_name(name: str) -> str:
    """Return what is wrong with the name that the user chose for a run; empty if nothing is."""
    if name in _TAKEN:
        return "this word has another meaning"
    if _ITERATION.fullmatch(name):
        return "a number of at most six digits names an iteration"
    if len(name) > _LONGEST:
        return f"it has more than {_LONGEST} characters"
    if not _CHOSEN.fullmatch(name):
        return (
            "it needs letters, digits, `_` and `-`, or single dots between them, begins with a "
            "letter or digit, and does not end with .lock"
        )
    return ""


def from_end(word: str) -> int | None:
    """Return 1 for `last` and `-1`, 2 for `-2`, and so on; None for any other word."""
    if word == LAST:
        return 1
    match = _FROM_END.fullmatch(word)
    return int(match[1]) if match else None
