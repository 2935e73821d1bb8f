"""Serves the page on 127.0.0.1 until a signal comes."""

import contextlib
import secrets
import socket
from collections.abc import Callable, Generator
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from rooda.front.web.app import Pages
from rooda.front.web.guard import Connection
from rooda.front.web.hub import Hub, Threads
from rooda.front.web.sources import Fleets, RunCards, Sources
from rooda.views.machine_runs import prepare_types
from rooda.world.process.interrupts import Interrupts

HOST = "127.0.0.1"
ANY_PORT = 0  # the kernel chooses one at random
_BUFFER = 32 * 1024  # bytes that the kernel keeps for a client which does not read
_LONGEST_HEADERS = 16 * 1024  # bytes


def listen(port: int = ANY_PORT) -> socket.socket:
    """Return a socket that listens on this port, or on a free one. Raises OSError.

    A browser keeps scripts of a site by its port, and a server of an agent may have been on a known
    one.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        found.bind((HOST, port))
        found.listen()
    except OSError:
        found.close()
        raise
    return found


def serve(
    listener: socket.socket,
    sources: Sources,
    folder: Path,
    interrupts: Interrupts,
    tell: Callable[[str, int], None],
    on_trouble: Callable[[str, Exception], None],
) -> None:
    """Serve until a signal comes. `tell` gets the address and the port when the page is there.

    `on_trouble` gets the faults of rooda itself, with the address of the page.
    """
    token = secrets.token_urlsafe(32)
    port = listener.getsockname()[1]

    class Server(uvicorn.Server):
        """Ends with rooda's own signals, and ends all streams first."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            prepare_types()
            self.threads = Threads()
            self.hub = Hub(self.threads, on_trouble=on_trouble)
            pages = Pages(
                sources,
                RunCards(sources),
                Fleets(sources, folder),
                self.threads,
                self.hub,
                on_trouble,
            )
            self.config.loaded_app = pages.guarded(token, port)
            await super().startup(sockets)
            tell(f"http://{HOST}:{port}/#{token}", port)

        async def on_tick(self, counter: int) -> bool:
            is_over = await super().on_tick(counter) or bool(interrupts.received)
            if is_over:
                self.hub.close()
            return is_over

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            self.threads.close()

    config = uvicorn.Config(
        _no_app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )
    with interrupts.deferred():
        Server(config).run([listener])


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand for the app, which needs the event loop and is made in it."""
