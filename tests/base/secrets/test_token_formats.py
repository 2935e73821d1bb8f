"""Tokens that are known by their form, or by a name before them."""

import time

import pytest

from rooda.base.secrets.token_formats import MASK, open_end, without_named_values, without_tokens
from support.planted import FORMS, KEYS
from support.tables import each_row

_SECONDS = 10.0  # for a megabyte on a busy machine; a quadratic pattern takes hours


def masked(text: str) -> str:
    return without_named_values(without_tokens(text))


@each_row("name", FORMS)
@each_row(
    "around",
    ["{}", "before {} after", '{{"key": "{}"}}', "a\\n{}\\n", "\x1b[32m{}\x1b[m", "x={},", "`{}`"],
)
def test_each_form_is_masked_wherever_it_stands(name: str, around: str) -> None:
    kept, secret = FORMS[name]
    end = "@host" if name == "URL" else ""
    shown = masked(around.format(f"{kept}{secret}{end}"))
    assert secret not in shown
    assert kept.rstrip() in shown, "the beginning tells what it was"
    assert MASK in shown
    assert masked(shown) == shown, "a masked text stays as it is"


@each_row("key", KEYS)
@each_row("form", ["plain", "json", "diff", "removed", "quoted", "cut", "colored", "indented"])
def test_no_line_of_a_private_key_is_left(key: str, form: str) -> None:
    lines = key.splitlines()
    text = {
        "plain": key,
        "json": '{"key": "' + key.replace("\n", "\\n") + '", "other": 1}',
        "diff": "\n".join(f"+{line}" for line in lines),
        "removed": "\n".join(f"-{line}" for line in lines),
        "quoted": "\n".join(f'    "{line}\\n"' for line in lines),
        "cut": "\n".join(lines[:-1]),
        "colored": "\n".join(f"\x1b[32m+{line}\x1b[m" for line in lines),
        "indented": "\n".join(f"    | {line}" for line in lines),
    }[form]
    shown = masked(f"before\n{text}\nafter.\n")
    assert [line for line in lines[1:-1] if line in shown] == []
    assert shown.startswith("before\n")
    assert shown.endswith("after.\n") or form == "cut"
    assert masked(shown) == shown


@each_row(
    "text",
    [
        "sk-learn and task-abcdefghijklmnopqrstuvwxyz, sk-learn-contrib-something-long",
        "sorted(items, key=len), token = next_token(tokens)",
        "password = get_password()  # nothing else",
        'if text.startswith("-----BEGIN RSA PRIVATE KEY-----"):',
        "API_KEY=$(cat key) TOKEN=${TOKEN} SECRET=<your secret>",
        "max_tokens: 100000, token_count=12345678901234567890",
        "https://example.org:8080/a/b?c=d@e, git@github.com:a/b.git, ssh://git@host/x",
        "Bearer authentication; Basic authentication; the AKIA prefix; eyJ",
        "commit 0be49990be49990be49990be49990be49990be49",
        "",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert masked(text) == text


@pytest.mark.long
@each_row(
    "piece",
    [
        *(
            "eyJ",
            "eyJa-",
            "eyJaaaaaaaaaaa.",
            "sk-",
            "sk-a ",
            "sk-ant-",
            "token=",
            "token",
            "secret",
        ),
        *(
            "://",
            "://a:",
            "://a:b@",
            "-",
            "A",
            ":",
            "Bearer ",
            "PASSWORD='",
            "token\"'\\",
            "=",
            "é",
        ),
        *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----a-", "A1 "),
        *("\x1b[32m", "\\n", "%3D", "a-", "ghp_", "AKIA", "a" * 4000 + "\n", "İtoken="),
    ],
)
def test_hostile_text_takes_no_longer_than_its_length_asks_for(piece: str) -> None:
    text = piece * (1_000_000 // len(piece)) + " end"
    began = time.monotonic()
    masked(text)
    open_end(text)
    open_end(f"-----BEGIN PRIVATE KEY-----\n{text[:15_000]}!")
    assert time.monotonic() - began < _SECONDS
