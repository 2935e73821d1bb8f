"""The limits of one connection: how many there are, and how long a client may take.

A client that sends no whole request, or that does not read its answer, is cut off: nothing waits
for it.
"""

import asyncio
import contextlib
import functools
import socket
import struct
from collections.abc import Iterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from rooda.front.web.guard import HEADERS

MOST = 200  # connections
_LONGEST_REQUEST = 10.0  # seconds until the headers are there
_LONGEST_SEND = 5.0  # seconds for a piece of the answer
_PIECE = 64 * 1024  # bytes
_RESET = struct.pack("ii", 1, 0)  # no time for what is not sent yet


def _plain_answer(status: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in HEADERS.items())]
    return "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "\r\n"]).encode()


class Connection(H11Protocol):
    """A connection of uvicorn with these limits."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # `partial` is no coroutine function: uvicorn looks only at the app of its settings.
        self.app = functools.partial(self._answer, self.app)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; one connection too many is refused."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.write(_plain_answer("503 Service Unavailable"))
            transport.close()
        else:
            self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; its headers have to arrive in time."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        is_answering = cycle is not None and not cycle.response_complete
        if is_answering or self.transport.is_closing():
            self._stop_waiting()
        elif self._patience is None:
            self._be_patient()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request; `msg` is not for the client."""
        del msg
        self.transport.write(_plain_answer("400 Bad Request"))
        self.transport.close()

    def _be_patient(self) -> None:
        self._patience = self.loop.call_later(_LONGEST_REQUEST, self._cut_off)

    def _cut_off(self) -> None:
        """Close the connection now; without a reset, the kernel would wait for the client."""
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                for piece in _pieces(message):
                    async with asyncio.timeout(_LONGEST_SEND):
                        await send(piece)
            except TimeoutError:
                self._cut_off()

        await app(scope, receive, send_in_time)


def _pieces(message: Message) -> Iterator[Message]:
    """Yield a long body in pieces: a slow line gets the time for each of them."""
    body = message.get("body", b"")
    for start in range(0, len(body) - _PIECE, _PIECE):
        yield {**message, "body": body[start : start + _PIECE], "more_body": True}
    yield message if len(body) <= _PIECE else {**message, "body": body[_rest(len(body)) :]}


def _rest(size: int) -> int:
    """Return where the last piece begins."""
    return (size - 1) // _PIECE * _PIECE
