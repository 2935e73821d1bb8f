"""Signal a whole process group, and tell whether anything of it still runs."""

import os
import sys
from pathlib import Path


def signal_group(pgid: int, number: int) -> bool:
    """Send a signal to the group; False when there is nobody left to get it."""
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A member belongs to somebody else (sudo). The others got the signal.
        return True
    return True


def group_alive(pgid: int) -> bool:
    """Whether a member of the group still runs. Zombies don't count.

    Where PID 1 reaps slowly, `killpg` says that a dead group is alive; on Linux /proc knows better.
    """
    if not signal_group(pgid, 0):
        return False
    return _members_in_proc(pgid) if sys.platform == "linux" else True


def _members_in_proc(pgid: int) -> bool:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - names are all that is needed, and fast
    except OSError:
        return True  # not mounted: killpg's word must do
    for name in names:
        if not name.isdigit():
            continue
        try:
            # The name in parentheses may contain anything, so read behind its end.
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X") and int(fields[2]) == pgid:
            return True
    return False
