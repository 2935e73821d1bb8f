"""What a key does to a run: a note, a stop after the iteration, a stop now."""

import os
import signal
from pathlib import Path

from rooda.base.problems import InvalidInput, Problem
from rooda.plan.world import World
from rooda.run.control import AtWork
from rooda.run.telling import NoteTarget, note_text
from rooda.world.process.interrupts import END


def tell(tree: Path, text: str) -> str:
    """Write a note, and return which run reads it when. Raises InvalidInput."""
    return NoteTarget.find(World(tree, os.environ)).tell(
        note_text(text.encode("utf-8", "surrogateescape"))
    )


def stop_later(tree: Path, run: str) -> str:
    """Let a run end after its iteration, and return what happens. Raises InvalidInput."""
    found = _find(tree, run)
    found.send(END)
    found.wake()
    return f"{found} stops when its current iteration has ended."


def stop_now(tree: Path, run: str) -> str:
    """Stop a run now, and return what happens. Raises InvalidInput."""
    found = _find(tree, run)
    found.send(signal.SIGTERM)
    found.wake()
    return f"{found} stops now. If its agent does not end, S again kills it."


def _find(tree: Path, run: str) -> AtWork:
    found = AtWork.find(tree)
    if found.note is not None and found.note.run != run:
        problem = Problem(f"run {run} has ended; run {found.note.run} is at work in {tree}")
        raise InvalidInput([problem])
    return found
