"""Why git did not commit or push, and what the user can do about it."""

from msgspec import Struct

from rooda.world.git.git import GitInterruptedError, GitStoppedError
from rooda.world.tools import Finished

_SHOWN = 4000  # characters of what git says


class Refusal(Struct, frozen=True):
    """Why git did not do it, and what to do."""

    error: str
    suggestion: str
    interrupted: bool = False
    secrets: tuple[str, ...] = ()  # names


# What git says, and what helps. The first that fits is taken.
_ADVICE = (
    ("index.lock", "Another git is at work, or one was killed: if none is, remove that file"),
    ("user.email", "Tell git who you are: git config user.name and user.email"),
    ("Please tell me who you are", "Tell git who you are: git config user.name and user.email"),
    ("gpg failed to sign", "Signing must work without a question: unlock the key, or turn it off"),
    ("failed to write commit object", "Signing must work without a question: unlock the key"),
    ("unmerged files", "Resolve the conflict first (git status shows it)"),
    ("could not read Username", "Give git credentials that need no question"),
    ("Authentication failed", "Give git credentials that need no question"),
    ("Permission denied (publickey", "Give git a key that needs no question (ssh-add)"),
    ("[rejected]", "The remote has commits that are not here: git pull, then push again"),
    ("fetch first", "The remote has commits that are not here: git pull, then push again"),
)
_SLOW = "See whether `git status` ends here; a named pipe or a huge file can hold it up"
_HOOK_ADVICE = "Read what git and its hooks say above; the work is still in the work tree"


def refusal_of_stopped(error: GitStoppedError) -> Refusal:
    """Return the refusal of a git that rooda has stopped."""
    return Refusal(str(error), _SLOW, isinstance(error, GitInterruptedError))


def refusal_of(finished: Finished) -> Refusal:
    """Return the words of git, and of its hooks, with advice."""
    said = finished.last_words(_SHOWN)
    error = "\n".join(part for part in (finished.error, said) if part)
    advice = next((advice for sign, advice in _ADVICE if sign in said), _HOOK_ADVICE)
    return Refusal(error, advice, finished.was_interrupted)
