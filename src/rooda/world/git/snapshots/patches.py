"""The differences of many pairs of trees as text, with one git, and within limits."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from rooda.world.git.git import Git, GitError

_DIFF: Final = (
    *("diff-tree", "--stdin", "-r", "-p", "--no-renames", "--no-color"),
    *("--no-ext-diff", "--no-textconv"),
)
_LONGEST_LINE = 300  # bytes


class Patch(Struct, frozen=True):
    """The beginning of a difference: its lines, and how many there are in all."""

    lines: tuple[str, ...]
    total: int

    @property
    def is_cut(self) -> bool:
        """Whether lines are missing."""
        return self.total > len(self.lines)


def patches(git: Git, pairs: Mapping[int, tuple[str, str]], most: int) -> dict[int, Patch]:
    """Return the difference of each pair of trees, `most` lines of each.

    A pair of which git does not have a tree has none, and neither have the pairs after it.
    """
    if not pairs:
        return {}
    reader = _Reader(list(pairs.items()), most)
    given = "".join(f"{before} {after}\n" for before, after in pairs.values()).encode()
    try:
        git.pieces(reader.feed, *_DIFF, given=given)
    except GitError:
        return reader.finish(is_whole=False)
    return reader.finish(is_whole=True)


class _Reader:
    """Reads what git prints: a line with the names of both trees, then their difference."""

    def __init__(self, pairs: Sequence[tuple[int, tuple[str, str]]], most: int) -> None:
        self._waiting = [(number, " ".join(pair).encode()) for number, pair in pairs]
        self._waiting.reverse()
        self._most = most
        self._found: dict[int, Patch] = {}
        self._number: int | None = None
        self._lines: list[str] = []
        self._total = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        # Of a line without an end only the beginning is of interest.
        self._rest = rest[: 2 * _LONGEST_LINE]

    def _take(self, line: bytes) -> None:
        # Each line of a difference begins with a sign or a word: no content looks like this.
        if self._waiting and line == self._waiting[-1][1]:
            self._close()
            self._number = self._waiting.pop()[0]
            return
        self._total += 1
        if len(self._lines) < self._most:
            self._lines.append(_shown(line))

    def _close(self) -> None:
        if self._number is not None:
            self._found[self._number] = Patch(tuple(self._lines), self._total)
        self._lines, self._total = [], 0

    def finish(self, *, is_whole: bool) -> dict[int, Patch]:
        """Return the differences; if git has failed, the last one is not whole."""
        if is_whole:
            self._close()
        return self._found


def _shown(line: bytes) -> str:
    text = line[:_LONGEST_LINE].decode("utf-8", "replace")
    return text if len(line) <= _LONGEST_LINE else f"{text} [...]"
