"""Run real programs with either kind of capture, and on special file systems."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import Output, ProcessStarted, Stream
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult, Transcript
from rooda.world.process.runner import Runner
from rooda.world.state.folder import STDERR, STDOUT, open_transcript, place_of
from support.states import state_of

Capture = Literal["file", "pipe"]
CAPTURES: tuple[Capture, Capture] = ("file", "pipe")
PLACE = place_of("studio", 1)
BOTH_CAPTURES = pytest.mark.parametrize("capture", CAPTURES)


@dataclass
class Studio:
    """A folder to run programs in, each with a transcript, and the events of all runs."""

    folder: Path
    runner: Runner
    interrupts: Interrupts
    events: list[Event] = field(default_factory=list)

    def sh(
        self, body: str, capture: Capture, listener: Listener | None = None, **how: Any
    ) -> ProcessResult:
        return self.run(("sh", "-c", body), capture, listener, **how)

    def python(
        self, body: str, capture: Capture, listener: Listener | None = None, **how: Any
    ) -> ProcessResult:
        return self.run((sys.executable, "-S", "-c", body), capture, listener, **how)

    def run(
        self,
        argv: tuple[str, ...],
        capture: Capture | None,
        listener: Listener | None = None,
        *,
        limit: int = 256 * 1024 * 1024,
        environ: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **bounds: Any,
    ) -> ProcessResult:
        def listen(event: Event) -> None:
            self.events.append(event)
            if listener is not None:
                listener(event)

        if timeout is not None:
            bounds["clocks"] = (Clock("iteration_timeout", timeout, Since.START),)
        with Path(os.devnull).open("rb") as stdin:
            request = ProcessRequest(argv, self.folder, environ or os.environ, stdin, 10_000_000)
            request = replace(request, **bounds)
            if capture is None:
                return self.runner.run(request, self.interrupts, listen)
            files = open_transcript(state_of(self.folder), PLACE, _raise)
            assert files is not None
            with files[0] as stdout, files[1] as stderr:
                transcript = Transcript(stdout, stderr, capture == "file", limit)
                request = replace(request, transcript=transcript)
                return self.runner.run(request, self.interrupts, listen)

    @property
    def transcripts(self) -> dict[Stream, Path]:
        """The transcript files of both streams."""
        folder = state_of(self.folder) / PLACE
        return {"stdout": folder / STDOUT, "stderr": folder / STDERR}

    def output(self, stream: Stream | None = None) -> bytes:
        """The output in the events: of one stream, or of both in order of arrival."""
        return b"".join(
            event.data
            for event in self.events
            if isinstance(event, Output) and stream in (None, event.stream)
        )

    def events_of(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def pid(self) -> int:
        """The pid of the program that was started last."""
        return [event.pid for event in self.events if isinstance(event, ProcessStarted)][-1]


def _raise(error: OSError) -> None:
    raise error


@contextmanager
def studio_in(folder: Path, contain: str = "adopt") -> Iterator[Studio]:
    """A studio with its own runner."""
    interrupts = Interrupts()
    try:
        with Runner(f"test-{folder.name}-{os.getpid()}", contain) as runner:
            yield Studio(folder, runner, interrupts)
    finally:
        interrupts.close()


# -- file systems --------------------------------------------------------------------------


def apart(*steps: str) -> tuple[str, ...]:
    """A command that runs shell steps in its own namespaces, and then its arguments.

    Root gets a mount namespace only, other users get a user namespace in which they are root. Skips
    the test where the system allows neither.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is not installed")
    options = "-m" if os.geteuid() == 0 else "-rm"
    before = [unshare, options, "sh", "-c"]
    test = subprocess.run(
        [*before, "mount -t tmpfs none /tmp"], capture_output=True, text=True, check=False
    )
    if test.returncode:
        pytest.skip(f"mount does not work: {test.stderr.strip()}")
    return (*before, "; ".join(["set -e", *steps]), "sh")


def mounted(kind: str, folder: Path, keep: Path, options: str = "") -> tuple[str, ...]:
    """Run a command whose record is on its own file system; the record is copied to `keep`."""
    with_options = f"-o {options} " if options else ""
    state = state_of(folder)
    return apart(
        f"mkdir -p '{state}'",
        f"mount -t {kind} {with_options}none '{state}'",
        f"cd '{folder}'",
        'code=0; "$@" || code=$?',
        f"cp -r --sparse=always '{state}' '{keep}'",
        "exit $code",
    )
