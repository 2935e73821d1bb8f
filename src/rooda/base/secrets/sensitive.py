"""Files that should not be committed, told by their names, and secrets in command lines."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from rooda.base.secrets.secret_values import names_a_secret
from rooda.base.secrets.token_formats import without_named_values, without_tokens

# Names of files that are meant to be public. The patterns of names are compiled when a run
# commits: that takes longer than most imports.
_PUBLIC = "examples?|samples?|template|tmpl|tpl|dist|defaults?|pub|public"
_HARMLESS = rf"(?:.*[._-])?(?:{_PUBLIC})(?:[._-].*)?"
_DATA = r"(?:json|ya?ml|toml|ini|cfg|conf|txt|xml|properties|env)"
_SECRET = "|".join(
    (
        r"\.env(?:[._-].+)?|.+\.env|\.envrc",
        r".+\.(?:pem|key|p12|pfx|p8|ppk|jks|keystore|kdbx?|agekey|tfvars|tfstate)",
        r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[-_]\w+)*",
        rf"(?:.*[._-])?credentials?(?:[._-].*)?\.{_DATA}|\.?credentials|\.git-credentials",
        rf"(?:.*[._-])?secrets?(?:[._-].*)?\.{_DATA}|\.?secrets?|.+\.secret",
        r"client_secret.*\.json|service[-_]?account.*\.json|(?:token|auth)\.json",
        r"[._]netrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.dockercfg|\.s3cfg|\.boto",
        r"kubeconfig|.+\.kubeconfig|\.vault[-_](?:pass|token)",
    )
)
_BACKUP = r"(?:~|\.(?:bak|old|orig|save|swp))\Z"
# Names that are harmless in other folders.
_IN_FOLDERS = ("/.aws/credentials", "/.docker/config.json", "/.kube/config")

# Files that may be committed unless they contain a token.
TOKEN_HOLDERS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml"})
_TOKEN = re.compile(
    rb"(?:_auth(?:Token)?|_password|npmAuthToken|npmAuthIdent)[\"']?[ \t]*[=:][ \t]*[\"']?(?!\$)\w"
)


# Advice about new files that look like secrets.
IGNORE_OR_ALLOW = "Add them to .gitignore; if they may be committed, name them in git.allow_secrets"


def looks_like_a_secret(name: str) -> bool:
    """Return whether a file of this name, or path, most likely has a key or a password in it."""
    path = name.lower()
    if f"/{path}".endswith(_IN_FOLDERS):
        return True
    file = re.sub(_BACKUP, "", path.rpartition("/")[2].strip())
    is_secret = re.fullmatch(_SECRET, file, re.DOTALL) is not None
    return is_secret and not re.fullmatch(_HARMLESS, file, re.DOTALL)


def is_allowed(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the user's patterns (`git.allow_secrets`) matches the path of a file.

    A pattern without a slash stands for the name of a file in any folder, another one for its path
    from the top of the work tree. `*` matches slashes too.
    """
    return any(_matches(name, pattern) for pattern in patterns)


def _matches(name: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").removeprefix("**/")
    if pattern.endswith("/"):
        pattern += "*"
    if "/" not in pattern:
        return fnmatchcase(name.rpartition("/")[2], pattern)
    pattern = pattern.removeprefix("/")
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("/**/", "/"))


def holds_a_token(content: bytes) -> bool:
    """Return whether the settings of a package manager contain a token, not only its variable."""
    return _TOKEN.search(content) is not None


# -- secrets in command lines --------------------------------------------------------------

