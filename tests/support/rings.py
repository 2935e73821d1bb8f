"""The first ring of tests starts no process, but for git where a test says so.

`make test` runs it. A test with the marker `real` starts programs and belongs to the second ring,
one with `long` to the third.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

MARKERS = ("real", "long")  # of the second and the third ring
RINGS = {
    "first": "not real and not long",
    "real": "real and not long",
    "sample": "sample",
    "long": "long",
    "all": "",
}
_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}


class _Guard:
    """Sees each start of a process in this interpreter."""

    def __init__(self) -> None:
        self.is_on = False
        self.allowed: tuple[str, ...] = ()

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if not self.is_on or not (event == "subprocess.Popen" or event in _STARTS):
            return
        program = _program(args[1]) if event == "subprocess.Popen" else event
        if program not in self.allowed:
            pytest.fail(
                f"This test started a process: {program}. Tests of the first ring start none. "
                "Use Workspace.rooda, which runs the command in this process, or mark the test "
                "`real` (`git` if it starts nothing but git)."
            )


def _program(argv: object) -> str:
    words = argv if isinstance(argv, (list, tuple)) else [argv]
    first = words[0]
    return Path(os.fsdecode(first)).name if isinstance(first, (str, bytes, os.PathLike)) else "?"


_GUARD = _Guard()
sys.addaudithook(_GUARD)


_WHOLE = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.(\w+)", re.MULTILINE)


def has_none_of(ring: str, module: str) -> bool:
    """Return whether a module has no test of the ring, by its text: to import it takes time."""
    if ring == "first":
        found = _WHOLE.search(module)
        return found is not None and found[1] in MARKERS
    return ring == "sample" and "mark.sample" not in module


def left_out(rows: Sequence[pytest.Item], number: int) -> list[pytest.Item]:
    """Return all but this number of rows of a table; those that stay are spread over the table."""
    ordered = sorted(rows, key=lambda row: row.nodeid)
    kept = {len(ordered) * place // number for place in range(number)}
    return [row for place, row in enumerate(ordered) if place not in kept]


@contextmanager
def without_processes(*allowed: str) -> Iterator[None]:
    """Let the start of a process fail the test, unless it is one of these programs."""
    _GUARD.is_on, _GUARD.allowed = True, allowed
    try:
        yield
    finally:
        _GUARD.is_on = False


def is_first() -> bool:
    """Return whether a test of the first ring runs."""
    return _GUARD.is_on
