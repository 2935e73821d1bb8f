"""End as interrupted, from wherever the program is. Light: it is loaded before anything else."""

import os
import select
import signal
from typing import NoReturn

INTERRUPTED = 130
_STANDARD_ERROR = 2


def end_at_once(*_: object) -> NoReturn:
    """End now; also of a signal handler's form.

    Not by an exception: in a destructor, a weak reference's callback or `__set_name__` it would be
    lost or turned into another, and imports are full of those.
    """
    try:
        if select.select([], [_STANDARD_ERROR], [], 0)[1]:
            os.write(_STANDARD_ERROR, b"Interrupted\n")
    except OSError:
        pass
    os._exit(INTERRUPTED)


def stays_ignored(number: signal.Signals) -> bool:
    """Whether rooda leaves a signal alone: `nohup` has asked for it to ignore SIGHUP."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
