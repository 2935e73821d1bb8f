"""Send a signal to the process that is meant, and to no later one with the same pid."""

import os
import signal

from rooda.process.tree.process import Census, Process


def send(census: Census, process: Process, number: int) -> bool:
    """Send it; False when the process is gone, or is none of ours (sudo)."""
    try:
        fd = os.pidfd_open(process.pid)
    except AttributeError:  # macOS: look, and be quick
        return _is_there(census, process) and _kill(process.pid, number)
    except ProcessLookupError:
        return False
    except OSError:  # no descriptor left, or an old kernel
        return _is_there(census, process) and _kill(process.pid, number)
    try:
        # From here on the descriptor stands for this very process, so one look is enough.
        if not _is_there(census, process):
            return False
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _is_there(census: Census, process: Process) -> bool:
    now = census.look_at(process.pid)
    return now is not None and now.key == process.key


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
