"""Brings what a program in the sandbox did with git into the user's repository.

git inside reads the agent's folder, and packs the new objects. git outside never opens that folder:
it checks the objects as those of a stranger, and moves refs only by compare-and-swap.
"""

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.world.git.git import INHERITED, Git, GitError
from rooda.world.git.snapshots.repository import Repository
from rooda.world.process.exits import Exit, Interrupted, NotStarted, TimedOut, describe, succeeded
from rooda.world.sandbox.git_moves import HEADS, KEPT, TAGS, GitState, Move, Moves, Way, kept_as
from rooda.world.tools import Tools

MOST_BYTES = 2 * 1024**3  # of new objects, packed, after one program
_MOST_WORDS = 128 * 1024**2  # bytes of names: an index with more than a million files
_MOST_REFS = 1000  # branches and tags that one program makes or moves
_FEW_OBJECTS = 100  # git itself keeps so few of a fetch as loose files
_PATIENCE = 20  # tries while another program has locked the index for a moment
_PAUSE = 0.1
DAMAGED = "the agent has deleted or damaged its git folder"
_TIMEOUT = "timeout"  # the clock of a command that takes too long
_NOTE = "rooda: work of the agent"  # in the reflog
_ID = "(?:[0-9a-f]{40}|[0-9a-f]{64})"
_ENTRY = re.compile(rf"(?P<about>[0-7]{{6}} {_ID} [0-3])\t(?P<path>.+)".encode(), re.DOTALL)
_REF = re.compile(f"(?P<commit>{_ID}) (?P<ref>refs/(heads/.+|tags/.+|stash))")
_HEAD = re.compile(r"(refs/heads/[^\x00-\x20\x7f~^:?*\[\\]+)?")
_COMMIT = re.compile(f"({_ID})?")
_STASH = re.compile(f"(?P<commit>{_ID}) ?(?P<words>.*)")
_GITLINK = b"160000"
_OF_ROODA, _STASHED = "refs/rooda/", "refs/stash"
_FORM = "%(objectname) %(if)%(worktreepath)%(then)+%(else)-%(end) %(refname) %(symref)"
# HEAD, its commit, the refs, the stash, each with a zero byte at the end; then the index.
_REPORT = r"""
say() { printf '%s\0' "$1"; }
form='%(objectname) %(refname)'
refs=$("$@" for-each-ref --format="$form" refs/heads refs/tags refs/stash) || exit
say "$("$@" symbolic-ref -q HEAD)"
say "$("$@" rev-parse -q --verify 'HEAD^{commit}')"
say "$refs"
say "$("$@" log -g --format='%H %gs' refs/stash -- 2>&-)"
exec "$@" ls-files --stage -z
"""

Entries = Mapping[bytes, Sequence[bytes]]  # path -> modes, objects and stages


class ImportRefusedError(Exception):
    """Why rooda can't take over what a program did with git."""


class ImportStoppedError(Exception):
    """A signal or a time limit came first: rooda does it later."""


class Inside(Protocol):
    """Runs a program in the sandbox."""

    def __call__(
        self, argv: Sequence[str], take: Callable[[bytes], object], given: bytes = b""
    ) -> tuple[Exit, bytes]:
        """Return how it ended, and its errors; `take` gets what it prints."""


class Reported(Struct, frozen=True):
    """What git inside says about the agent's folder."""

    state: GitState
    index: bytes


