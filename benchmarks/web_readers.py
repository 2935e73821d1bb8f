"""What readers of `rooda web` cost a run: 50 that follow it live, against none and no server."""

import re
import selectors
import socket
import subprocess
import sysconfig
import threading
import time
import urllib.request
from pathlib import Path

from benchmarks.measure import alternate, report, seconds

LIMIT = 1.25
ITERATIONS = 40
READERS = 50

# An agent that says something ten times in each iteration, as a talkative one does.
_AGENT = """\
#!/bin/sh
for n in 1 2 3 4 5 6 7 8 9 10; do
  yes 'forty characters that an agent could say' | head -n 50
  sleep 0.01
done
"""


class _Readers:
    """Followers of the newest run, in one thread that reads whatever comes."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._known = set(self._runs())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.bytes = self.connected = 0
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _runs(self) -> list[str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/api/runs")
        request.add_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request) as answer:
            return re.findall(r'href="#/run/([^"/]+/[^"/]+)"', answer.read().decode())

    def _connect(self, place: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port))
        lines = (
            f"GET /api/live/run/{place} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {self._token}",
        )
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection

    def _read(self) -> None:
        place = None
        while place is None and not self._stop.is_set():
            place = next((one for one in self._runs() if one not in self._known), None)
            time.sleep(0.02)
        if place is None:
            return
        with selectors.DefaultSelector() as selector:
            for _ in range(READERS):
                selector.register(self._connect(place), selectors.EVENT_READ)
                self.connected += 1
            while not self._stop.is_set():
                for key, _ in selector.select(0.1):
                    connection = key.fileobj
                    assert isinstance(connection, socket.socket)
                    data = connection.recv(1 << 20)
                    self.bytes += len(data)
                    if not data:
                        selector.unregister(connection)
                        connection.close()
            for key in list(selector.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()


def measure(folder: Path) -> bool:
    agent = folder / "agent"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    own = ["env", f"XDG_STATE_HOME={folder / 'state'}", rooda]  # none of the user's runs
    command = [*own, "build", "--ai-cmd", "./agent", "--quiet", "-n", str(ITERATIONS)]
    seconds(command, folder)  # the first run makes the folders
    heard: list[int] = []

    def with_readers() -> float:
        server = subprocess.Popen(
            [*own, "web", "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout is not None
        found = None
        while found is None:
            line = server.stdout.readline()
            assert line, "rooda web printed no address"
            found = re.search(r":(\d+)/#([\w-]+)", line)
        readers = _Readers(int(found[1]), found[2])
        try:
            return seconds(command, folder)
        finally:
            readers.stop()
            server.terminate()
            server.communicate()
            assert readers.connected == READERS
            heard.append(readers.bytes)

    ours, theirs = alternate(with_readers, lambda: seconds(command, folder), rounds=5)
    print(
        f"{READERS} readers of rooda web heard {min(heard) // READERS // 1000} kB each;"
        f" {ITERATIONS / ours:.1f} iterations per second with them,"
        f" {ITERATIONS / theirs:.1f} without"
    )
    return report(f"web: a run with {READERS} readers / alone", ours, theirs, "s", LIMIT)
