"""Files that should not be committed, told by their names alone."""

import re
from pathlib import PurePosixPath

# Words that say: this one is for everybody to see.
_HARMLESS = re.compile(
    r"(?:.*[._-])?(?:examples?|samples?|template|tmpl|tpl|dist|defaults?|pub|public)(?:[._-].*)?",
    re.DOTALL,
)
_DATA = r"(?:json|ya?ml|toml|ini|cfg|conf|txt|xml|properties|env)"
_SECRET = re.compile(
    "|".join(
        (
            r"\.env(?:\..+)?|.+\.env|\.envrc",
            r".+\.(?:pem|key|p12|pfx|p8|ppk|jks|keystore|kdbx?|agekey|tfvars|tfstate)",
            r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[-_]\w+)*(?:\.(?:old|bak))?",
            rf"(?:.*[._-])?credentials?(?:[._-].*)?\.{_DATA}|\.?credentials|\.git-credentials",
            rf"(?:.*[._-])?secrets?(?:[._-].*)?\.{_DATA}|\.?secrets?|.+\.secret",
            r"client_secret.*\.json|service[-_]?account.*\.json|(?:token|auth)\.json",
            r"[._]netrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.dockercfg|\.s3cfg|\.boto",
            r"kubeconfig|.+\.kubeconfig|\.vault[-_](?:pass|token)",
        )
    ),
    re.DOTALL,
)
# Harmless names that are so only elsewhere.
_IN_FOLDERS = (".aws/credentials", ".docker/config.json", ".kube/config")

# Files that may well be committed, unless a token stands in them in plain words.
TOKEN_HOLDERS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml"})
_TOKEN = re.compile(
    rb"(?:_auth(?:Token)?|_password|npmAuthToken|npmAuthIdent)[\"']?[ \t]*[=:][ \t]*[\"']?(?!\$)\w"
)


def looks_like_a_secret(name: str) -> bool:
    """Whether a file of this name, or path, most likely holds a key or a password."""
    path = PurePosixPath(name.lower())
    if name.endswith("/") or _HARMLESS.fullmatch(path.name):
        return False
    if any(str(path) == known or str(path).endswith(f"/{known}") for known in _IN_FOLDERS):
        return True
    return _SECRET.fullmatch(path.name) is not None


def holds_a_token(content: bytes) -> bool:
    """Whether a package manager's settings have a token in them, and not only its variable."""
    return _TOKEN.search(content) is not None
