"""The entry point and the one error boundary: nothing else exits or prints a traceback.

Kept light: `rooda --version` imports nothing but this, and signals are ours before anything heavy
is loaded.
"""

import contextlib
import os
import sys
from collections.abc import Sequence

from rooda import __version__
from rooda.process.interrupts import Interrupt, Interrupts

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rooda` with the given arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["version"]):
        sys.stdout.write(f"rooda {__version__}\n")
        return 0
    _open_standard_descriptors()
    interrupts = Interrupts()
    try:
        interrupts.install()
        code = _dispatch(arguments, interrupts)
        interrupts.defer_for_good()
    except (Interrupt, KeyboardInterrupt):
        interrupts.defer_for_good()
        code = _interrupted()
    # The note of a signal is the truth; its exception may have been lost in a destructor.
    if interrupts.received:
        code = INTERRUPTED
    _flush()
    return code


def _open_standard_descriptors() -> None:
    """Started with one of them closed (`>&-`), a file or pipe of ours would take its place."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _dispatch(arguments: list[str], interrupts: Interrupts) -> int:
    from rooda.cli import boundary  # noqa: PLC0415 - heavy, and signals must be ours first

    with boundary.replacing_unprintable():
        return boundary.run(arguments, interrupts)


def _interrupted() -> int:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write("Interrupted\n")
    return INTERRUPTED


def _flush() -> None:
    """A reader that went away is no error, and must not become one at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                stream.close()