class GitImport:
    """Reads the agent's git folder, and changes the user's repository."""

    def __init__(self, repository: Repository, tools: Tools, inside: Inside) -> None:
        place = (f"--git-dir={repository.git_dir}", f"--work-tree={repository.top}")
        self._argv = (tools.program("git"), *place)
        self._inside = inside
        self._repository = repository
        self._tools = tools
        self._git = self._git_with(repository.index)

    def _git_with(self, index: Path) -> Git:
        """Return git outside, with an index of the user."""
        place = {"GIT_DIR": self._repository.git_dir, "GIT_WORK_TREE": self._repository.top}
        variables = {name: str(path) for name, path in {**place, "GIT_INDEX_FILE": index}.items()}
        settings = {"core.logAllRefUpdates": "true"}
        return Git(self._repository.top, self._tools, variables, settings)

    def report(self, index: str = "") -> Reported:
        """Ask git inside, about another `index` than its own if that is named."""
        variables = ("env", f"GIT_INDEX_FILE={index}") if index else ()
        words = ("sh", "-c", _REPORT, "sh", *variables, *self._argv)
        parts = self._printed(words).split(b"\0", 4)
        if len(parts) != 5:  # noqa: PLR2004 - the parts of the report
            raise ImportRefusedError("git can't read the agent's git folder")
        head, commit, refs, stash = (os.fsdecode(one) for one in parts[:4])
        if not (_HEAD.fullmatch(head) and _COMMIT.fullmatch(commit)):
            raise ImportRefusedError("HEAD names no branch and no commit")
        found = {match["ref"]: match["commit"] for match in _matches(_REF, refs)}
        found.pop(_STASHED, None)
        kept = tuple((one["commit"], one["words"]) for one in _matches(_STASH, stash))
        return Reported(GitState(head, commit, found, kept), parts[4])

    def _printed(self, argv: Sequence[str]) -> bytes:
        pieces: list[bytes] = []
        self._run(argv, _Bounded(pieces.append, _MOST_WORDS))
        return b"".join(pieces)

    def _run(self, argv: Sequence[str], output: "_Bounded", given: bytes = b"") -> None:
        end, errors = self._inside(argv, output.take, given)
        if output.is_full:
            raise ImportRefusedError("the agent's commits are too large")
        is_over = isinstance(end, TimedOut) and end.clock != _TIMEOUT  # the run is
        if is_over or isinstance(end, Interrupted | NotStarted):
            raise ImportStoppedError(describe(end))
        if b"not a git repository" in errors:
            raise ImportRefusedError(DAMAGED)
        if not succeeded(end):
            said = one_line(errors[-500:].decode("utf-8", "replace")).strip()
            raise ImportRefusedError(f"git inside failed: {said or describe(end)}")

    def user(self) -> GitState:
        """Return where the user's repository stands, without rooda's own refs. Raises GitError."""
        lines = self._git.line("for-each-ref", f"--format={_FORM}").splitlines()
        entries = [line.split(" ") for line in lines]
        entries = [one for one in entries if not one[2].startswith(_OF_ROODA)]
        refs = {ref: commit for commit, _, ref, _ in entries if ref.startswith((HEADS, TAGS))}
        head = self._git.ask("symbolic-ref", "-q", "HEAD") or ""
        return GitState(
            head=head,
            commit=refs.get(head, "") if head else self._git.line("rev-parse", "HEAD"),
            refs=refs,
            stash=self._stash() if any(ref == _STASHED for _, _, ref, _ in entries) else (),
            elsewhere=frozenset(ref for _, mark, ref, _ in entries if mark == "+" and ref != head),
            others={ref: commit for commit, _, ref, _ in entries if ref not in refs},
            symbolic={ref: target for *_, ref, target in entries if target},
        )

    def _stash(self) -> tuple[tuple[str, str], ...]:
        text = self._git.ask("log", "-g", "--format=%H %gs", _STASHED, "--") or ""
        return tuple((one["commit"], one["words"]) for one in _matches(_STASH, text))

    def index(self, path: Path) -> bytes:
        """Return the entries of an index outside. Raises GitError."""
        if not path.exists():
            return b""
        return self._git_with(path)("ls-files", "--stage", "-z")

    def take_objects(self, agent: GitState, user: GitState, folder: Path, index: str = "") -> None:
        """Pack the agent's new objects inside, check them outside, and add them.

        The pack is a file in `folder` for a moment, where no agent can write.
        """
        known = {user.commit, *user.refs.values(), *(commit for commit, _ in user.stash)} - {""}
        tips = {agent.commit, *agent.refs.values(), *(commit for commit, _ in agent.stash)}
        tips -= {*known, ""}
        lines = (*sorted(tips), *(f"^{one}" for one in sorted(known)))
        asked = "".join(f"{line}\n" for line in lines).encode()
        variables = ("env", f"GIT_INDEX_FILE={index}") if index else ()
        options = ("--revs", "--local", "--indexed-objects", "--delta-base-offset", "-q")
        pack = ("pack-objects", *options, "--stdout")
        with tempfile.NamedTemporaryFile(dir=folder, prefix="pack-") as file:
            self._run((*variables, *self._argv, *pack), _Bounded(file.write), asked)
            file.flush()
            self._add(file.file, Path(file.name))
        if tips:
            self._check("rev-list", "--objects", "--quiet", "--stdin", given=asked)

    def _add(self, pack: IO[bytes], path: Path) -> None:
        pack.seek(8)
        count = int.from_bytes(pack.read(4))
        if count == 0:
            return
        words = ("unpack-objects", "-q") if count < _FEW_OBJECTS else ("index-pack", "--stdin")
        self._check(*words, "--strict", given=path)

    def _check(self, *words: str, given: bytes | Path) -> None:
        try:
            self._git(*words, given=given, umask=INHERITED)
        except GitError as error:
            raise ImportRefusedError(str(error)) from None

    def take_index(self, path: Path, base: bytes, agent: bytes, user: bytes) -> None:
        """Change those entries of an index outside that the agent has changed, and not the user."""
        if agent == base:
            return
        changed = _changed_names(base, agent) - _changed_names(base, user)
        if not changed:
            return
        after = _entries(agent, changed)
        self._check_blobs(after.get(one, ()) for one in changed)
        none = b"0 " + _zero(self._repository.object_format).encode() + b"\t"
        lines: list[bytes] = []
        for name in sorted(changed):
            lines.append(none + name)
            lines += [about + b"\t" + name for about in after.get(name, ())]
        self._write_index(path, b"".join(line + b"\0" for line in lines))

    def _check_blobs(self, groups: Iterable[Sequence[bytes]]) -> None:
        abouts = [one.split(b" ") for group in groups for one in group]
        wanted = {oid for mode, oid, _ in abouts if mode != _GITLINK}
        asked = b"".join(one + b"\n" for one in sorted(wanted))
        answers = self._git("cat-file", "--batch-check=%(objecttype)", given=asked)
        if any(one != b"blob" for one in answers.splitlines()):
            raise ImportRefusedError("the agent's index names files that git does not have")

    def _write_index(self, path: Path, lines: bytes) -> None:
        git = self._git_with(path)
        for tries in range(_PATIENCE + 1):
            try:
                git("update-index", "-z", "--index-info", given=lines, umask=INHERITED)
            except GitError as error:
                if ".lock" not in str(error) or tries == _PATIENCE:
                    raise ImportRefusedError(str(error)) from None
                time.sleep(_PAUSE)
            else:
                return

    def apply(self, found: Moves) -> list[Move]:
        """Move HEAD and refs; return those that are kept under another name. Raises GitError."""
        if len(found.others) + len(found.kept) + len(found.stash) > _MOST_REFS:
            raise ImportRefusedError(f"the agent made more than {_MOST_REFS} branches and tags")
        kept = [*found.kept]
        is_moved = found.checked_out is None or self._swap(found.checked_out)
        if found.checked_out is not None and not is_moved:
            kept.append(kept_as(found.checked_out.ref, found.checked_out.new))
        if found.head is not None and is_moved:
            self._change("symbolic-ref", "-m", _NOTE, "HEAD", found.head)
        elif found.detached:
            self._change("update-ref", "-m", _NOTE, "--no-deref", "HEAD", found.detached)
        moved = {one.ref for one in found.others if self.allows(one) and self._swap(one)}
        kept += [kept_as(one.ref, one.new) for one in found.others if one.ref not in moved]
        kept = [one for one in kept if self._is_unknown(one.new) and self._swap(one)]
        for commit, words in reversed(found.stash):
            self._change("stash", "store", "-m", words, commit)
        return kept

    def _is_unknown(self, commit: str) -> bool:
        """Return whether no branch or tag of the user contains a commit."""
        known = ("--not", "HEAD", "--branches", "--tags", "--remotes")
        return bool(self._git.ask("rev-list", "-1", "--ignore-missing", commit, *known))

    def allows(self, move: Move) -> bool:
        """Return whether the histories allow a move; a new ref can begin with any commit."""
        if not move.old:
            return True
        only = ("--is-ancestor",) if move.way is Way.FORWARD else ()
        with contextlib.suppress(GitError):
            return self._git.answer("merge-base", *only, move.old, move.new)[0] == 0
        return False

    def _swap(self, move: Move) -> bool:
        """Return whether a ref could be moved, or names the commit already."""
        old = move.old or _zero(self._repository.object_format)
        try:
            self._change("update-ref", "-m", _NOTE, move.ref, move.new, old)
        except GitError:
            return self._git.ask("rev-parse", "-q", "--verify", move.ref) == move.new
        return True

    def _change(self, *words: str) -> None:
        self._git(*words, umask=INHERITED)


