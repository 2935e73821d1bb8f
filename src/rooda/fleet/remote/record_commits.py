"""The record of a run: a chain of commits, each with the facts of its moment. Makes and reads them.

The first line of a message is for people (`done 3`); the last line has the facts as JSON. The first
parent is the earlier record commit. Further parents are the tip of the branch and the commit of the
uncommitted work, so that git keeps both as long as the record is there.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, MsgspecError, Struct, json
from msgspec.structs import replace

from rooda.fleet.run_model import RunProgress, RunState
from rooda.world.git.git import Git, GitError

TASK, RESULT, RECORD = "task.json", "result.json", "record.json"
FILES = (TASK, RESULT, RECORD)
_NEW = "refs/rooda/new/"  # where the commits are that were just made
_LATEST = 100  # commits of a branch among which half of a push is looked for
MOST = 2_000_000_000  # a database refuses larger numbers
_IMPORT = ("fast-import", "--quiet", "--force", "--done", "--date-format=now")


class RecordKind(StrEnum):
    """What a record commit tells."""

    ADDED = "added"
    CLAIM = "claim"
    DONE = "done"
    WAITING = "waiting"  # for the end of a limit: the iteration counts for nothing
    ENDED = "ended"


# Others can write records too: no word of one becomes an option of git, or a line of its input.
Commit = Annotated[str, Meta(pattern=r"\A([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Number = Annotated[int, Meta(ge=0, le=MOST)]


class Mirror(Struct, frozen=True, omit_defaults=True):
    """What the branch in the user's repository is to get, after a fence decided."""

    to: Commit
    onto: Commit | None = None  # where the branch was then; None: there was none


class Facts(Struct, frozen=True, omit_defaults=True):
    """What the message of a record commit tells a program."""

    kind: RecordKind
    iteration: Number = 0  # the last one that is done
    tip: Commit | None = None  # of the branch, as published last
    wip: Commit | None = None  # a commit of the uncommitted work on top of it
    claims: Number = 0  # in a row, without any other commit between them
    owner: str = ""  # the worker that claimed last
    state: RunState | None = None  # how it ended
    mirror: Mirror | None = None
    maker: str = ""  # differs between two processes that write the same in the same second


class NewCommit(Struct, frozen=True):
    """A record commit to be made."""

    run: str
    subject: str
    facts: Facts
    files: Mapping[str, bytes]  # that differ from those of the earlier commit
    earlier: str | None = None
    parents: tuple[str, ...] = ()


