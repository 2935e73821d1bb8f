"""What an agent says of its own work. Pure."""

from rooda.text.controls import clean

_MARKERS = (b"## Summary", b"### Summary", b"Summary:")
_LINES = 5
_LONGEST = 16 * 1024


def extract_summary(text: bytes) -> str | None:
    """What follows the first marker: five lines, the rest of the marker's own among them.

    A marker with nothing behind it is none.
    """
    found = ((text.find(marker), len(marker)) for marker in _MARKERS)
    for place, length in sorted(pair for pair in found if pair[0] != -1):
        rest = text[place + length : place + length + _LONGEST].decode("utf-8", "ignore")
        lines = clean(rest).split("\n")[:_LINES]
        summary = "\n".join(lines).removeprefix(":").strip()
        if summary:
            return summary
    return None