class _Bounded:
    """Takes output up to a limit."""

    def __init__(self, take: Callable[[bytes], object], most: int = MOST_BYTES) -> None:
        self._take = take
        self._left = most

    @property
    def is_full(self) -> bool:
        """Whether there was more than the limit."""
        return self._left < 0

    def take(self, data: bytes) -> None:
        """Take a piece; drop it beyond the limit."""
        self._left -= len(data)
        if not self.is_full:
            self._take(data)


def files_of_refs(state: GitState) -> Iterator[tuple[str, str]]:
    """Yield the files of a git folder that has these refs, and their texts."""
    commits = {**state.refs, **state.others}
    names = sorted(commits.keys() - state.symbolic.keys())
    yield "packed-refs", "".join(f"{commits[one]} {one}\n" for one in names)
    for name, target in state.symbolic.items():
        yield name, f"ref: {target}\n"


def _zero(object_format: str) -> str:
    return "0" * (64 if object_format == "sha256" else 40)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for line in text.split("\n"):
        if match := pattern.fullmatch(line):
            yield match


def _changed_names(one: bytes, other: bytes) -> set[bytes]:
    """Return the names whose entries differ between two lists, of which each may be very long."""
    if one == other:
        return set()
    differing = set(_lines(one)).symmetric_difference(_lines(other))
    return {match["path"] for match in map(_ENTRY.fullmatch, differing) if match}


def _entries(listing: bytes, names: set[bytes]) -> Entries:
    found: dict[bytes, list[bytes]] = {}
    for line in _lines(listing):
        match = _ENTRY.fullmatch(line)
        if match and match["path"] in names:
            found.setdefault(match["path"], []).append(match["about"])
    return found


def _lines(listing: bytes) -> Iterator[bytes]:
    """Yield the lines, which end in zero bytes, without a copy of all of them."""
    start = 0
    while (end := listing.find(b"\0", start)) >= 0:
        yield listing[start:end]
        start = end + 1


def kept_names(kept: Iterable[Move]) -> tuple[str, ...]:
    """Return the names under which commits are kept, as people write them."""
    return tuple(sorted({one.ref[one.ref.index(KEPT) :] for one in kept}))
