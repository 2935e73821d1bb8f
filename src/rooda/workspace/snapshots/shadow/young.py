"""Files that are so new that git could miss their next change.

Git compares times by the second. A file that gets other bytes of the same size within the second
in which git looked at it, and its old date again, looks the same to git. It is we who remember
such files for a moment, with the exact time of their inode, which nobody can set.
"""

import os
import stat
import time
from collections.abc import Iterable

_YOUNG = 2.0  # seconds: one for git, and one for a file server's clock


class Young:
    """The files of one work tree that were changed just before a look."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._known: dict[str, tuple[int, int]] = {}

    def note(self, names: Iterable[str]) -> None:
        """To be called before git looks: what changes after this call is seen the next time."""
        now = time.time()
        for name in names:
            try:
                found = os.lstat(f"{self._top}/{name}")
            except OSError:
                continue
            if found.st_ctime > now - _YOUNG and not stat.S_ISDIR(found.st_mode):
                self._known[name] = (found.st_ctime_ns, found.st_ino)

    def forget(self, names: Iterable[str]) -> None:
        """These are of no interest any more."""
        for name in names:
            self._known.pop(name, None)

    def changed(self) -> list[str]:
        """Those that have changed since, for git to look at again.

        The others are let go of once they are old enough.
        """
        before, self._known = self._known, {}
        self.note(before)
        return [name for name, known in before.items() if self._differs(name, known)]

    def _differs(self, name: str, known: tuple[int, int]) -> bool:
        if name in self._known:
            return self._known[name] != known
        try:
            found = os.lstat(f"{self._top}/{name}")
        except OSError:
            return False  # git sees that it is gone
        return (found.st_ctime_ns, found.st_ino) != known
