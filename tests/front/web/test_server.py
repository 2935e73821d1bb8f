"""A real server: its limits, clients that misbehave, and its end."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rooda.front.web import guard as connections
from rooda.front.web import hub
from rooda.front.web.server import listen, serve
from rooda.views.report.page import TEMPLATES
from rooda.world.process.interrupts import Interrupts
from support.nights import iteration, results
from support.web import Machine, write_log


@dataclass
class Served:
    """A server in a thread."""

    port: int = 0
    token: str = ""
    faults: list[str] = field(default_factory=list)
    seconds_to_end: float = 0.0

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def request(self, path: str) -> bytes:
        words = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        return f"{words}Authorization: Bearer {self.token}\r\n\r\n".encode()

    def status(self, path: str) -> bytes:
        with self.connect() as client:
            client.sendall(self.request(path))
            return client.recv(4096)[:12]


Start = Callable[[Machine], contextlib.AbstractContextManager[Served]]


@contextlib.contextmanager
def served(machine: Machine) -> Iterator[Served]:
    interrupts = Interrupts()
    found, is_there = Served(), threading.Event()

    def tell(address: str, port: int) -> None:
        found.port, found.token = port, address.partition("#")[2]
        is_there.set()

    def fault(where: str, error: Exception) -> None:
        found.faults.append(f"{where}: {error!r}")

    with listen(0) as listener:
        arguments = (listener, machine.sources, machine.folder, interrupts, tell, fault)
        thread = threading.Thread(target=serve, args=arguments)
        thread.start()
        assert is_there.wait(20)
        try:
            yield found
        finally:
            began = time.monotonic()
            interrupts.received.append(15)
            thread.join(20)
            found.seconds_to_end = time.monotonic() - began
    assert not thread.is_alive()
    assert found.faults == []


def read_all(client: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(65536):
            got += piece
    return got


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_server_ends_at_once_and_ends_open_streams(machine: Machine) -> None:
    address = machine.run_at_work("payments", iteration(1, results(4)))
    with served(machine) as server:
        clients = [server.connect() for _ in range(3)]
        for client, path in zip(clients, ("runs", f"run/{address}", "runs"), strict=True):
            client.sendall(server.request(f"/api/live/{path}"))
            assert client.recv(12) == b"HTTP/1.1 200"
    assert server.seconds_to_end < 2
    for client in clients:
        assert read_all(client).endswith(b"0\r\n\r\n")
        client.close()


def test_answers_name_no_software(machine: Machine) -> None:
    with served(machine) as server, server.connect() as client:
        client.sendall(server.request("/api/runs") + b"nonsense\r\n\r\n")
        good, _, bad = read_all(client).partition(b"HTTP/1.1 400")
    for answer in (good, bad):
        assert b"content-security-policy: default-src 'none'" in answer.lower()
        assert b"\r\nserver:" not in answer.lower()
        assert b"\r\ndate:" not in answer.lower()


def test_connection_without_a_request_is_closed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONGEST_REQUEST", 0.2)
    with served(machine) as server, server.connect() as silent, server.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert read_all(silent) == b""
        assert read_all(slow) == b""


def test_second_request_has_to_arrive_in_time_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONGEST_REQUEST", 0.2)
    with served(machine) as server, server.connect() as client:
        client.sendall(server.request("/icon.svg"))
        got = b""
        while not got.endswith(b"</svg>\n"):
            got += client.recv(65536)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert read_all(client) == b""


def test_one_connection_too_many_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 2)
    with served(machine) as server:
        with server.connect() as first, server.connect() as second:
            for client in (first, second):
                client.sendall(server.request("/api/live/runs"))
                assert client.recv(12) == b"HTTP/1.1 200"
            assert server.status("/") == b"HTTP/1.1 503"
        while server.status("/") != b"HTTP/1.1 200":
            time.sleep(0.02)


def test_client_that_does_not_read_is_cut_off(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONGEST_SEND", 0.3)
    monkeypatch.setattr(hub, "PACE", 0.01)
    address = machine.run_at_work("payments", iteration(1, results(4)))
    tree = machine.tree("payments")
    with served(machine) as server, server.connect() as stuck, server.connect() as good:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for client in (stuck, good):
            client.sendall(server.request(f"/api/live/run/{address}"))
        got = b""
        for number in range(200):
            write_log(tree, b"%d " % number + b"x" * 60_000 + b"\n")
            while b"%d xxx" % number not in got:
                got = got[-100:] + good.recv(65536)
            if _is_cut(stuck):
                break
        else:
            pytest.fail("the client that does not read is still connected")


def _is_cut(client: socket.socket) -> bool:
    """Whether the server has reset the connection, without reading from it."""
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


def test_long_answer_arrives_whole(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_PIECE", 100)
    with served(machine) as server, server.connect() as client:
        client.sendall(server.request("/report.css"))
        got = client.recv(65536)
        size = int(got.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(got.partition(b"\r\n\r\n")[2]) < size:
            got += client.recv(65536)
    style = (TEMPLATES / "style.css").read_bytes()
    assert got.endswith(b"\r\n\r\n" + style)


def test_each_start_takes_another_port_unless_the_user_names_one() -> None:
    """A known port could have had a server of an agent, whose script the browser has kept."""
    ports = set()
    for _ in range(8):
        with listen() as listener:
            ports.add(listener.getsockname()[1])
    assert len(ports) > 1
    with listen(min(ports)) as listener:
        assert listener.getsockname()[1] == min(ports)
