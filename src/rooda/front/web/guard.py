"""Who may read the page: the browser of the user who has the address that `rooda web` printed.

Other programs and web pages on this machine can send requests to the port. A page of another site
can't read answers, but it can guess addresses, or give its own name the address 127.0.0.1 (DNS
rebinding). So rooda checks the Host, where the request comes from, and the token, in this order.
"""

import secrets
from collections.abc import Iterable
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
