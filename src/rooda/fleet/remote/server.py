"""A repository that a fleet shares: reads its refs, fetches from it, and pushes to it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rooda.fleet.addresses import absolute_address, without_credentials
from rooda.fleet.remote.run_record import Move
from rooda.fleet.remote.transport import NAME, remove_stale_lock, transport
from rooda.world.git.git import INHERITED, GitError
from rooda.world.tools import Tools

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
