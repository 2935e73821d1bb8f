"""The entry point. What goes wrong in a command becomes a message in `boundary.py`.

Kept light: `rooda --version` imports nothing but this, and signals are ours before anything heavy
is loaded.
"""

import os
import sys
from collections.abc import Sequence

from rooda import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rooda` with the given arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["version"]):
        return _print_version()
    if sys.platform == "win32":
        sys.stderr.write("rooda runs on Linux and macOS; on Windows, use it inside WSL\n")
        return 1
    from rooda.process.interrupts import Interrupts, end_at_once  # noqa: PLC0415 - POSIX alone

    try:
        _open_standard_descriptors()
        interrupts = Interrupts()
        interrupts.install()
    except KeyboardInterrupt:  # before the signals were ours
        end_at_once()
    from rooda.cli import boundary  # noqa: PLC0415 - heavy, and signals must be ours first

    code = boundary.run(arguments, interrupts)
    interrupts.ignore_from_now_on()
    return boundary.flush(code)


def _print_version() -> int:
    try:
        os.write(1, f"rooda {__version__}\n".encode())
    except OSError:
        return 1  # nobody there, or no room
    return 0


def _open_standard_descriptors() -> None:
    """Started with one of them closed (`>&-`), a file or pipe of ours would take its place."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
