"""The one masker of all views: values of variables, events and rows, streams."""

import base64
import json
import random
import shlex
from urllib.parse import quote

from msgspec import Struct

from rooda.base.secrets.masking import MASK_NOTHING, ByteStream, Masker, StreamMasker
from rooda.base.secrets.secret_values import forms_of
from rooda.base.secrets.token_formats import MASK
from support.planted import KEYS, planted, text_with_secrets
from support.tables import each_row

PASSWORD = 'it\'s "quoted" & p4ss/word'
ENV = {
    "DB_PASSWORD": PASSWORD,
    "ANTHROPIC_API_KEY": "sk-ant-api03-abcdefghijklmnop0123",
    "MY_SECRET": "onlylettershere",
    "DATABASE_URL": "postgres://me:pa%2Fss-of-url@host/db",
    "SSH_AUTH_SOCK": "/tmp/agent.socket",
    "MULTI_KEY": "first line of the key\nsecond line of the key",
    "HOME": "/home/of/the/user",
}


def test_values_of_secret_variables_are_masked_in_every_form_of_them() -> None:
    masker = Masker(ENV)
    for text in (
        PASSWORD,
        json.dumps({"a": PASSWORD}),
        shlex.quote(PASSWORD),
        quote(PASSWORD, safe=""),
        *(base64.b64encode(b"x" * n + PASSWORD.encode() + b"yz").decode() for n in range(4)),
        "pa/ss-of-url and pa%2Fss-of-url",
        "only one: second line of the key",
    ):
        assert MASK in masker.text(text), text
    assert masker.text(f"a {PASSWORD} b") == f"a {MASK} b"
    assert masker.text(ENV["ANTHROPIC_API_KEY"]) == f"sk-ant-...{MASK}", "its form is no secret"
    assert masker.text("/tmp/agent.socket in /home/of/the/user") == (
        "/tmp/agent.socket in /home/of/the/user"
    )


@each_row(
    "value",
    ["1", "true", "none", "test", "12345678", "password", "Disabled", "xxxxxxxxxx", "", " "],
)
def test_short_and_common_values_mask_nothing(value: str) -> None:
    text = f"true or none: the test 1 of 12345678, Disabled password xxxxxxxxxx {value}"
    assert Masker({"A_PASSWORD": value, "B_TOKEN": value}).text(text) == text


def test_value_of_letters_is_masked_as_a_whole_word_only() -> None:
    masker = Masker(ENV)
    assert masker.text("onlylettershere, onlylettersheretoo") == f"{MASK}, onlylettersheretoo"


def test_secret_with_control_codes_in_it_is_masked() -> None:
    masker = Masker(ENV)
    hidden = "\x1b[1mp4ss\x1b[0m"
    text = f"\x1b[32mgreen\x1b[m {PASSWORD.replace('p4ss', hidden)}"
    assert masker.text(text) == f"green {MASK}"
    assert masker.text("\x1b[32mgreen\x1b[m") == "\x1b[32mgreen\x1b[m"


class Inner(Struct, frozen=True):
    text: str
    number: int = 3


class Row(Struct, frozen=True):
    run: str
    inner: Inner
    several: tuple[str, ...] = ()
    named: dict[str, list[str]] = {}


def test_every_text_of_a_row_is_masked_but_not_what_identifies_it() -> None:
    secret = ENV["ANTHROPIC_API_KEY"]
    row = Row(secret, Inner(f"a {secret}"), ("b", secret), {"c": [secret, "d"]})
    shown = f"sk-ant-...{MASK}"
    masked = Row(secret, Inner(f"a {shown}"), ("b", shown), {"c": [shown, "d"]})
    assert Masker().tree(row) == masked
    assert MASK_NOTHING.tree(row) is row
    harmless = Inner("nothing")
    assert Masker().tree(harmless) is harmless


# -- streams ---------------------------------------------------------------------------------

TEXT = f"start {PASSWORD}\n{text_with_secrets()}--- x ---\ns\n-----\nthe end: {PASSWORD}"


def fed(stream: StreamMasker, text: str, sizes: random.Random) -> str:
    shown, at = "", 0
    while at < len(text):
        size = sizes.choice((1, 1, 2, 3, 7, 30, 200))
        shown += stream.feed(text[at : at + size])
        at += size
    return shown + stream.finish()


def test_secrets_are_masked_however_a_stream_is_cut() -> None:
    masker = Masker(ENV)
    whole = masker.text(TEXT)
    assert [name for name, one in (*planted(), ("value", PASSWORD)) if one in whole] == []
    for seed in range(60):
        assert fed(masker.stream(), TEXT, random.Random(seed)) == whole, f"seed {seed}"


@each_row(
    "text",
    [
        "a line\n",
        "........",
        "50% done",
        "waits for you",
        "Tests: 3 passed ",
        "[=====>",
        "(y/n)? ",
    ],
)
def test_stream_shows_what_begins_no_secret_at_once(text: str) -> None:
    assert Masker(ENV).stream().feed(text) == text


@each_row(
    "text,shown",
    [
        ("the key sk-an", "the key "),
        ("ghp_abc", ""),
        ("x it's \"quo", "x "),
        ("use a tok", "use a "),
    ],
)
def test_stream_holds_back_no_more_than_the_beginning_of_a_secret(text: str, shown: str) -> None:
    stream = Masker(ENV).stream()
    assert stream.feed(text) == shown
    assert stream.finish() == text.removeprefix(shown), "it was none"


def test_stream_goes_on_after_the_beginning_of_a_key_that_is_none() -> None:
    stream = Masker().stream()
    assert stream.feed("-----BEGIN PRIVATE KEY----- is how a key begins. More\n") != ""
    begun = "-----BEGIN PRIVATE KEY-----\n" + "abcd" * 20_000
    assert stream.feed(begun) != "", "no text waits without end"


def test_lines_that_come_one_by_one_show_no_line_of_a_key() -> None:
    for key in KEYS:
        lines = Masker().lines()
        shown = [lines(line) for line in ("before", *key.splitlines(), "after the key", "AAAA")]
        assert [line for line in key.splitlines()[1:-1] if line in shown] == []
        assert (shown[0], shown[-2:]) == ("before", ["after the key", "AAAA"])


def test_bytes_without_secrets_pass_as_they_are() -> None:
    data = bytes(range(256)) * 3 + "é漢".encode() + b"\xff\xfe"
    for masker in (Masker(ENV), MASK_NOTHING):
        stream = ByteStream(masker)
        shown = b"".join(stream.feed(data[at : at + 5]) for at in range(0, len(data), 5))
        assert shown + stream.finish() == data
    stream = ByteStream(Masker())
    assert stream.feed(b"\xff sk-ant-") + stream.feed(b"a" * 20 + b"1 \xfe") + stream.finish() == (
        b"\xff sk-ant-...(masked) \xfe"
    )


def test_value_is_masked_wherever_a_piece_of_the_stream_ends() -> None:
    """Also after all but its last character, in the longest form of the value, too."""
    for value in forms_of(PASSWORD):
        for size in range(1, len(value)):
            stream = Masker({"MY_PASSWORD": PASSWORD}).stream()
            shown = stream.feed(f"a {value[:size]}") + stream.feed(f"{value[size:]} b")
            shown += stream.finish()
            assert value not in shown, (value, size)
            assert MASK in shown, (value, size)
