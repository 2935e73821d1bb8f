"""Which branches and tags of the user move after a program in the sandbox worked with git. Pure.

The agent works in a git folder of its own. Its branch moves in the user's repository only if the
user has not moved it meanwhile. Everything else comes along as long as nothing of the user is lost.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

HEADS, TAGS, REMOTES = "refs/heads/", "refs/tags/", "refs/remotes/"
KEPT = "rooda-kept/"  # the names of branches and tags that could not come along under their own
_MOST_OF_A_NAME = 60
# Git would read these short names as something else, or as an option.
_MISLEADING = re.compile(r"-.*|refs/.*|.*HEAD|[0-9a-f]{40}|[0-9a-f]{64}|@")
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")


class GitState(Struct, frozen=True):
    """Where a repository stands.

    `head` is the branch that is checked out (empty: HEAD is detached), `commit` the commit of HEAD
    (empty before the first one). `stash` has the commits and the messages, the newest first.
    `elsewhere` are branches that other work trees have checked out. `others` are the refs that are
    neither branches nor tags, and `symbolic` those of them that only name another one.
    """

    head: str
    commit: str
    refs: Mapping[str, str]
    stash: tuple[tuple[str, str], ...] = ()
    elsewhere: frozenset[str] = frozenset()
    others: Mapping[str, str] = {}
    symbolic: Mapping[str, str] = {}


class Way(StrEnum):
    """Which commits a ref may move to."""

    RELATED = "related"  # those with a common ancestor: an agent amends and rebases
    FORWARD = "forward"  # those that contain the old commit


class Move(Struct, frozen=True):
    """A branch or tag that gets another commit. An empty `old` means that it must not exist."""

    ref: str
    old: str
    new: str
    way: Way = Way.RELATED


class Moves(Struct, frozen=True):
    """What changes in the user's repository: `checked_out` moves together with the index.

    `head` is what HEAD names from now on; None if it stays. A `detached` commit becomes HEAD
    itself. `kept` are refs that get another name, because the user has changed theirs.
    """

    checked_out: Move | None = None
    head: str | None = None
    detached: str = ""
    others: tuple[Move, ...] = ()
    kept: tuple[Move, ...] = ()
    stash: tuple[tuple[str, str], ...] = ()
    takes_index: bool = False


def moves(base: GitState, agent: GitState, user: GitState) -> Moves:
    """Return what to change in the user's repository.

    `base` is where both stood when the program started.
    """
    current = agent.head
    rest = moves_beside_head(base, agent, user)
    if (user.head, user.commit) != (base.head, base.commit):
        return _beside(rest, base, agent)
    if not current:
        commit = agent.commit if agent.commit != user.commit or user.head else ""
        return _with_head(rest, None, None, commit)
    old, new = user.refs.get(current, ""), agent.commit
    head = current if current != user.head else None
    if new == old:
        return _with_head(rest, None, head)
    move = Move(current, old, new)
    if not new or not _may_move(move, base, user):
        return _beside(rest, base, agent)
    return _with_head(rest, move, head)


def moves_beside_head(base: GitState, agent: GitState, user: GitState) -> Moves:
    """Return the same while a rebase or a merge is unfinished: HEAD and its branch stay."""
    others, kept = _others(base, agent, user, agent.head)
    stash = tuple(one for one in agent.stash if one not in {*base.stash, *user.stash})
    return Moves(others=others, kept=kept, stash=stash)


def moves_that_keep(base: GitState, agent: GitState, user: GitState) -> Moves:
    """Return the same at the end of a run: the commit of HEAD gets a name of its own."""
    return _beside(moves_beside_head(base, agent, user), base, agent)


def _with_head(rest: Moves, move: Move | None, head: str | None, detached: str = "") -> Moves:
    return Moves(move, head, detached, rest.others, rest.kept, rest.stash, takes_index=True)


def _beside(rest: Moves, base: GitState, agent: GitState) -> Moves:
    """Keep the agent's branch under another name: the user works on this one, too."""
    if agent.commit in ("", base.commit):
        return rest
    kept = (*rest.kept, kept_as(agent.head or "HEAD", agent.commit))
    return Moves(others=rest.others, kept=kept, stash=rest.stash)


def _others(
    base: GitState, agent: GitState, user: GitState, current: str
) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
    """Return the moves of refs that are not checked out, and those that need another name."""
    others, kept = [], []
    for ref, new in agent.refs.items():
        old = user.refs.get(ref, "")
        if ref == current or new in (old, base.refs.get(ref)):
            continue
        move = Move(ref, old, new, Way.FORWARD)
        is_tag = ref.startswith(TAGS)
        if _may_move(move, base, user) and not (is_tag and old):
            others.append(move)
        else:
            kept.append(kept_as(ref, new))
    return tuple(others), tuple(kept)


def _may_move(move: Move, base: GitState, user: GitState) -> bool:
    if move.ref in user.elsewhere or move.old != base.refs.get(move.ref, ""):
        return False
    return bool(move.old) or not _is_misleading(move.ref, user)


def _is_misleading(ref: str, user: GitState) -> bool:
    """Return whether git would take the short name of a new ref for another thing of the user."""
    name = short(ref)
    names = {short(one) for one in user.refs} | {*_other_names(user.others)}
    return name in names or _MISLEADING.fullmatch(name) is not None


def short(ref: str) -> str:
    """Return the name of a branch or tag as people write it."""
    return ref.removeprefix(HEADS).removeprefix(TAGS)


def kept_as(ref: str, commit: str) -> Move:
    """Return the move that keeps a commit under a name of its own."""
    where = TAGS if ref.startswith(TAGS) else HEADS
    name = _UNUSUAL.sub("-", short(ref))[:_MOST_OF_A_NAME].strip("-.")
    return Move(f"{where}{KEPT}{name or 'ref'}-{commit[:10]}", "", commit)


def _other_names(refs: Iterable[str]) -> Iterator[str]:
    """Yield the names that stand for the branches of remotes: `origin/main`, `origin`."""
    for ref in refs:
        if ref.startswith(REMOTES):
            name = ref.removeprefix(REMOTES)
            yield name
            yield name.partition("/")[0]
