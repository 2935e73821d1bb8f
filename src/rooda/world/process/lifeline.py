"""A descriptor that rooda's life hangs on: when its other end closes, rooda ends as for SIGTERM.

The program that started rooda holds the other end. The kernel closes it however that program ends,
so no agent outlives it.
"""

import fcntl
import os
import select
import signal
import stat
import threading

from rooda.world.process.interrupts import END, SIGNALS

_CHUNK = 4096


class LifelineError(ValueError):
    """The descriptor can't be a lifeline; the message says why."""


def hold(fd: int) -> None:
    """Watch the descriptor from now on, and let no child inherit it. Raises LifelineError.

    Call this in the main thread, after the signal handlers were installed.
    """
    _check(fd)
    os.set_inheritable(fd, False)  # noqa: FBT003 - it has no name
    main = threading.get_ident()
    threading.Thread(target=_watch, args=(fd, main), name="lifeline", daemon=True).start()


def _check(fd: int) -> None:
    try:
        mode, flags = os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL)
    except (OSError, OverflowError):
        raise LifelineError("it is not open") from None
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise LifelineError("it is neither a pipe nor a socket")
    if flags & os.O_ACCMODE == os.O_WRONLY:
        raise LifelineError("it is the writing end of a pipe")


def _watch(fd: int, main: int) -> None:
    """Wait for the end of what comes from the descriptor, then signal the main thread."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*SIGNALS, END})  # they are for the main thread
    _wait_for_end(fd)
    signal.pthread_kill(main, signal.SIGTERM)


def _wait_for_end(fd: int) -> None:
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    while True:
        ready.poll()
        try:
            if not os.read(fd, _CHUNK):
                return
        except BlockingIOError:
            continue  # another process has read what came
        except OSError:
            return
