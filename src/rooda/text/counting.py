"""Numbers with their nouns."""


def count(number: int, noun: str) -> str:
    """`1 iteration`, `3 iterations`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
