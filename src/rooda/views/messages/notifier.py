"""The process that sends the messages of one run. It is apart from rooda, and outlives it.

rooda starts it before the first agent and never waits for it. Orders come as lines of JSON on
standard input, reports of failures go as lines of JSON to standard output, and every result goes to
the log of the run. When standard input ends while a last message is left, rooda was killed: then
that message is sent. Each delivery is a process of its own, which this process kills after a while.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from rooda.views.messages.delivery import LIMIT, UNKNOWN

START = "start"  # the moment of the check of addresses
_TICK = 0.1  # seconds between two looks at the deliveries
_GRACE = 2.0  # seconds after the limit of a delivery: then it is killed
_MOST_AT_ONCE = 60
_CHUNK = 65536
_LONGEST_ANSWER = 4096
_PROGRAM = (
    "import sys; sys.path += sys.argv[1].split(chr(0x1f)); "
    "from rooda.views.messages.{module} import main; main()"
)
Job = Mapping[str, Any]


def program(python: Sequence[str], module: str, path: str) -> list[str]:
    """Return the command that starts a module of this package. `path` is where Python imports."""
    return [*python, "-c", _PROGRAM.format(module=module), path]


class Delivery(Struct):
    """One message on its way to one target."""

    shown: str
    moment: str
    process: subprocess.Popen[bytes]
    deadline: float

    def result(self, now: float) -> str | None:
        """Return why it failed, "" if it was delivered, None while that is not known."""
        code = self.process.poll()
        if code is None and now < self.deadline:
            return None
        kill_group(self.process)
        self.process.wait()
        answer = self._answer()
        if code is None or code == -signal.SIGALRM:
            return f"no answer within {LIMIT} seconds"
        return answer or ("" if code == 0 else f"the process that sends it ended with {code}")

    def _answer(self) -> str:
        """Return what the process printed; a child of it can still hold the pipe open."""
        if self.process.stdout is None:
            return ""
        with self.process.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)
            try:
                data = os.read(pipe.fileno(), _LONGEST_ANSWER)
            except BlockingIOError:
                return ""
        return data.decode("utf-8", "replace").strip()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a delivery: it is the leader of a group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def start_delivery(
    job: Job, moment: str, command: Sequence[str], environ: Mapping[str, str] | None = None
) -> Delivery:
    """Start the process that does a job. Raises OSError if the system can't."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environ,
        start_new_session=True,
    )
    if process.stdin is not None:
        with contextlib.suppress(OSError), process.stdin as pipe:  # it may be dead already
            pipe.write(json.dumps(job).encode())
    return Delivery(job["shown"], moment, process, time.monotonic() + LIMIT + _GRACE)


class Notifier:
    """Sends what the orders say. `tell` gets the results: moment, target, and why it failed."""

    def __init__(self, command: Sequence[str], tell: Callable[[str, str, str], None]) -> None:
        self._command = command
        self._tell = tell
        self._targets: list[Job] = []
        self._last: Job | None = None
        self._on_the_way: list[Delivery] = []

    @property
    def is_busy(self) -> bool:
        """Whether a delivery is on its way."""
        return bool(self._on_the_way)

    def obey(self, order: Job) -> None:
        """Follow an order of rooda."""
        self._targets = order.get("targets", self._targets)
        if "last" in order:
            self._last = order["last"]
        if order.get("check"):
            self._start_check()
        if (message := order.get("send")) is not None:
            self._start(order["moment"], message)

    def end(self) -> None:
        """Send the last message, if rooda has not taken it back."""
        if self._last is not None:
            self._start("killed", self._last)
            self._last = None

    def _start_check(self) -> None:
        """Let a process look whether the addresses can be used; its failure says nothing."""
        urls = [target["url"] for target in self._targets]
        if any(urls):
            with contextlib.suppress(OSError):
                job = {"shown": "", "check": urls}
                self._on_the_way.append(start_delivery(job, START, self._command))

    def _start(self, moment: str, message: Job) -> None:
        for target in self._targets:
            if len(self._on_the_way) >= _MOST_AT_ONCE:
                self._tell(moment, target["shown"], "too many messages are on their way")
                continue
            try:
                job = {**target, **message}
                self._on_the_way.append(start_delivery(job, moment, self._command))
            except OSError as error:
                self._tell(moment, target["shown"], f"can't be sent: {error.strerror}")

    def look(self) -> None:
        """Report the deliveries that have ended."""
        now = time.monotonic()
        for one in [*self._on_the_way]:
            reason = one.result(now)
            if reason is not None:
                self._on_the_way.remove(one)
                if one.moment != START:
                    self._tell(one.moment, one.shown, reason)
                    continue
                for place in _places(reason):
                    self._tell(START, self._targets[place]["shown"], UNKNOWN)


def _places(answer: str) -> list[int]:
    """Return the places of the addresses that can't be used, if that is the answer."""
    numbers = answer.split()
    return [int(one) - 1 for one in numbers] if all(map(str.isdecimal, numbers)) else []


class Reports:
    """Writes results to the log, and failures to rooda. Neither can fail or block."""

    def __init__(self, log: int, rooda: int) -> None:
        self._log, self._rooda = log, rooda
        with contextlib.suppress(OSError):
            os.set_blocking(rooda, False)

    def __call__(self, moment: str, target: str, reason: str) -> None:
        """Write one result."""
        words = "sent" if not reason else f"failed: {reason}"
        line = f"{datetime.now().astimezone():%Y-%m-%dT%H:%M:%S%z} {moment} {target}: {words}\n"
        with contextlib.suppress(OSError):
            os.write(self._log, line.encode("utf-8", "replace"))
        if reason:
            found = {"moment": moment, "target": target, "reason": reason}
            with contextlib.suppress(OSError):
                os.write(self._rooda, json.dumps(found).encode() + b"\n")


def serve(notifier: Notifier, orders: int) -> None:
    """Follow the orders until there are no more, then wait for the last deliveries."""
    poll, rest, is_open = select.poll(), b"", True
    poll.register(orders, select.POLLIN)
    while is_open or notifier.is_busy:
        if not is_open:
            time.sleep(_TICK)
        elif poll.poll(_TICK * 1000 if notifier.is_busy else None):
            data = os.read(orders, _CHUNK)
            is_open = bool(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):  # a line that was cut off
                    notifier.obey(json.loads(line))
            if not is_open:
                notifier.end()
        notifier.look()


def main() -> None:
    """Be the process: the arguments are the import path and the descriptor of the log."""
    path, log = sys.argv[1:3]
    command = program((sys.executable, "-I", "-S"), "delivery", path)
    serve(Notifier(command, Reports(int(log), 1)), 0)
