"""The real `rooda web` as a child, requests to it byte by byte, and a run that obeys the test."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import psutil

from support.children import until
from support.gitwork import GitWork, git_work
from support.workspace import ROODA, Running, Workspace

_LINE = re.compile(r"http://127\.0\.0\.1:(\d+)/#([\w-]+)")
_PATIENCE = 60  # seconds; a loaded machine is slow


@dataclass(frozen=True)
class Answer:
    """A whole answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Site:
    """A server at work."""

    process: subprocess.Popen[str]
    printed: list[str]
    port: int
    token: str
    errors: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def url(self) -> str:
        return f"{self.address}#{self.token}"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def request(self, path: str, method: str = "GET", **headers: str | None) -> bytes:
        """Return a good request with the token; a header of None is left out."""
        usual = {
            "Host": self.host,
            "Authorization": f"Bearer {self.token}",
            "Connection": "close",
        }
        own = {name.replace("_", "-").title(): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in (usual | own).items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(_PATIENCE)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def exchange(self, request: bytes) -> Answer:
        """Send these bytes; return the answer."""
        with self.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # answered before all was read
                connection.sendall(request)
            return _answer(connection, request.partition(b" ")[0].decode(errors="replace"))

    def get(self, path: str, method: str = "GET", **headers: str | None) -> Answer:
        return self.exchange(self.request(path, method, **headers))

    def follow(self, path: str) -> "Stream":
        """Open a stream."""
        connection = self.connect()
        connection.sendall(self.request(path))
        return Stream(connection)

    def still_has(self, connection: socket.socket) -> bool:
        """Whether the server has its end of a connection open."""
        port = connection.getsockname()[1]
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return any(getattr(one.raddr, "port", None) == port for one in found)

    def runs(self) -> list[str]:
        """The places `KEY/RUN` of all runs, as the list shows them."""
        return list(dict.fromkeys(re.findall(r'href="#/run/([^"/]+/[^"/]+)"', self.get_runs())))

    def get_runs(self) -> str:
        answer = self.get("/api/runs")
        assert answer.status == 200, answer
        return answer.text

    def place(self, run: str) -> str:
        """Wait until the list has a run; return its place."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [one for one in self.runs() if one.endswith(f"/{run}")]
            return bool(found)

        until(is_there, f"run {run} in the list")
        return found[0]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(_PATIENCE)


def _answer(connection: socket.socket, method: str) -> Answer:
    response = HTTPResponse(connection, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


class Stream:
    """Objects that come over a stream, one in each line."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._response = HTTPResponse(connection)
        self._response.begin()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}
        self.got: list[dict[str, Any]] = []

    def read(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until an object is the one; return it."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            line = self._response.readline()
            assert line, f"the stream has ended: {self.got[-3:]}"
            found = json.loads(line)
            self.got.append(found)
            if enough(found):
                return dict(found)
        raise AssertionError(f"not within {_PATIENCE}s: {self.got[-3:]}")

    def words(self, text: str) -> None:
        """Read until the words of the agent have this text."""
        self.read(lambda one: text in one.get("text", ""))

    def close(self) -> None:
        self._response.close()
        self.connection.close()


@contextmanager
def work_with_a_run(folder: Path, words: str) -> Iterator[GitWork]:
    """Yield a repository with a run of one iteration, in which the agent said these words."""
    for name in ("home", "work"):
        (folder / name).mkdir()
    with git_work(Workspace(folder / "work", folder / "home")) as found:
        agent = found.agent(f"echo {words}; echo new > file; echo '<promise>SUCCESS</promise>'")
        assert found.work(agent).code == 0
        yield found


@contextmanager
def web(work: Workspace, *args: str) -> Iterator[Site]:
    """Start `rooda web` on any free port, and stop it at the end."""
    errors = work.home / "web.err"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [str(ROODA), "web", *(args or ("--port", "0"))],
            cwd=work.home,
            env=work.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    assert process.stdout is not None
    printed: list[str] = []
    try:
        found = None
        for line in process.stdout:
            printed.append(line)
            if found := _LINE.search(line):
                break
        assert found, (printed, errors.read_text())
        yield Site(process, printed, int(found[1]), found[2], errors)
        said = errors.read_text()
        assert "Traceback" not in said, said
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE)
            finally:
                process.kill()
        process.stdout.close()


@dataclass
class Obedient:
    """A run whose agent does what the test tells it: one shell command after another."""

    work: GitWork
    running: Running
    orders: int
    run: str = ""
    _count: int = field(default=0)

    def does(self, command: str) -> None:
        """Let the agent run a command; return when it is done."""
        self._count += 1
        sign = self.work.marker(f"done-{self._count}")
        order = f"{command}; : > {shlex.quote(str(sign))}"
        os.write(self.orders, f"{order}\n".encode())
        until(sign.exists, f"the agent runs {command}")

    def says(self, text: str | bytes) -> None:
        """Let the agent print a text."""
        path = self.work.marker(f"text-{self._count}")
        path.write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())
        self.does(f"cat {shlex.quote(str(path))}")

    def ends_iteration(self) -> None:
        """Let the agent exit; return when the agent of the next iteration listens."""
        os.write(self.orders, b"exit\n")
        self.does(":")

    def ends(self, last: str = "<promise>SUCCESS</promise>") -> None:
        """Let the agent say its last words and exit."""
        os.write(self.orders, f"echo '{last}'; exit\n".encode())


@contextmanager
def obedient_run(work: GitWork, *args: str, name: str = "") -> Iterator[Obedient]:
    """Start a run and wait until its agent listens."""
    pipe = work.marker(f"orders{name}")
    os.mkfifo(pipe)
    orders = os.open(pipe, os.O_RDWR)
    body = f'exec 3<>{shlex.quote(str(pipe))}\nwhile read -r order <&3; do eval "$order"; done'
    running = work.begin(work.agent(body, f"obedient{name}.sh"), *args)
    try:
        found = Obedient(work, running, orders)
        found.does(":")
        found.run = work.reader.run().run
        yield found
    finally:
        os.close(orders)
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()
        for output in (running.process.stdout, running.process.stderr):
            assert output is not None
            output.close()