HIDDEN = "..."
# A name, and what is before its value: `--key VALUE`, `"--key" VALUE`, `"key": VALUE`.
_NAME = re.compile(r"""(?<![\w-])([\w-]++)((?:\\?["'])?+(?:=|[ \t]*+:[ \t]*+|(?:\\\n|\s)++))""")
_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key"})
# Names before a colon, in a header or in JSON. Ordinary sentences have such a colon too.
_FIELD = re.compile(
    r"(?:api|access|private|secret|subscription)[_-]?key|token(?!s\b)|secret|passw|credential"
    r"|auth(?!or(?!i[sz]))|cookie",
    re.IGNORECASE,
)
_BEFORE_HEADER = re.compile(r"""["'=]\Z|-H[ \t]*\Z|--header[ \t]+\Z""")
_QUOTED = re.compile(
    r"""(?:(?:bearer|basic)[ \t]++(?!-))?+(?:\\.|"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s"'])+""",
    re.IGNORECASE | re.DOTALL,
)
_LINE = re.compile(r"[^\n\"']+")  # the value of a header, up to the quote that ends it
_IN_JSON = re.compile(r"""\\?"[^"]*+"?|\\?'[^']*+'?|[^\s"',}\]]++""")
# `curl -u NAME:PASSWORD`; two numbers are a user and a group.
_LOGIN = re.compile(
    r"""((?<![\w-])(?:-u\s*+|--(?:proxy-)?user[=\s]\s*+|-u=)["']?[^\s:"'/=]++:)(?!\d+\b)[^\s"']++"""
)
# `-k KEY`: a short flag says little, so its value must look like a key: letters and digits.
_SHORT_FLAG = re.compile(
    r"""((?<![\w-])-(?:[kK](?=[=\s]*+["']?[\w+=-]{8})|[A-Za-z](?=[=\s]*+["']?[A-Za-z0-9+=]{20}))"""
    r"""[=\s]\s*+["']?)(?=[A-Za-z+=-]*+\d)(?=[\d+=-]*+[A-Za-z])[A-Za-z0-9+=-]{8,}+(?![\w./:@])"""
)
_LONGEST_BEFORE = 12  # characters before a name that say whether it is the name of a header
# A password before the host, or a token in place of the name: long, and with a digit.
_IN_URL = re.compile(r"(://(?:[^/\s:@]*+:|(?=[^/\s:@]{16})(?=[^/\s:@\d]*\d)))[^/\s@]++(?=@)")


def without_secret_values(text: str) -> str:
    """Return the text without the values of secret variables, flags and headers, and tokens."""
    pieces: list[str] = []
    at = 0
    while found := _NAME.search(text, at):
        name, follows = found[1], found[2]
        pieces.append(text[at : found.end()])
        at = found.end()
        value = _value_of(
            name, follows, text[max(0, found.start() - _LONGEST_BEFORE) : found.start()]
        )
        if value is not None and (hidden := value.match(text, at)):
            pieces.append(HIDDEN)
            at = hidden.end()
    shown = _IN_URL.sub(rf"\1{HIDDEN}", "".join([*pieces, text[at:]]))
    shown = _SHORT_FLAG.sub(rf"\1{HIDDEN}", _LOGIN.sub(rf"\1{HIDDEN}", shown))
    return without_named_values(without_tokens(shown))


def masked_url(url: str) -> str:
    """Return a URL without its password, wherever that is: before the host, or in the query."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return without_secret_values(url)
    head, at, tail = rest.rpartition("@")  # a password may contain an @ itself
    user, colon, _ = head.partition(":")
    hidden = f"{user}:{HIDDEN}" if colon else user
    return f"{scheme}://{without_tokens(hidden)}{at}{without_secret_values(tail)}"


def _value_of(name: str, follows: str, before: str) -> re.Pattern[str] | None:
    """Return the pattern of the secret value after a name; None if the value is not a secret."""
    if follows.rstrip().endswith(":"):
        if follows[0] in "\\\"'":
            return _IN_JSON if _FIELD.search(name) else None
        is_header = name.lower() in _HEADERS or (
            _FIELD.search(name) is not None and _BEFORE_HEADER.search(before) is not None
        )
        return _LINE if is_header else None
    is_value = follows == "=" or name.startswith("-")
    return _QUOTED if is_value and names_a_secret(name) else None
