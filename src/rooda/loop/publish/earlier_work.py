"""The failed iterations whose work is in uncommitted files, or in the files of a commit."""

import os
from collections.abc import Iterable

from rooda.loop.history import IterationHistory
from rooda.loop.services import Services
from rooda.world.git.snapshots.tree_changes import relative


def whose_work(
    services: Services, numbers: tuple[int, ...], names: Iterable[str]
) -> tuple[int, ...]:
    """Return those of the iterations that changed one of these files; names are from the top.

    An iteration whose files are no longer in memory counts as well.
    """
    pin, tracker = services.pin, services.tracker
    if not numbers or pin is None or tracker is None:
        return numbers
    folder = os.path.relpath(os.path.realpath(tracker.root), pin.top)
    files = {relative("" if folder == "." else folder, name) for name in names}
    changed = ((number, _changed_by(services.history, number)) for number in numbers)
    return tuple(number for number, own in changed if not own or own & files)


def _changed_by(history: IterationHistory, number: int) -> set[str]:
    """Return the files that all attempts at an iteration changed."""
    found: set[str] = set()
    for one in history.filter(lambda each: each.number == number):
        if one.result is not None:
            result = one.result
            found.update(result.files_created, result.files_modified, result.files_deleted)
    return found
