"""The entry point of both commands. `errors.py` turns errors into messages.

It imports little: `rooda --version` needs no more, and the signal handlers must be installed
before anything heavy is loaded.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooda import __version__
from rooda.world.process.interrupts import Interrupts, end_at_once, stays_ignored

if TYPE_CHECKING:
    import click

# New objects between two searches for garbage: loading makes many objects, and hardly any garbage.
_COLLECT_AFTER = 50_000


def front(
    name: str,
    arguments: list[str],
    load: "Callable[[], click.Command]",
    internal_error: int = 3,
) -> int:
    """Run `rooda` or `ralph`; `load` imports it after the signal handlers are installed."""
    if arguments in (["--version"], ["version"]):
        return _print_version(name)
    if sys.platform == "win32":
        sys.stderr.write("rooda runs on Linux and macOS; on Windows, use it inside WSL\n")
        return 1
    gc.set_threshold(_COLLECT_AFTER)
    _end_on_signals()
    try:
        _open_standard_descriptors()
        interrupts = Interrupts()
        interrupts.install()
        # Imported here: it is heavy, and the handlers must be installed before.
        from rooda.front import errors
    except OSError as error:
        # No descriptor is left, or the installation can't be read.
        sys.stderr.write(f"Error: rooda can't start: {error.strerror}\n")
        return 1

    code = errors.run(arguments, interrupts, load(), name, internal_error)
    interrupts.ignore_from_now_on()
    return errors.flush(code)


def _print_version(name: str) -> int:
    try:
        os.write(1, f"{name} {__version__}\n".encode())
    except OSError:
        return 1  # the reader is gone, or the disk is full
    return 0


def _end_on_signals() -> None:
    """Exit on a signal until `Interrupts` is installed; SIGHUP stays ignored under `nohup`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if not stays_ignored(number):
            signal.signal(number, end_at_once)


def _open_standard_descriptors() -> None:
    """Open the descriptors 0, 1 and 2 if the caller closed them: a file of rooda would get one."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
