"""Why git did not commit or push, and what the user can do about it."""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.numbers import approximate_size
from rooda.base.paths import first_names
from rooda.base.times import format_seconds
from rooda.loop.events.work import ADVICE_ON_REPOSITORIES
from rooda.loop.publish.user_git import UserGit
from rooda.loop.stages.verify import indented
from rooda.world.git.git import GitError, GitInterruptedError, GitStoppedError
from rooda.world.git.new_files import NewFile, NewSecrets
from rooda.world.git.pin import Pin
from rooda.world.git.snapshots.snapshots import LARGEST
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


# Files that are so large that git could not read them within the time for a commit.


_FASTEST = 1024**3  # bytes that git, or a filter such as git-lfs, may read in a second
_LARGE_FILES_ADVICE = (
    "Delete it or add it to .gitignore; if it has to be committed, set git.commit_timeout higher"
)


class LargeFiles:
    """The large ones of the files that are in no snapshot, the largest first."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """`names` are relative to the folder; rooda leaves out folders and unreadable files."""
        sizes = ((name, _size(folder / name)) for name in names)
        large = ((name, size) for name, size in sizes if size > LARGEST)
        self._sizes = dict(sorted(large, key=lambda one: -one[1]))

    def refusal(self, limit: float) -> Refusal | None:
        """Return why a commit can't end within its time limit, if that is certain."""
        names = [name for name, size in self._sizes.items() if size > limit * _FASTEST]
        if not names:
            return None
        time = format_seconds(limit)
        error = (
            f"too large to be committed within git.commit_timeout ({time}): {self._shown(names)}"
        )
        return Refusal(error, _LARGE_FILES_ADVICE)

    def explain(self, timed_out: Refusal) -> Refusal:
        """Return the refusal of a git that took too long, with the files that may be the cause."""
        if not self._sizes:
            return timed_out
        error = f"{timed_out.error}\nLarge files may be the cause: {self._shown(self._sizes)}"
        return replace(timed_out, error=error, suggestion=_LARGE_FILES_ADVICE)

    def _shown(self, names: Iterable[str]) -> str:
        return first_names([f"{name} ({approximate_size(self._sizes[name])})" for name in names])


def _size(path: Path) -> int:
    """Return the size of a regular file; 0 for anything else."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


# Checks before a push that its commits add no secrets; words for the agent about secrets.


MOST_NAMED = 100  # names of secrets in an event
_TRY_LOG = "Check that `git log --stat` works here"
_TAKE_OUT = (
    "Take them out of these commits (git rebase -i); if they may be pushed, name them in "
    "git.allow_secrets"
)


def check_commits(
    git: UserGit, pin: Pin, secrets: NewSecrets, remote: str, *, limit: float
) -> Refusal | None:
    """Return why HEAD is not pushed to a remote: a commit that the remote lacks adds a secret.

    rooda asks the remote which commits it has (within `limit` seconds) only if it has found
    something in the commits that are new since the start of the run.
    """
    head = git.ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    if not head:
        return None  # the push says what is the matter
    found = _secrets_in(secrets, head, pin.known_commits(remote))
    if found:
        there = _commits_of(git, remote, limit)
        if isinstance(there, Refusal):
            return there
        found = _secrets_in(secrets, head, there)
    if isinstance(found, GitError):
        return Refusal(f"rooda could not look for secrets in the commits: {found}", _TRY_LOG)
    if found:
        return _refusal(found)
    pin.note_checked(remote, head)
    return None


def _secrets_in(secrets: NewSecrets, head: str, known: Iterable[str]) -> list[NewFile] | GitError:
    """Return the secrets that the commits add, or why git can't tell."""
    try:
        return secrets.committed(head, known)
    except GitStoppedError:
        raise
    except GitError as error:
        return error


def _commits_of(git: UserGit, remote: str, limit: float) -> set[str] | Refusal:
    """Return the tips that the remote has at each of its push addresses, as it says itself."""
    places = git.ask("remote", "get-url", "--push", "--all", remote).splitlines()
    if places == git.ask("remote", "get-url", "--all", remote).splitlines()[:1]:
        places = [remote]  # with the other settings of the remote
    answers: list[set[str]] = []
    for place in places:
        lines: list[bytes] = []
        done = git.stream(lines.append, "ls-remote", "--", place, limit=limit)
        if not done.passed:
            return refusal_of(done)
        answers.append({line.split(b"\t")[0].decode() for line in b"".join(lines).splitlines()})
    return set.intersection(*answers) if answers else set()


def _refusal(found: Sequence[NewFile]) -> Refusal:
    shown = first_names([f"{one.name} (commit {one.commit[:12]})" for one in found])
    error = f"nothing was pushed: new files in the commits look like secrets: {shown}"
    names = tuple(dict.fromkeys(one.name for one in found))
    return Refusal(error, _TAKE_OUT, secrets=names[:MOST_NAMED])


def words_about_commit(names: Sequence[str]) -> str:
    """Return words for the next prompt about secrets that rooda did not commit."""
    return _words("rooda did not commit these new files", names, "Add them to .gitignore.")


def words_about_repositories(names: Sequence[str]) -> str:
    """Return words for the next prompt about new repositories that rooda did not commit."""
    return (
        "rooda did not commit these folders, because each is a git repository of its own:\n\n"
        f"{indented(first_names(names))}\n\n"
        f"{ADVICE_ON_REPOSITORIES}."
    )


def words_about_push(names: Sequence[str]) -> str:
    """Return words for the next prompt about secrets because of which rooda did not push."""
    what = "rooda pushes nothing, because commits that are not pushed yet add these files"
    advice = "Write these commits again without the files; to delete them later is not enough."
    return _words(what, names, f"{advice} Add them to .gitignore.")


def _words(what: str, names: Sequence[str], advice: str) -> str:
    return (
        f"{what}, and their names look like secrets:\n\n{indented(first_names(names))}\n\n"
        f"{advice} Only the user can allow them (git.allow_secrets)."
    )
