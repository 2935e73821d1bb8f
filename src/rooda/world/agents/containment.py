"""What an agent CLI gets in rooda's sandbox: its files below HOME, and its variables.

HOME is a private folder there. Session data and caches of a CLI live in that folder, and are kept.
The rest comes from the user's own HOME: credentials can be written, because a CLI renews its
tokens; settings can only be read, so that an agent cannot change what the CLI does outside. Folders
with code (plugins, hooks, extensions, MCP servers) and the user's sessions stay outside.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field


class SandboxNeeds(Struct, frozen=True):
    """What one CLI needs in the sandbox.

    `credentials` and `settings` are paths below HOME; what exists is mounted, `credentials`
    writable and `settings` read-only. `environ` is set inside. `variables` are names, or patterns
    with `*`, of the user's variables that pass in, such as API keys.
    """

    credentials: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()


# How programs reach the network; programs read some of these names in lower case, too.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
# Files and folders with certificates, such as that of a company; programs inside read them.
CERTIFICATE_VARIABLES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"),
)
NETWORK_VARIABLES: Final = (
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
    *CERTIFICATE_VARIABLES,
    "NODE_USE_SYSTEM_CA",
)
