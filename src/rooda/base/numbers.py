"""Counts with their nouns, money, and sizes in bytes. A kilobyte is 1024 bytes."""

import re

SIZE_PATTERN = r"^ *[0-9,]+(?:\.[0-9]+)? *(?:[bB]|[bB]ytes|[kKmMgG](?:[iI]?[bB])?)? *$"

_UNITS = {"": 1, "bytes": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2}
_UNITS |= {"g": 1024**3, "gb": 1024**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_SIZE = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*([a-z]*)")
_FOUR_DIGITS = 1000
_CENT = 0.01


def count(number: int, noun: str) -> str:
    """Return `1 iteration`, `3 iterations`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def money(dollars: float) -> str:
    """Return an amount of dollars in cents; less than a cent has four decimals."""
    return f"${dollars:.4f}" if 0 < dollars < _CENT else f"${dollars:,.2f}"


def usage_words(tokens: int | None, cost: float | None) -> str:
    """Return `45,070 tokens, $0.21`, without unknown numbers."""
    words = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*words, money(cost)] if cost else words)


def format_size(size: int) -> str:
    """Return `10MB` if that is exact, else the number of bytes: `1,500 bytes`."""
    for unit, factor in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size:,} bytes"


def approximate_size(size: float) -> str:
    """Return the size with about three digits, for a status line: `812 B`, `34.1 kB`, `1.2 GB`."""
    for unit in ("B", "kB", "MB"):
        if size < _FOUR_DIGITS:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def parse_size(text: str) -> int:
    """Return the bytes in `10485760`, `512KB`, `10MB` or `1.5 GiB`. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"not a size: {text!r}")
    number, unit = match[1].replace(",", ""), _UNITS[match[2]]
    return int(float(number) * unit) if "." in number else int(number) * unit
