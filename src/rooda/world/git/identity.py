"""The name and the email that git writes into the user's commits."""

from msgspec import Struct

from rooda.world.git.git import Git, unattended
from rooda.world.process.exits import Exited
from rooda.world.tools import Command, Finished, Tools

_TIMEOUT = 20.0
_ROLES = ("AUTHOR", "COMMITTER")
_SAID = 1000  # characters of git's message
_PARTS = (("name", "user.name"), ("email", "user.email"))


class UnknownIdentity(Struct, frozen=True):
    """Why git can't commit for the user, and what the user can do."""

    reason: str
    fix: str


def unknown_identity(git: Git, tools: Tools) -> UnknownIdentity | None:
    """Return why git would refuse a commit for want of a name or an email; None if it would not.

    git itself decides: it knows files, variables, and what it may guess. Raises GitError.
    """
    answers = (_ask(role, git, tools) for role in _ROLES)
    refusal = next((one for one in answers if _is_refusal(one)), None)
    if refusal is None:
        return None
    missing = [
        (word, key)
        for word, key in _PARTS
        if not git.ask("config", "--get", key)
        and not all(tools.environ.get(f"GIT_{role}_{word.upper()}") for role in _ROLES)
    ]
    if missing:
        words = " and no ".join(word for word, _ in missing)
        fix = "; ".join(f"git config --global {key} ..." for _, key in missing)
        return UnknownIdentity(f"git knows no {words} for commits", fix)
    said = refusal.last_words(_SAID).strip().splitlines()[-1:]
    fix = "Check user.name, user.email and the GIT_AUTHOR_... and GIT_COMMITTER_... variables"
    return UnknownIdentity(": ".join(["git accepts no identity for commits", *said]), fix)


def _ask(role: str, git: Git, tools: Tools) -> Finished:
    argv = (tools.program("git"), "var", f"GIT_{role}_IDENT")
    return tools.run(Command("", argv, git.folder, unattended(tools), _TIMEOUT, outside=True))


def _is_refusal(answer: Finished) -> bool:
    return isinstance(answer.exit, Exited) and not answer.passed
