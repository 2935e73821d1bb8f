"""Free the middle of a file while somebody goes on writing to its end; or reserve room for it."""

import ctypes
import errno
import fcntl
import os
import struct
import sys

_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_F_PUNCHHOLE = 99  # macOS


def punch(fd: int, start: int, end: int) -> bool:
    """Give these bytes back to the system; they read as zeros. False where that can't be done."""
    try:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, _F_PUNCHHOLE, struct.pack("=IIqq", 0, 0, start, end - start))
        else:
            _fallocate(_KEEP_SIZE | _PUNCH_HOLE, fd, start, end - start)
    except OSError:
        return False
    return True


def reserve(fd: int, size: int) -> None:
    """Take so much of the disk for a file that is still empty. Raises OSError if it is full."""
    try:
        _fallocate(_KEEP_SIZE, fd, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # where it just can't be done, one has to hope


def _fallocate(mode: int, fd: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # Some C libraries have only one of them, and then with 64 bits.
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(fd, mode, offset, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
