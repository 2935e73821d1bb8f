"""Lookup of known names: lazily created values, and suggestions for misspelled names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")

_LONGEST_WORD = 100  # characters; comparing longer words is slow


class LazyMapping(Mapping[str, T]):
    """Maps known names to values; `make` creates each value on first access."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `word`, or None."""
    by_folded = {name.lower().replace("-", "_"): name for name in known}
    folded = word[:_LONGEST_WORD].lower().replace("-", "_")
    if folded in by_folded:
        return by_folded[folded]
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence that suggests a known name, or "" without a good guess."""
    guess = near_miss(word, known)
    return f"Did you mean {guess!r}?" if guess else ""
