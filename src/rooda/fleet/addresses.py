"""The address of a git remote: which folder it is on this machine, how messages show it."""

import re
from pathlib import Path
from urllib.parse import unquote

from rooda.base.controls import one_line
from rooda.base.secrets.sensitive import HIDDEN, without_secret_values

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//|:)")
_SHORT_SSH = re.compile(r"[^/]+:")  # host:path
_FILE = "file://"
# A token can stand in place of the user's name. With ssh the name is not a secret.
_HTTP_USER = re.compile(r"(https?://)[^/\s]+@", re.IGNORECASE)  # an @ may be in a password


def local_folder(url: str) -> Path | None:
    """Return the folder of a remote on this machine; None if the remote is elsewhere."""
    if url.startswith(_FILE):
        return Path(unquote(url.removeprefix(_FILE)))
    if _SCHEME.match(url) or _SHORT_SSH.match(url):
        return None
    return Path(url)


def absolute_address(url: str) -> str:
    """Return the address of a remote so that it is the same in every folder."""
    folder = local_folder(url)
    return url if folder is None or url.startswith(_FILE) else str(folder.absolute())


def without_credentials(text: str) -> str:
    """Return a message, or an address, on one line and without the credentials of addresses."""
    hidden = _HTTP_USER.sub(rf"\g<1>{HIDDEN}@", text)
    return one_line(without_secret_values(hidden))


def without_user(url: str) -> str:
    """Return the address without the user and the password of http; git asks its helper then."""
    return _HTTP_USER.sub(r"\g<1>", url)
