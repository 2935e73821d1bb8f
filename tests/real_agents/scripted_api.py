"""The APIs of four vendors on loopback, with scripted replies instead of a model.

The first part of the path names the scenario: http://127.0.0.1:PORT/SCENARIO is the base URL for
an agent. To try it by hand, run `python -m real_agents.scripted_api` in the folder `tests`.
"""

import contextlib
import json
import math
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from real_agents.scenarios import SCENARIOS, Refuse, Silence
from real_agents.wire import DIALECTS
from real_agents.wire.dialect import LIMIT_SECONDS, Answer, Asked, Dialect, document


@dataclass
class ScriptedApi:
    """A server for one test. Scenarios with temporary trouble recover after `trouble` seconds."""

    trouble: float = LIMIT_SECONDS
    port: int = 0
    asked: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._over_at = 0.0
        self._first = threading.Lock()
        self._server = _Server(self)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address of the server, which is also a proxy that refuses all requests."""
        return f"http://127.0.0.1:{self.port}"

    def over_at(self) -> float:
        """Return when the trouble ends; it starts with the first request."""
        with self._first:
            self._over_at = self._over_at or time.time() + self.trouble
            return self._over_at


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", api.port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: an agent that is stopped drops its connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing: the server object keeps the requests."""

    def do_GET(self) -> None:
        self._refuse_unknown()

    def do_HEAD(self) -> None:
        self._refuse_unknown()

    def do_CONNECT(self) -> None:
        """Refuse a request to another host, and record the host."""
        self.server.api.strays.append(self.path)
        self._send(Answer(b"", 403))

    def _refuse_unknown(self) -> None:
        if not self.path.startswith("/"):
            self.server.api.strays.append(self.path)
        self._send(document({"error": {"message": "not scripted"}}, 404))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        dialect = next((found for found in DIALECTS if path.endswith(found.endings)), None)
        if dialect is None:
            self._refuse_unknown()
            return
        self.server.api.asked.append(path)
        self._answer(dialect, path, raw)

    def _answer(self, dialect: Dialect, path: str, raw: bytes) -> None:
        api, body = self.server.api, json.loads(raw)
        over_at = api.over_at()
        reply = SCENARIOS[path.split("/")[1]].reply(
            tool_has_run=dialect.tool_has_run(body), trouble_is_over=time.time() >= over_at
        )
        streaming = bool(body.get("stream")) or ":stream" in path
        asked = Asked(body, streaming, math.ceil(over_at))
        if isinstance(reply, Silence):
            api.released.wait()
            self.close_connection = True
        elif isinstance(reply, Refuse):
            self._send(dialect.refuse(asked, reply))
        else:
            self._send(dialect.speak(asked, reply))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {"content-type": answer.kind, "content-length": str(len(answer.body))}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def main() -> None:
    """Serve until interrupted."""
    with ScriptedApi(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as api:
        sys.stderr.write(f"{api.url}/SCENARIO, of {', '.join(SCENARIOS)}\n")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
