"""One iteration of a run: `rooda` as a child that ends when this process ends."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import DecodeError, ValidationError, json

from rooda.run.outcome import RunOutcome
from rooda.world.files.plain_files import read_plain_file
from rooda.world.process.first_moment import own_module

_LARGEST_RESULT = 1024 * 1024
_GRACE = 30.0  # seconds in which rooda stops its agent; the warden does it if rooda is killed


class Child:
    """A rooda at work. `shared` are descriptors that it keeps open as long as it lives."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        shared: Sequence[int] = (),
    ) -> None:
        reading, self._lifeline = os.pipe()
        os.set_inheritable(reading, True)  # noqa: FBT003 - the name of the function says it
        command = own_module("rooda", *words, "--lifeline", str(reading))
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(reading, *shared),
                    start_new_session=True,  # Ctrl+C is a matter of the worker
                )
        except OSError:
            self._close()
            raise
        finally:
            os.close(reading)

    @property
    def pid(self) -> int:
        """The process of rooda."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        code = self._process.wait()
        self._close()
        return code

    def stop(self) -> None:
        """Ask rooda to stop its agent and to end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Stop rooda, and wait until it is gone; kill it if that takes too long."""
        self.stop()
        with contextlib.suppress(ProcessLookupError):  # a halted process can't end by itself
            self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        self._lifeline = -1


def read_result(path: Path) -> RunOutcome | None:
    """Return what the child wrote; None if it wrote nothing that can be read."""
    try:
        return json.decode(read_plain_file(path, _LARGEST_RESULT), type=RunOutcome)
    except (OSError, ValueError, DecodeError, ValidationError):
        return None
