"""What a snapshot's tree can't tell, written into the message of its commit. Pure."""

import json
from collections.abc import Iterator

from msgspec import Struct

_LEFT_OUT, _ABSENT = "Left out: ", "Absent: "
_MOST_NAMED = 1000  # of each kind


class Notes(Struct, frozen=True):
    """`left_out` was there and is not in the tree; `absent` would be ignored and was not there."""

    left_out: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def message(title: str, notes: Notes) -> bytes:
    """What the commit says. A name may hold anything, so it is written as JSON."""
    lines = [
        f"{kind}{json.dumps(name)}"
        for kind, names in ((_LEFT_OUT, notes.left_out), (_ABSENT, notes.absent))
        for name in names[:_MOST_NAMED]
    ]
    return "\n".join([title, *(["", *lines] if lines else []), ""]).encode()


def read_notes(said: str) -> Notes:
    """The notes in such a message; an agent may have written another one."""
    return Notes(tuple(_names(said, _LEFT_OUT)), tuple(_names(said, _ABSENT)))


def _names(said: str, kind: str) -> Iterator[str]:
    for line in said.split("\n"):
        if line.startswith(kind):
            try:
                name = json.loads(line.removeprefix(kind))
            except (ValueError, RecursionError):
                continue
            if isinstance(name, str):
                yield name
