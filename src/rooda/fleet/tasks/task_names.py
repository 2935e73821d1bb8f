"""Names of runs, from the words of the user: safe parts of branches, refs and folders. Pure."""

import hashlib
import re
import unicodedata

from rooda.base.secrets.token_formats import without_tokens
from rooda.record.run_names import wrong_name

_LONGEST = 48  # characters; a longer title is cut between words
_OTHERS = re.compile(r"[^a-z0-9._]+")
_DOTS = re.compile(r"\.{2,}")


def run_name(title: str) -> str:
    """Return the name of the run for a title: `Add a login page` becomes `add-a-login-page`.

    Words in letters that have no counterpart from a to z become `task-` and a number of their own.
    So does a word that means something else to rooda or git: `last` becomes `task-last`.
    """
    shown = without_tokens(title)  # the name is published, as that of a branch
    plain = unicodedata.normalize("NFKD", shown.casefold()).encode("ascii", "ignore").decode()
    name = _shortened(_DOTS.sub(".", _OTHERS.sub("-", plain.lower())).strip("-._"))
    if not name:
        return f"task-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
    if name.endswith(".lock"):  # git refuses a branch with this end
        return f"{name.removesuffix('.lock')}-lock"
    return f"task-{name}" if wrong_name(name) else name


def is_run_name(text: str) -> bool:
    """Return whether the text can be the name of a run."""
    return not wrong_name(text) and text == text.lower()


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    cut = name[: _LONGEST + 1]
    words = cut.rpartition("-")[0]
    return (words if len(words) > _LONGEST // 2 else cut[:_LONGEST]).strip("-._")
