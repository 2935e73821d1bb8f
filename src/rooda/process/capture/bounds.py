"""How much of a transcript stays on disk: its head and its tail. Pure."""

from dataclasses import dataclass

BLOCK = 4096  # only whole blocks of a file can be given back


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a stream on disk: all but the bytes from `head` up to `tail`."""

    size: int
    head: int
    tail: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.head >= self.tail

    @property
    def bytes(self) -> int:
        """How much is there."""
        return self.size if self.is_whole else self.size - (self.tail - self.head)


def shares(limit: int, first: int, second: int) -> tuple[int, int]:
    """How much of two streams of these sizes may stay, so that both fit within the limit.

    The smaller one has a right to half; what it does not need is the other's.
    """
    if first + second <= limit:
        return first, second
    half = limit // 2  # an odd byte is nobody's, so that no share grows when the streams change
    if first <= second:
        mine = min(first, half)
        return mine, 2 * half - mine
    mine = min(second, half)
    return 2 * half - mine, mine


def hole(size: int, share: int) -> tuple[int, int]:
    """The middle that has to go, in whole blocks: half of the share before it, half behind."""
    if size <= share:
        return 0, 0
    start = share // 2 // BLOCK * BLOCK
    end = -(-(size - (share - start)) // BLOCK) * BLOCK
    return (start, end) if start < end <= size else (0, 0)
