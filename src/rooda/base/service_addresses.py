"""Addresses of services that get messages, such as `ntfy://TOPIC`. Pure.

An address contains the keys of the service: it is a secret. What rooda shows of it is its scheme,
and its host where that is the name of a server.
"""

import re
from collections.abc import Iterator

HIDDEN = "..."
# Schemes in which the host is a server. In others it can be a token, such as `tgram://TOKEN/CHAT`.
_WITH_SERVER = frozenset(
    name + end
    for name in ("json", "xml", "form", "mailto", "gotify", "mmost", "rocket", "mqtt", "hassio")
    for end in ("", "s")
)
_SERVER = re.compile(r"(?:[^/?#]*@)?(?P<server>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?P<port>:\d+)?")
_PIECE = re.compile(r"[^/:@?&=,#\s]+")
_SHORTEST = 4  # characters of a piece of an address that may be a secret


def shown_address(address: str) -> str:
    """Return an address without its secrets: `discord://...`, `json://hooks.example.org/...`."""
    scheme, _, rest = address.partition("://")
    found = _SERVER.match(rest) if scheme.lower() in _WITH_SERVER else None
    if found is None or rest[found.end() : found.end() + 1] not in ("", "/", "?"):
        return f"{scheme.lower()}://{HIDDEN}"
    server = f"{scheme.lower()}://{found['server']}{found['port'] or ''}"
    return (
        server if rest[found.end() :] in ("", "/") and "@" not in found[0] else f"{server}/{HIDDEN}"
    )


def secrets_of(address: str) -> Iterator[str]:
    """Yield what must not be shown of an address: all of it, and its pieces."""
    public = set(_PIECE.findall(shown_address(address)))
    yield address
    for piece in _PIECE.findall(address):
        if len(piece) >= _SHORTEST and piece not in public:
            yield piece
