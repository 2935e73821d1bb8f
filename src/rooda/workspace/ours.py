"""Files in the work tree that we write to ourselves, and not the agent."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_STANDARD = (1, 2)


def redirected_to() -> Iterator[Path]:
    """The files that our own output goes to (`rooda build > night.log`), where that is known."""
    for fd in _STANDARD:
        try:
            path = Path(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115 - it is no path of ours
            if stat.S_ISREG(os.fstat(fd).st_mode) and os.path.samestat(os.fstat(fd), path.stat()):
                yield path
        except OSError:
            continue
