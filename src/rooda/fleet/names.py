"""Names of runs, from the words of the user: safe parts of branches, refs and folders. Pure."""

import hashlib
import re
import unicodedata

_LONGEST = 48  # characters; a longer title is cut between words
_OTHERS = re.compile(r"[^a-z0-9._]+")
_DOTS = re.compile(r"\.{2,}")
_WHOLE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def run_name(title: str) -> str:
    """Return the name of the run for a title: `Add a login page` becomes `add-a-login-page`.

    Words in letters that have no counterpart from a to z become `task-` and a number of their own.
    """
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    name = _shortened(_DOTS.sub(".", _OTHERS.sub("-", plain.lower())).strip("-._"))
    if not name:
        return f"task-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
    # Git refuses a branch with this end.
    return f"{name.removesuffix('.lock')}-lock" if name.endswith(".lock") else name


def is_run_name(text: str) -> bool:
    """Return whether the text can be the name of a run."""
    is_whole = _WHOLE.fullmatch(text) is not None
    return is_whole and ".." not in text and not text.endswith((".", ".lock"))


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    cut = name[: _LONGEST + 1]
    words = cut.rpartition("-")[0]
    return (words if len(words) > _LONGEST // 2 else cut[:_LONGEST]).strip("-._")
