"""Guess what was meant by a word that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` most likely stands for."""
    by_folded = {name.lower().replace("-", "_"): name for name in known}
    folded = word[:100].lower().replace("-", "_")
    if folded in by_folded:
        return by_folded[folded]
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence for the end of an error message, or nothing."""
    guess = near_miss(word, known)
    return f"Did you mean {guess!r}?" if guess else ""
