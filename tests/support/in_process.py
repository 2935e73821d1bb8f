"""Run `rooda` and `ralph` in this process: a command without the start of a program."""

import contextlib
import gc
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from rooda.front import entry
from rooda.front.cli import main as rooda
from rooda.front.ralph import main as ralph
from rooda.world.process.interrupts import Interrupts
from support.finished import Finished

MAIN = {"rooda": rooda.main, "ralph": ralph.main}


class _Unbound(Interrupts):
    """Owns no signal handlers: signals to the tests are for pytest."""

    def install(self) -> None:
        """Leave the handlers of pytest."""

    def ignore_from_now_on(self) -> None:
        """Leave the handlers of pytest."""


def run_in_process(
    name: str, arguments: Sequence[str], folder: Path, environ: Mapping[str, str], stdin: str = ""
) -> Finished:
    """Return what the command prints in this folder and environment, and its exit code."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _standard_streams(stdin, out.fileno(), err.fileno()), _own_state(folder, environ):
            code = _code(name, arguments)
        return Finished(code, _content(out), _content(err), time.monotonic() - started)


def _code(name: str, arguments: Sequence[str]) -> int:
    try:
        return MAIN[name](list(arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read().decode(errors="surrogateescape")
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as `subprocess` reads text


@contextlib.contextmanager
def _standard_streams(stdin: str, out: int, err: int) -> Iterator[None]:
    """Put files in place of the descriptors 0, 1 and 2 and of Python's streams."""
    streams = sys.stdin, sys.stdout, sys.stderr
    for stream in streams[1:]:
        stream.flush()
    with tempfile.TemporaryFile() as given, contextlib.ExitStack() as closing:
        given.write(stdin.encode())
        given.seek(0)
        for number, file in enumerate((given.fileno(), out, err)):
            kept = os.dup(number)
            closing.callback(os.close, kept)
            closing.callback(os.dup2, kept, number)
            os.dup2(file, number)
        opened = [_stream(number) for number in range(3)]
        sys.stdin, sys.stdout, sys.stderr = opened
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            for stream in opened:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()


def _stream(number: int) -> IO[Any]:
    errors = "backslashreplace" if number == 2 else "surrogateescape"  # as Python does
    mode = "w" if number else "r"
    return open(number, mode, encoding="utf-8", errors=errors, closefd=False)


@contextlib.contextmanager
def _own_state(folder: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Undo what a command changes in its process."""
    threshold, paths = gc.get_threshold(), list(sys.path)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for variable in [name for name in os.environ if name not in environ]:
            patch.delenv(variable)
        for variable, value in environ.items():
            patch.setenv(variable, value)
        patch.setattr(entry, "Interrupts", _Unbound)
        patch.setattr(entry, "_end_on_signals", lambda: None)
        try:
            yield
        finally:
            gc.set_threshold(*threshold)
            sys.path[:] = paths
            signal.signal(signal.SIGINT, handler)
