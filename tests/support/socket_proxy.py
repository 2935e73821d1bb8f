"""A way to PostgreSQL that a test can cut: a unix socket of its own for one worker."""

import contextlib
import select
import socket
import threading
from pathlib import Path

import sqlalchemy as sa

_PIECE = 65536
_NAME = ".s.PGSQL.5432"


class SocketProxy:
    """Passes bytes between the clients of a socket and the server of a URL."""

    def __init__(self, folder: Path, url: str) -> None:
        parsed = sa.make_url(url)
        self._target = f"{parsed.query['host']}/{_NAME}"
        self.url = parsed.update_query_dict({"host": str(folder)}).render_as_string(
            hide_password=False
        )
        folder.mkdir()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._open = threading.Event()
        self._open.set()
        self._is_silent = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/{_NAME}")
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def is_cut(self) -> bool:
        """Whether nothing comes through."""
        return not self._open.is_set()

    def cut(self, *, silently: bool = False) -> None:
        """Let nothing through; silently: the clients wait for an answer that does not come."""
        self._is_silent = silently
        self._open.clear()
        if not silently:
            self._drop()

    def mend(self) -> None:
        """Let bytes through again, in new connections."""
        self._drop()
        self._open.set()

    def close(self) -> None:
        """End all connections."""
        self._listener.close()
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for one in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_cut and not self._is_silent:
                    client.close()
                    continue
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server, contextlib.suppress(OSError):
            with self._lock:
                self._pairs.append((client, server))
            self._open.wait()
            server.connect(self._target)
            other = {client: server, server: client}
            while True:
                for end in select.select([client, server], [], [])[0]:
                    piece = end.recv(_PIECE)
                    self._open.wait()
                    if not piece:
                        return
                    other[end].sendall(piece)
