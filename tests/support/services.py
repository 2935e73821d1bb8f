"""Services that get messages: local web servers that accept, refuse, or never answer."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.children import until

SECRET = "s3cr3t-t0ken-99"


class _Handler(BaseHTTPRequestHandler):
    server: "Service"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(data)))
        self.send_response(self.server.code)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Service(ThreadingHTTPServer):
    """A service that answers each message with a code; `got` are the paths and messages."""

    def __init__(self, code: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.got: list[tuple[str, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def shown(self) -> str:
        """The address as rooda shows it."""
        return f"json://127.0.0.1:{self.server_address[1]}/..."

    @property
    def url(self) -> str:
        """The address, with a secret in it."""
        return self.shown.replace("...", f"hooks/{SECRET}")

    def wait(self, number: int = 1) -> list[dict[str, Any]]:
        """Return the messages, when there are so many."""
        until(lambda: len(self.got) >= number, f"{number} messages arrive")
        return [message for _, message in self.got]

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class SilentService:
    """A service that takes connections and never answers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        port = self._listener.getsockname()[1]
        self.shown = f"json://127.0.0.1:{port}/..."
        self.url = f"json://127.0.0.1:{port}/hooks/{SECRET}"

    def wait_for_message(self) -> bytes:
        """Return the first bytes of a message that waits for an answer."""
        self._listener.settimeout(60)
        connection, _ = self._listener.accept()
        self._taken.append(connection)
        connection.settimeout(60)
        return connection.recv(65536)

    def is_waited_for(self) -> bool:
        """Return whether the sender of the message still waits."""
        connection = self._taken[-1]
        connection.settimeout(0)
        try:
            return connection.recv(65536) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False

    def close(self) -> None:
        for one in (self._listener, *self._taken):
            one.close()
