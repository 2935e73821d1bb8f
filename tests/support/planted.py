"""Secrets of every kind, for tests that plant them and look for them in what rooda shows."""

import secrets
import string
from collections.abc import Iterator

_LETTERS = string.ascii_letters + string.digits


def _random(size: int, letters: str = _LETTERS) -> str:
    """Return letters that no other text contains; a digit is among them."""
    return "".join(secrets.choice(letters) for _ in range(size - 2)) + "7x"


def _key(kind: str) -> str:
    lines = "\n".join(_random(64) for _ in range(6))
    return f"-----BEGIN {kind}-----\n{lines}\n{_random(18)}=\n-----END {kind}-----"


# What a view may show of each, and the secret after that.
FORMS: dict[str, tuple[str, str]] = {
    "Anthropic": ("sk-ant-", f"api03-{_random(40)}-{_random(20)}"),
    "OpenAI": ("sk-", _random(48)),
    "OpenAI project": ("sk-proj-", _random(60)),
    "GitHub": ("ghp_", _random(36)),
    "GitHub OAuth": ("gho_", _random(36)),
    "GitHub server": ("ghs_", _random(36)),
    "GitHub fine-grained": ("github_pat_", f"{_random(22)}_{_random(59)}"),
    "GitLab": ("glpat-", _random(20)),
    "AWS": ("AKIA", _random(14, string.ascii_uppercase + string.digits).upper() + "QZ"),
    "Google": ("AIza", _random(35)),
    "Slack": ("xoxb-", f"1234567890-{_random(24)}"),
    "npm": ("npm_", _random(36)),
    "PyPI": ("pypi-", f"AgEIcHlwaS5vcmc{_random(60)}"),
    "Stripe": ("sk_live_", _random(24)),
    "JSON web token": ("eyJ", f"hbGciOiJIUzI1NiJ9.eyJ{_random(30)}.{_random(43)}"),
    "bearer": ("Authorization: Bearer ", _random(32)),
    "URL": ("https://user:", _random(16)),
    "AWS secret": ("aws_secret_access_key = ", f"{_random(20)}/{_random(19)}"),
    "variable": ("DB_PASSWORD=", "correct-horse-battery-" + _random(6)),
}
_AFTER = {"URL": "@example.org/x"}
KEYS = tuple(map(_key, ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY")))


def text_with_secrets() -> str:
    """Return lines with a secret of every form, and private keys."""
    lines = [f"{kept}{rest}{_AFTER.get(name, '')}" for name, (kept, rest) in FORMS.items()]
    return "\n".join([*(f"the {line} of the user" for line in lines), *KEYS]) + "\n"


def planted() -> Iterator[tuple[str, str]]:
    """Yield what must not be shown: the name of a form, and a secret or a line of a key."""
    yield from ((name, rest) for name, (_, rest) in FORMS.items())
    for key in KEYS:
        yield from ((key.splitlines()[0], line) for line in key.splitlines()[1:-1])
