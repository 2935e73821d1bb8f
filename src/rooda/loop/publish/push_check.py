"""Checks before a push that its commits add no secrets; words for the agent about secrets."""

from collections.abc import Iterable, Sequence

from rooda.base.paths import first_names
from rooda.loop.events.work import ADVICE_ON_REPOSITORIES
from rooda.loop.publish.refusals import Refusal, refusal_of
from rooda.loop.publish.user_git import UserGit
from rooda.loop.stages.verify import indented
from rooda.world.git.git import GitError, GitStoppedError
from rooda.world.git.new_files import NewFile
from rooda.world.git.new_secrets import NewSecrets
from rooda.world.git.pin import Pin

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
