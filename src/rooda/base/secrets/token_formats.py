"""Keys and tokens that are known by their form, or by a name before them. Pure.

Every pattern is linear, whatever an agent prints: parts that repeat are possessive or bounded, and
a pattern that can fail late starts only where a word starts.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

MASK = "(masked)"
KEPT = "..."  # after the beginning of a token, which a view shows

# Where a word begins: letters before it may be those of an escape (`\n`), a color (`[32m`) or a
# URL (`%3D`).
_BEFORE = (r"\\[nrtbf]", r"[\[;]m", r"[\[;]\dm", r"[\[;]\d\dm", r"%[0-9A-Fa-f]{2}")
_START = rf"(?:(?<![\w-])|{'|'.join(f'(?<={one})' for one in _BEFORE)})"
_AT_START = re.compile(_START)


def _begun(prefix: str) -> str:
    """Return the same for a look back over the beginning of a token, if its rest may fail late."""
    return rf"(?:(?<![\w-]{prefix})|{'|'.join(f'(?<={one}{prefix})' for one in _BEFORE)})"


# Each form of a token: the beginnings that it is known by, and what follows them. The order
# matters: the first one that fits wins.
_FORMS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-"), r"[\w-]{16,}+"),  # Anthropic, OpenAI
    (("sk-",), _begun("sk-") + r"(?=[\w-]{0,60}?\d)[\w-]{16,}+"),
    (("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"), r"\w{20,}+"),  # GitHub
    (("glpat-", "gldt-", "glrt-", "glcbt-"), r"[\w-]{16,}+"),  # GitLab
    (("AKIA", "ASIA"), r"[A-Z0-9]{12,}+"),  # the name of an AWS key
    (("AIza", "pypi-"), r"[\w-]{30,}+"),  # Google, PyPI
    (("ya29.",), r"[\w-]{20,}+"),
    (("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxc-", "xapp-"), r"[\w-]{10,}+"),
    (("npm_", "gsk_", "hf_", "dop_v1_", "xai-"), r"\w{20,}+"),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_"), r"\w{10,}+"),
    (("whsec_",), r"[\w+/=]{16,}+"),  # Stripe, as above
    (("eyJ",), rf"{_begun('eyJ')}[\w-]{{10,}}+\.[\w-]{{10,}}+(?:\.[\w-]*+)?"),  # a JSON web token
)
_PREFIXES = tuple(prefix for prefixes, _ in _FORMS for prefix in prefixes)
_SCHEMES = ("Bearer", "bearer", "BEARER", "Basic", "BASIC")


def _known() -> Iterator[str]:
    """Yield a pattern for each first letter.

    No pattern begins with a group or a look back: so the search jumps from one possible letter to
    the next, which is thirty times as fast.
    """
    by_letter: dict[str, list[str]] = {}
    for prefixes, rest in _FORMS:
        for prefix in prefixes:
            by_letter.setdefault(prefix[0], []).append(re.escape(prefix[1:]) + rest)
    for letter, patterns in by_letter.items():
        yield f"{letter}(?:{'|'.join(patterns)})"


_KNOWN = re.compile("|".join(_known()))
_SCHEME = re.compile(
    rf"({'|'.join(_SCHEMES)})[ \t]{{1,4}}+"
    r"(?=[\w.~+/=-]{0,60}?(?:[0-9=]|[a-z][A-Z]))[\w.~+/=-]{12,}+",  # no word such as `Basic auth`
    re.ASCII,
)
_IN_URL = re.compile(r"(://[^/\s:@\"'<>]{0,256}+:)(?!\.\.\.@)[^/\s@\"'<>]{1,512}+(?=@)")

# -- private keys ------------------------------------------------------------------------------

_KEY_MARK = "-----BEGIN "
_HEAD = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_TAIL = r"-{5,6}END [A-Z0-9 ]{0,60}-----"
_LONGEST_KEY = 16 * 1024  # characters
_LETTERS = r"A-Za-z0-9+/=\s\\|>\x1b\[;:,"
_LINES = rf"[{_LETTERS}]{{0,{_LONGEST_KEY}}}+"
_KEY = re.compile(rf"({_HEAD})(?:([^-]*+(?:-(?!----)[^-]*+)*+)({_TAIL})|({_LINES}))", re.ASCII)
# A key that may go on: its lines have nothing that no key contains, and there is no end of it.
_KEY_OPEN = re.compile(
    rf"(?:-----BEGIN [A-Z0-9 ]{{0,60}}-{{0,4}}|{_HEAD}(?:[{_LETTERS}]++|-(?!----))*+"
    r"(?:-{5,6}(?:E(?:N(?:D[A-Z0-9 ]*+-{0,4})?)?)?)?)\Z"
)
_KEY_PART = re.compile(rf"{re.escape(MASK)}|\\[nr]|\x1b\[[0-9;]*m|[A-Za-z0-9+/=]{{4,}}")


def _masked_key(found: re.Match[str]) -> str:
    """Return a private key without its lines; quotes, colors and marks of a diff stay."""
    head, whole, tail, begun = found.groups()
    body = begun if whole is None else whole
    if not body.strip() or body.strip() == MASK:
        return found[0]
    if re.fullmatch(r"[A-Za-z0-9+/=\s]*", body):
        return f"{head}{MASK}{tail or ''}"
    return head + _KEY_PART.sub(_masked_part, body) + (tail or "")


def _masked_part(found: re.Match[str]) -> str:
    return found[0] if found[0][0] in "\\\x1b(" else MASK


_MOST_WORDS = 2  # of a line of a key, such as those of `Proc-Type: 4,ENCRYPTED`


def opens_key(line: str) -> bool:
    """Return whether a private key begins on this line, and goes on after it."""
    if _KEY_MARK not in line:
        return False
    ends = [found.end() for found in re.finditer(_HEAD, line)]
    return bool(ends) and "-----END " not in line[ends[-1] :]


def may_be_in_key(line: str) -> bool:
    """Return whether a line can be one of a private key, after the one that begins it."""
    return "-----" not in line and len(line.split()) <= _MOST_WORDS


# -- values after a name ------------------------------------------------------------------------

# Words of which one is in every name that a value is masked for. A search for them is fast.
_WORDS = (
    *("secret", "token", "passw", "passphrase", "credential"),
    *("apikey", "api_key", "api-key", "accesskey", "access_key", "access-key"),
    *("privatekey", "private_key", "private-key"),
)
_NAME = r"(?:secret|token|passw|passphrase|credential|(?:api|access|private)[_-]?key)[\w-]{0,40}+"
_QUOTE = r"[\"'\\]{0,3}"
_BETWEEN = rf"{_QUOTE}[ \t]{{0,3}}(?:=>|:=|=|:)[ \t]{{0,3}}{_QUOTE}"
_RANDOM = r"(?=[\w+/=-]{0,64}?[0-9])(?=[\w+/=-]{0,64}?[A-Za-z])[\w+/=-]{16,512}+"
_NAMED = re.compile(
    rf"((?i:{_NAME}){_BETWEEN}){_RANDOM}"
    # A variable as a shell prints it has any value.
    r"|((?:SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|(?:API|ACCESS|PRIVATE)_?KEY)[A-Z0-9_]{0,40}+"
    r"=[\"']?)(?![$({<.\[])[^\s\"'\\]{8,512}+",
    re.ASCII,
)


def _kept_name(found: re.Match[str]) -> str:
    return f"{found[1] or found[2]}{MASK}"


# -- all of them --------------------------------------------------------------------------------


def hint_of(token: str) -> str:
    """Return the beginning of a token, if its form is known; else nothing."""
    return _beginning(token) if _KNOWN.fullmatch(token) else ""


def without_tokens(text: str) -> str:
    """Return the text with a mask in place of keys and tokens; their beginnings stay."""
    if _KEY_MARK in text:
        text = _KEY.sub(_masked_key, text)
    if any(scheme in text for scheme in _SCHEMES):
        text = _SCHEME.sub(rf"\1 {MASK}", text)
    if "://" in text and "@" in text:
        text = _IN_URL.sub(rf"\1{MASK}", text)
    return _KNOWN.sub(_masked_token, text)


def _masked_token(found: re.Match[str]) -> str:
    is_word = _AT_START.match(found.string, found.start())
    return _beginning(found[0]) + MASK if is_word else found[0]


def _beginning(token: str) -> str:
    return next(one for one in _PREFIXES if token.startswith(one)) + KEPT


def without_named_values(text: str) -> str:
    """Return the text with a mask in place of random values whose name says that it is a secret."""
    lower = text.lower()
    words = [word for word in _WORDS if word in lower]
    if not words or len(lower) != len(text):  # a few letters get longer
        return _NAMED.sub(_kept_name, text) if words else text
    pieces: list[str] = []
    end = 0
    for start in sorted(_places(lower, words)):
        if start >= end and (found := _NAMED.match(text, start)):
            pieces += text[end:start], _kept_name(found)
            end = found.end()
    return "".join([*pieces, text[end:]])


def _places(text: str, words: Iterable[str]) -> Iterator[int]:
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + len(word))


# -- a text that goes on ------------------------------------------------------------------------


def _beginnings(words: Iterable[str]) -> str:
    """Return a pattern for every proper beginning of the words, the longest first."""
    every = {one[:size] for one in words for size in range(1, len(one))}
    return "|".join(sorted(map(re.escape, every), key=lambda one: (-len(one), one)))


@cache
def _open() -> re.Pattern[str]:
    """Return what ends in the beginning of a token. Compiled when a program prints."""
    return re.compile(
        rf"{_START}(?:{'|'.join(map(re.escape, _PREFIXES))})[\w.+/=-]*+\Z"
        rf"|{_START}(?:{_beginnings((*_PREFIXES, *_SCHEMES))})\Z"
        rf"|(?:{'|'.join(_SCHEMES)})[ \t]{{0,4}}+[\w.~+/=-]*+\Z"
        r"|:(?://?[^/\s@\"'<>]*+)?\Z"
        rf"|(?i:{_NAME})(?:{_QUOTE}[ \t]{{0,3}}|{_BETWEEN}[^\s\"'\\]*+)\Z"
        rf"|(?i:{_beginnings(_WORDS)})\Z",
        re.ASCII,
    )


_LONGEST_LINE = 16 * 1024  # characters of a line that goes on


def open_end(text: str) -> int:
    """Return where a token begins that the next piece of a text may continue; else its length."""
    size = len(text)
    start = max(text.rfind("\n") + 1, size - _LONGEST_LINE)
    found = _open().search(text, start)
    end = found.start() if found else size
    mark = text.rfind(_KEY_MARK, max(0, size - _LONGEST_KEY))
    if mark >= 0 and _KEY_OPEN.match(text, mark):
        end = min(end, mark)
    begun = (one for one in range(len(_KEY_MARK) - 1, 0, -1) if text.endswith(_KEY_MARK[:one]))
    return min(end, size - next(begun, 0))
