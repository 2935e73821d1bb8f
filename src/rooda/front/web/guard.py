"""Who may read the page: the browser of the user who has the address that `rooda web` printed.

Other programs and web pages on this machine can send requests to the port. A page of another site
can't read answers, but it can guess addresses, or give its own name the address 127.0.0.1 (DNS
rebinding). So rooda checks the Host, where the request comes from, and the token, in this order.
"""

import asyncio
import contextlib
import functools
import secrets
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

API: Final = "/api/"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_METHODS = ("GET", "HEAD")
_OTHER_SITES = ("cross-site", "same-site")  # another port of this machine is the same site


class Guard:
    """Lets good requests through, and adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()
        self._hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        path: str = scope["path"]
        if headers.getlist("host") not in ([one] for one in self._hosts):
            return _refuse(421, f"Open the page with http://{self._hosts[0]}/.")
        if not self._is_own(headers, is_start=path == "/"):
            return _refuse(403, "Another page has no access.")
        if scope["method"] not in _METHODS:
            return _refuse(405, "The page is read-only.", Allow=", ".join(_METHODS))
        if path.startswith(API) and not self._has_token(headers.getlist("authorization")):
            words = "Start `rooda web`, and open the address that it prints."
            return _refuse(401, words, WWW_Authenticate="Bearer")
        return None

    def _is_own(self, headers: Headers, *, is_start: bool) -> bool:
        """Whether the page itself, or the user, sends the request."""
        origins = [f"http://{host}" for host in self._hosts]
        if any(one not in origins for one in headers.getlist("origin")):
            return False
        if headers.get("sec-fetch-site", "") not in _OTHER_SITES:
            return True
        # A link in a terminal that is itself a web page; the page has no data without a token.
        mode, kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        return is_start and (mode, kind) == ("navigate", "document")

    def _has_token(self, given: Iterable[str]) -> bool:
        words = [one.encode("utf-8", "replace") for one in given]
        return len(words) == 1 and secrets.compare_digest(words[0], self._token)


def _refuse(status: int, words: str, **headers: Any) -> PlainTextResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PlainTextResponse(f"{words}\n", status, named)


# The limits of one connection: how many there are, and how long a client may take.
#
# A client that sends no whole request, or that does not read its answer, is cut off: nothing waits
# for it.


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
