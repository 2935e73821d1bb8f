"""Addresses of services are secrets: what rooda shows of them, and which ones it refuses."""

import pytest

from rooda.base.problems import errors, problems_text
from rooda.base.secrets.masking import Masker
from rooda.base.service_addresses import secrets_of, shown_address
from rooda.plan.settings.feature_kinds import AddressList, MomentList
from rooda.plan.settings.kinds import WrongValue
from rooda.plan.settings.settings import NOTIFY_ON, NOTIFY_URLS
from support.config import read
from support.tables import each_row

SECRET = "s3cr3t-t0ken-99"


@each_row(
    "address,shown",
    [
        (f"discord://1234567890/{SECRET}", "discord://..."),
        (f"tgram://{SECRET}/chat", "tgram://..."),
        (f"ntfy://{SECRET}", "ntfy://..."),
        (f"ntfys://user:{SECRET}@ntfy.example.org/topic", "ntfys://..."),
        (f"JSON://hooks.example.org/{SECRET}", "json://hooks.example.org/..."),
        (f"jsons://user:{SECRET}@hooks.example.org:8443", "jsons://hooks.example.org:8443/..."),
        (f"jsons://user:p@{SECRET}@hooks.example.org", "jsons://hooks.example.org/..."),
        ("json://127.0.0.1:9", "json://127.0.0.1:9"),
        ("json://[::1]:9/", "json://[::1]:9"),
        (f"mailtos://user:{SECRET}@example.org?to=me", "mailtos://example.org/..."),
        (f"json://{SECRET}_x/y", "json://..."),  # no name of a server
        (f"https://discord.com/api/webhooks/1/{SECRET}", "https://..."),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str) -> None:
    assert shown_address(address) == shown
    assert SECRET not in shown_address(address)


@each_row(
    "raw",
    [
        SECRET,
        f"http:/{SECRET}",
        f"://{SECRET}",
        f"json://{SECRET} x",
        f"json://{SECRET}\x00",
        "json://" + SECRET * 200,
        {SECRET: 1},
        [{SECRET: 1}],
        [1],
        [f"json://{SECRET}"] * 21,
        [f"json://h/{SECRET}", SECRET],
    ],
)
def test_a_wrong_address_is_refused_without_being_shown(raw: object) -> None:
    with pytest.raises(WrongValue) as wrong:
        AddressList().check(raw)
    assert SECRET not in f"{wrong.value} {wrong.value.suggestion}"
    assert wrong.value.suggestion


def test_quotes_that_do_not_match_are_refused_without_the_text() -> None:
    with pytest.raises(WrongValue) as wrong:
        AddressList().from_text(f"'json://h/{SECRET}")
    assert SECRET not in str(wrong.value)


def test_a_message_about_a_config_file_names_the_place_and_the_number_of_the_address() -> None:
    _, problems = read(f"loop:\n  notify:\n    urls: [json://h/x, {SECRET}]\n    on: [endd]\n")
    text = problems_text(problems)
    assert SECRET not in text
    assert "rooda-config.yml:3: loop.notify.urls: address 2 is not the address of a service" in text
    assert "loop.notify.on: must be some of end, failure, waiting, blocked, not 'endd'" in text
    assert "Did you mean 'end'?" in text
    assert len(errors(problems)) == 2


def test_moments_are_a_list_or_one_word_and_can_be_none() -> None:
    kind = MomentList()
    assert kind.check(["end", "waiting", "end"]) == ("end", "waiting")
    assert kind.check("blocked") == ("blocked",)
    assert kind.from_text("end,failure") == ("end", "failure")
    assert NOTIFY_ON.from_text("none") == NOTIFY_ON.check([]) == ()
    assert [kind.show(()), kind.show(("end", "failure"))] == ["none", "end, failure"]
    with pytest.raises(WrongValue, match="must be a list with some of end"):
        kind.check(1)


def test_views_show_the_addresses_masked() -> None:
    urls = NOTIFY_URLS.from_text(f"ntfy://{SECRET} json://h.example/{SECRET}")
    assert NOTIFY_URLS.show(urls) == "ntfy://..., json://h.example/..."
    assert NOTIFY_URLS.plain(urls) == ["ntfy://...", "json://h.example/..."]
    assert NOTIFY_URLS.show(()) == "none"


def test_addresses_have_no_flag() -> None:
    assert NOTIFY_URLS.flag_name == ""
    assert NOTIFY_ON.flag_name == "--notify-on"


def test_a_masker_masks_addresses_and_their_tokens_but_no_words_and_no_hosts() -> None:
    url = f"json://hooks.example.org/notifications/{SECRET}?key=abcdefghijklmnopqrst"
    masker = Masker({NOTIFY_URLS.variable: f"{url} tgram://9876543210:{SECRET}x/1"})
    said = f"see {url}, token {SECRET}, abcdefghijklmnopqrst, 9876543210:{SECRET}x"
    assert SECRET not in masker.text(said)
    assert "abcdefghijkl" not in masker.text(said)
    plain = "notifications about hooks.example.org"
    assert masker.text(plain) == plain


def test_pieces_of_an_address_that_are_shown_are_no_secrets() -> None:
    found = set(secrets_of(f"json://hooks.example.org:8080/a/{SECRET}"))
    assert SECRET in found
    assert not {"json", "hooks.example.org", "8080", "a"} & found
