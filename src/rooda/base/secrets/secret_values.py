"""The secret values in an environment, in the forms in which a program may print them. Pure."""

import binascii
import json
import re
from collections.abc import Iterator, Mapping

from rooda.base.service_addresses import secrets_of

_SECRET_NAME = re.compile(
    r"key|token(?!s\b)|secret|passw|passphrase|credential|auth(?!or(?!i[sz]))|bearer|cookie"
    r"|(?<![a-z])(?:pass|pat|jwt)(?![a-z])",
    re.IGNORECASE,
)
_PLACE_NAME = re.compile(r"_(?:FILE|PATH|DIR|SOCK|HOME)$", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/\s:@]*+:([^/\s@]++)@")

ADDRESSES = "NOTIFY_URLS"  # how the variables with addresses of services end
SHORTEST = 8  # characters of a value that is masked
_SHORTEST_NUMBER = 12
_LONG_PIECE = 16  # characters of a piece of an address that is masked without a digit in it
_SHORTEST_LINE = 16  # of a value with several lines
_SHORTEST_ENCODED = 10
_FEWEST_LETTERS = 4  # different ones
# Values that say nothing, and would hide words of ordinary sentences.
_COMMON = frozenset(
    {
        *("password", "passw0rd", "changeme", "disabled", "required", "optional"),
        *("undefined", "production", "development", "keychain", "username", "anonymous"),
        *("localhost", "internal", "external", "interactive", "placeholder", "unlimited"),
        *("available", "automatic"),
    }
)


def names_a_secret(name: str) -> bool:
    """Return whether a variable or a flag of this name most likely has a secret value."""
    return _SECRET_NAME.search(name) is not None


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values to mask: of secret variables, and passwords in the URLs of any variable."""
    for name, value in environ.items():
        if names_a_secret(name) and not _PLACE_NAME.search(name):
            yield from _worth_masking(value)
        for found in _PASSWORD.finditer(value):
            yield from _worth_masking(found[1])
            yield from _worth_masking(_unquoted(found[1]))
        if name.endswith(ADDRESSES):
            for address in value.split():
                yield from filter(_is_worth_masking, secrets_of(address))


def _is_worth_masking(piece: str) -> bool:
    """Return whether a piece of an address can't be an ordinary word."""
    is_no_word = len(piece) >= _LONG_PIECE or any(one.isdigit() for one in piece)
    return is_no_word and _is_rare(piece)


def _worth_masking(value: str) -> Iterator[str]:
    """Yield the value, and its lines, where they are long and rare enough to be recognized."""
    whole = value.strip()
    if _is_rare(whole):
        yield whole
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        yield from (one for one in lines if len(one) >= _SHORTEST_LINE and _is_rare(one))


def _is_rare(value: str) -> bool:
    if len(value) < (_SHORTEST_NUMBER if value.isdecimal() else SHORTEST):
        return False
    return value.lower() not in _COMMON and len(set(value)) >= _FEWEST_LETTERS


def forms_of(value: str) -> set[str]:
    """Return a value as it is, as JSON, URLs and shells quote it, and within base64."""
    forms = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("'", "'\"'\"'"),
    }
    data = value.encode("utf-8", "surrogateescape")
    return forms | set(_in_urls(data)) | set(_within_base64(data))


# rooda does not use urllib here: to import it takes longer than a short command.
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")


def _in_urls(data: bytes) -> Iterator[str]:
    """Yield the value as a part of a URL, as a path, and as a field of a form."""
    for kept, space in ((b"", "%20"), (b"/", "%20"), (b"", "+")):
        letters = (chr(one) if one in _PLAIN or one in kept else f"%{one:02X}" for one in data)
        yield "".join(letters).replace("%20", space)


def _unquoted(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    return _QUOTED.sub(lambda found: bytes([int(found[1], 16)]), data).decode("utf-8", "replace")


def _within_base64(data: bytes) -> Iterator[str]:
    """Yield what base64 of any text with the value in it contains, wherever the value begins."""
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        padded = b"\0" * before + data
        whole = len(padded) * 8 // 6  # letters that depend on nothing that follows
        core = binascii.b2a_base64(padded)[skipped:whole].decode("ascii")
        if len(core) >= _SHORTEST_ENCODED:
            yield core
            yield core.replace("+", "-").replace("/", "_")  # as in URLs
