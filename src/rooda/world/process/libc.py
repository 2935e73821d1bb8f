"""Calls of the C library and the kernel that Python's `os` lacks."""

import ctypes
import errno
import fcntl
import os
import struct
import sys
from collections.abc import Sequence

_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02  # modes of fallocate(2)
_F_PUNCHHOLE = 99  # fcntl of macOS
_IN_MODIFY, _IN_CLOEXEC, _IN_NONBLOCK = 0x02, 0o2000000, 0o4000
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
_LARGE = 256 * 1024
_AT_FDCWD, _STATX_BTIME, _BTIME_AT = -100, 0x800, 80  # of statx(2); the last: bytes
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # the number of the system call
_JOIN_SESSION_KEYRING = 1
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_VERSION = 1  # a flag: return the version instead
_LANDLOCK_SCOPES = 6  # the first version that has them, in Linux 6.12
_SCOPE_ABSTRACT_UNIX_SOCKET = 1


def punch_hole(fd: int, start: int, end: int) -> bool:
    """Free these bytes of a file, which then read as zeros; False where the system can't do it.

    Other processes may go on writing to the end of the file.
    """
    try:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, _F_PUNCHHOLE, struct.pack("=IIqq", 0, 0, start, end - start))
        else:
            _fallocate(_KEEP_SIZE | _PUNCH_HOLE, fd, start, end - start)
    except OSError:
        return False
    return True


def reserve(fd: int, size: int) -> None:
    """Reserve disk space for an empty file. Raises OSError if the disk is full.

    Does nothing on a file system that can't reserve space.
    """
    try:
        _fallocate(_KEEP_SIZE, fd, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise


def watch_writes(files: Sequence[int]) -> int:
    """An inotify descriptor that is readable after a write to one of these open files.

    Raises OSError or AttributeError where there is no inotify (macOS), or no watch left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(_IN_CLOEXEC | _IN_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    for file in files:
        # By descriptor: the agent may have deleted the file, or put another in its place.
        path = f"/proc/self/fd/{file}".encode()
        if libc.inotify_add_watch(fd, path, _IN_MODIFY) < 0:
            os.close(fd)
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return fd


def return_large_blocks_to_system() -> None:
    """Make glibc return every large block of memory to the system as soon as it is freed.

    Without this, glibc keeps large blocks in its heap after the first one was freed. An agent that
    prints a lot would then cost ten megabytes more when its output is joined at its end.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)


def become_subreaper() -> bool:
    """Make this process the parent of every orphan below it; False where there is no such thing."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def join_new_keyring() -> None:
    """Leave the session keyring of the user, whose keys every child would inherit."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


def has_socket_scopes() -> bool:
    """Return whether the kernel can keep a process from abstract unix sockets of others."""
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None).syscall
    return bool(call(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION) >= _LANDLOCK_SCOPES)


def scope_abstract_sockets() -> None:
    """Keep this process and its children from abstract unix sockets of others, if possible."""
    if not has_socket_scopes():
        return
    libc = ctypes.CDLL(None)
    # struct landlock_ruleset_attr: files, network, scopes
    rules = (ctypes.c_uint64 * 3)(0, 0, _SCOPE_ABSTRACT_UNIX_SOCKET)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, rules, ctypes.sizeof(rules), 0)
    if ruleset < 0:
        return
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _fallocate(mode: int, fd: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # Some C libraries have only one of the two names, which then takes 64 bits.
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(fd, mode, offset, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def birth_time(path: "os.PathLike[str]") -> int | None:
    """The moment when a file was created, in nanoseconds since the epoch; None if unknown."""
    if sys.platform != "linux":
        born = getattr(os.stat(path), "st_birthtime", None)  # noqa: PTH116 - the path of a call
        return None if born is None else int(born * 1_000_000_000)
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError):
        return None
    found = ctypes.create_string_buffer(256)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found) != 0:
        return None
    (mask,) = struct.unpack_from("=I", found, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", found, _BTIME_AT)
    birth = seconds * 1_000_000_000 + nanoseconds
    return birth if mask & _STATX_BTIME and birth else None  # the top of some file systems has 0
