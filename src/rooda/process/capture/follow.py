"""Wake up when a file grows: inotify where there is one (Linux), else a look now and then."""

import contextlib
import ctypes
import os
from collections.abc import Sequence

LOOK = 0.08  # where the system can't wake us: a line is seen within 100 ms
REST = 0.02  # after a look, so that a flood does not wake us for each of its writes

_IN_MODIFY = 0x02
_IN_CLOEXEC, _IN_NONBLOCK = 0o2000000, 0o4000


class Follower:
    """`fd` is readable when one of the files has changed; without one, look every `LOOK` s."""

    def __init__(self, files: Sequence[int]) -> None:
        self.fd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self.fd = _inotify(files)

    def clear(self) -> None:
        """Take note of the changes, so that only new ones wake us."""
        if self.fd is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.fd, 65536)

    def close(self) -> None:
        """Follow no longer."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)


def _inotify(files: Sequence[int]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(_IN_CLOEXEC | _IN_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    for file in files:
        # By descriptor: the name may be another file's by now, or nobody's.
        path = f"/proc/self/fd/{file}".encode()
        if libc.inotify_add_watch(fd, path, _IN_MODIFY) < 0:
            os.close(fd)
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return fd
