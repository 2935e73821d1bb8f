"""Delete the records of work trees that have been gone for a long time."""

import contextlib
import shutil
import time
from collections.abc import Mapping

from rooda.world.state.lock import is_locked
from rooda.world.state.record_place import known_places

KEPT_DAYS = 90
_MARK = "gone"  # an empty file: its time is when a run first saw that the work tree is gone
_DAY = 24 * 3600


def forget_gone_trees(environ: Mapping[str, str]) -> list[str]:
    """Delete each record whose work tree has been gone for 90 days; return their paths."""
    deleted = []
    for place in known_places(environ):
        mark = place.state / _MARK
        with contextlib.suppress(OSError):
            if place.tree.exists():
                mark.unlink(missing_ok=True)
            elif not mark.exists():
                mark.touch(mode=0o600)
            elif time.time() - mark.stat().st_mtime > KEPT_DAYS * _DAY and not is_locked(
                place.state
            ):
                shutil.rmtree(place.state)
                deleted.append(str(place.tree))
    return deleted