class RecordCommits:
    """Makes record commits in one repository. The same commit is never made twice.

    A push may reach the server although git says that it failed. Then the second try has to push
    the same commit, to find that it is there already.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._maker = secrets.token_hex(8)
        self._made: dict[bytes, str] = {}

    def make(self, commits: Sequence[NewCommit]) -> list[str]:
        """Return the names of the commits, in their order. Raises GitError."""
        named = [replace(one, facts=replace(one.facts, maker=self._maker)) for one in commits]
        keys = [msgspec.json.encode(one) for one in named]
        missing = {key: one for key, one in zip(keys, named, strict=True) if key not in self._made}
        if missing:
            stream = b"".join(_stream(missing.values()))
            made = self._git(*_IMPORT, given=stream).decode().split()
            self._made.update(zip(missing, made, strict=True))
        return [self._made[key] for key in keys]


def _stream(commits: Iterable[NewCommit]) -> Iterator[bytes]:
    """Yield the input of `git fast-import`, which makes all commits at once."""
    for number, one in enumerate(commits, start=1):
        message = f"{one.subject}\n\n".encode() + msgspec.json.encode(one.facts)
        yield f"commit {_NEW}{one.run}\nmark :{number}\n".encode()
        yield b"committer rooda <rooda@localhost> now\n" + _data(message)
        if one.earlier is not None:
            yield f"from {one.earlier}\n".encode()
        yield from (f"merge {parent}\n".encode() for parent in one.parents)
        for name, content in one.files.items():
            yield f"M 100644 inline {name}\n".encode() + _data(content)
        yield f"\nget-mark :{number}\n".encode()
    yield b"done\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def read_commit(git: Git, sha: str) -> tuple[Facts, dict[str, bytes]]:
    """Return the facts of a record commit and its files. Raises GitError."""
    wanted = [sha, *(f"{sha}:{name}" for name in FILES)]
    answer = git("cat-file", "--batch", given="\n".join([*wanted, ""]).encode())
    try:
        commit, *files = _objects(answer, len(wanted))
        last_line = (commit or b"").rstrip(b"\n").rpartition(b"\n")[2]
        facts = msgspec.json.decode(last_line, type=Facts)
    except (msgspec.MsgspecError, ValueError) as error:
        raise GitError(f"{sha} is not a record commit of rooda: {error}") from None
    found = zip(FILES, files, strict=True)
    return facts, {name: content for name, content in found if content is not None}


def has_unknown_iteration(git: Git, run: str, branch: str, facts: Facts) -> bool:
    """Return whether the branch has an iteration that the record does not have. Raises GitError.

    A push moves both, but a git that is killed may move the branch alone. That iteration is not
    done: its record is lost, and the next worker has to do it.
    """
    if branch == facts.tip:
        return False
    known = () if facts.tip is None else ("--not", facts.tip)
    bodies = git.line("log", "--format=%B", f"--max-count={_LATEST}", branch, *known)
    numbers = re.findall(rf"^Rooda-Run: {re.escape(run)}/(\d+)$", bodies, re.MULTILINE)
    return any(int(number) > facts.iteration for number in numbers)


def _objects(answer: bytes, count: int) -> Iterator[bytes | None]:
    """Yield the objects that `git cat-file --batch` prints; None for a missing one."""
    at = 0
    for _ in range(count):
        end = answer.index(b"\n", at)
        words = os.fsdecode(answer[at:end]).split()
        at = end + 1
        if words[-1] == "missing":
            yield None
            continue
        size = int(words[-1])
        yield answer[at : at + size]
        at += size + 1


# The record of a run as a worker read it, and a ref that a push moves.


class Record(Struct, frozen=True):
    """The record of a run as it was read, and where its branch really is."""

    run: str
    ref: str  # of the record
    sha: str  # of the record
    kind: RecordKind
    branch: str | None  # where the branch is; None if there is none
    is_torn: bool = False  # the branch has half of a push: the record does not know of its end
    tip: str | None = None  # of the branch, as published last
    wip: str | None = None  # a commit of the uncommitted work on top of `tip`
    iteration: int = 0  # the last one that is done
    claims_since: int = 0  # claims since the last commit of another kind
    owner: str = ""  # the worker that claimed last
    state: RunState | None = None  # how it ended
    mirror: Mirror | None = None  # what the user's branch has not got yet
    task: bytes = b""
    result: bytes = b""
    record: bytes = b""

    @property
    def start(self) -> str | None:
        """The commit from which the next iteration starts; None for the base of the run.

        What a person did with the branch counts; a branch that is gone comes back.
        """
        return self.tip if self.is_torn else self.branch or self.tip

    def telling(self, facts: Facts, files: Mapping[str, bytes]) -> "Record":
        """Return the same record with what its commit tells."""
        return replace(
            self,
            kind=facts.kind,
            tip=facts.tip,
            wip=facts.wip,
            iteration=facts.iteration,
            claims_since=facts.claims,
            owner=facts.owner,
            state=facts.state,
            mirror=facts.mirror,
            task=files.get(TASK, b""),
            result=files.get(RESULT, b""),
            record=files.get(RECORD, b""),
        )


class Move(Struct, frozen=True):
    """A ref on the remote that a push moves, makes or deletes."""

    ref: str
    old: str | None  # None: there is no such ref
    new: str | None  # None: delete it

    @property
    def words(self) -> tuple[str, str]:
        """The lease and the refspec."""
        return f"--force-with-lease={self.ref}:{self.old or ''}", f"{self.new or ''}:{self.ref}"


# What the record of a run tells of its progress: `result.json`.


class PublishedResult(RunProgress, frozen=True):
    """What the record tells of the run so far."""

    turn: Number = 0
    life: str = ""  # of the run, when this was published
    state: RunState = RunState.WORKING
    reason: str = ""


def read_published(record: Record) -> PublishedResult:
    """Return what the record tells of the run; nothing if that can't be read."""
    try:
        return json.decode(record.result, type=PublishedResult)
    except MsgspecError:
        return PublishedResult()
