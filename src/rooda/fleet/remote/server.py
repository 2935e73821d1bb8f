"""A repository that a fleet shares: reads its refs, fetches from it, and pushes to it."""

import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rooda.fleet.place import absolute_address, local_folder, without_credentials
from rooda.fleet.remote.record_commits import Move
from rooda.world.git.git import INHERITED, Git, GitError
from rooda.world.tools import Tools

# Lets one repository find the objects of another one, without a copy.


_ALTERNATES = "objects/info/alternates"


def borrow_objects(git_dir: Path, lender: Path) -> None:
    """Let a repository find the objects of another one, and of no third one."""
    wanted = os.fsencode(lender / "objects") + b"\n"
    file = git_dir / _ALTERNATES
    if file.exists() and file.read_bytes() == wanted:
        return
    new = file.with_suffix(f".{os.getpid()}")
    new.parent.mkdir(exist_ok=True)
    new.write_bytes(wanted)
    new.rename(file)


# Git commands that reach the remote of a fleet, within a time limit, its address in no argument.
#
# Other users of the machine can read the arguments of a process, but not its environment.


NAME = "rooda-fleet"  # the remote in the environment of git
_TO_ASK, _TO_MOVE = 60.0, 600.0  # seconds for one command
_SETTINGS = {
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1000",  # bytes a second
    "http.lowSpeedTime": "60",  # seconds: a connection that is dead for so long
    "protocol.version": "2",
    "push.pushOption": "",
}
# A push to a folder of this machine adds objects and refs there, and nothing else.
_QUIET_RECEIVER = {
    "receive.autogc": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
}
_LOCKED = re.compile(r"Unable to create '([^']+\.lock)': File exists")
_STALE = 60.0  # seconds
_NO_HOOKS = {"core.hooksPath": "/dev/null"}


def transport(
    url: str, git_dir: Path, tools: Tools, receive_pack: str | None = None
) -> tuple[Git, Git]:
    """Return a git that asks the remote `NAME`, and one with more time that moves objects."""
    receiver = receive_pack or quiet_receiver(url, tools)
    known = {f"remote.{NAME}.url": url}
    if receiver is not None:
        known[f"remote.{NAME}.receivepack"] = receiver
    more = {"GIT_DIR": str(git_dir), **in_environment(tools.environ, known)}
    asker = Git(git_dir, tools, more, _SETTINGS, online=_TO_ASK)
    return asker, Git(git_dir, tools, more, _SETTINGS, online=_TO_MOVE)


def quiet_receiver(url: str, tools: Tools) -> str | None:
    """Return the command that takes a push in a folder of this machine; None for other remotes.

    The hooks of a bare repository are the rules of a server. Those of a work tree are for its user.
    """
    folder = local_folder(url)
    if folder is None:
        return None
    settings = _QUIET_RECEIVER | ({} if _is_bare(folder, tools) else _NO_HOOKS)
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return shlex.join([tools.program("git"), *words, "receive-pack"])


def _is_bare(folder: Path, tools: Tools) -> bool:
    """Return whether a repository has no work tree. `folder` may be its git folder."""
    if folder.name == ".git" or (folder / ".git").exists():
        return False
    try:
        return Git(folder, tools).ask("config", "--bool", "core.bare") != "false"
    except GitError:
        return True


def remove_stale_lock(url: str, refs: Iterable[str], said: str) -> None:
    """Remove the lock that a killed git left on one of these refs of rooda, on this machine.

    `said` is what git said about it. Git holds such a lock for some milliseconds.
    """
    found = _LOCKED.search(said)
    if found is None or local_folder(url) is None:
        return
    lock = Path(found[1])
    if not found[1].endswith(tuple(f"/{ref}.lock" for ref in refs)):
        return
    with contextlib.suppress(OSError):
        if time.time() - lock.lstat().st_mtime > _STALE:
            lock.unlink()


def in_environment(environ: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return variables that give settings to git, after those that are in the environment."""
    first = environ.get("GIT_CONFIG_COUNT", "")
    count = int(first) if first.isdecimal() else 0
    found: dict[str, str] = {}
    for number, (key, value) in enumerate(settings.items(), start=count):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**found, "GIT_CONFIG_COUNT": str(count + len(settings))}


_CHECKED_OUT = re.compile(r"refusing to (?:update checked out|delete the current) branch: (\S+)")
_FETCH = (
    *("fetch", "--quiet", "--force", "--no-tags", "--no-prune", "--no-write-fetch-head"),
    *("--no-recurse-submodules", "--no-auto-maintenance"),
)
_PUSH = (
    *("push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags"),
    "--no-recurse-submodules",
)


class Unreachable(Exception):  # noqa: N818 - where the server is
    """Git could not do it: the remote is away, or refuses. The caller tries again later."""


class Server:
    """A repository at an address, as seen from the git folder `git_dir`."""

    def __init__(
        self, url: str, git_dir: Path, tools: Tools, receive_pack: str | None = None
    ) -> None:
        self.url = absolute_address(url)
        self._asker, self._mover = transport(self.url, git_dir, tools, receive_pack)

    @property
    def shown(self) -> str:
        """The address for messages."""
        return without_credentials(self.url)

    def look(self, *patterns: str) -> dict[str, str]:
        """Return the refs that are there now. Raises Unreachable."""
        try:
            lines = self._asker.line("ls-remote", "--quiet", "--refs", NAME, *patterns).split("\n")
        except GitError as error:
            raise self._unreachable(error) from None
        pairs = (line.partition("\t") for line in lines if line)
        return {ref: sha for sha, _, ref in pairs}

    @property
    def sources(self) -> tuple["Server", ...]:
        """The repositories that may have a commit."""
        return (self,)

    def fetch_refs(self, wanted: Mapping[str, str]) -> None:
        """Fetch refs, each to its place here. Raises Unreachable."""
        self.fetch(*(f"+{ref}:{here}" for ref, here in wanted.items()))

    def fetch(self, *refspecs: str, depth: int | None = None) -> None:
        """Fetch refs or commits. Raises Unreachable."""
        options = [] if depth is None else [f"--depth={depth}"]
        try:
            self._mover(*_FETCH, *options, NAME, *refspecs)
        except GitError as error:
            raise self._unreachable(error) from None

    def push(self, moves: Sequence[Move], *, atomic: bool = True) -> Unreachable | None:
        """Push; return why git says that it failed, which need not be true."""
        leases, refspecs = zip(*(move.words for move in moves), strict=True)
        words = (*_PUSH, *(["--atomic"] if atomic else []), *leases, NAME, *refspecs)
        try:
            self._mover(*words, umask=INHERITED)
        except GitError as error:
            remove_stale_lock(self.url, (move.ref for move in moves), str(error))
            return self._unreachable(error)
        return None

    def _unreachable(self, error: Exception) -> Unreachable:
        said = without_credentials(str(error))
        if (used := _CHECKED_OUT.search(said)) is None:
            return Unreachable(said)
        return Unreachable(
            f"{used[1]} is checked out in {self.shown}, and git does not change it under your "
            "hands: switch to another branch there"
        )
