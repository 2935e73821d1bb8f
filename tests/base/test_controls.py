"""Control codes in untrusted output never reach the terminal, however the output is split."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rooda.base.controls import StreamCleaner, clean
from support.properties import examples
from support.tables import each_row

# Characters that must never reach a terminal: C0 except tab and newline, DEL, C1, and those that
# change the direction of text.
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDIRECTIONAL}]")

WORDS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=BIDIRECTIONAL), max_size=8
)
DIGITS = st.text("0123456789;:?<>=", max_size=6)
CSI = st.builds("{}{}{}{}".format, st.sampled_from(["\x1b[", "\x9b"]), DIGITS,
    st.text(" !\"#$%&'()*+,-./", max_size=2), st.sampled_from("@ABHJKmhlqr~"))  # fmt: skip
STRING = st.builds("{}{}{}".format,
    st.sampled_from(["\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", *"\x9d\x90\x98\x9e\x9f"]),
    WORDS, st.sampled_from(["\x07", "\x1b\\", "\x9c"]))  # fmt: skip
ESCAPE = st.sampled_from(["\x1bc", "\x1b7", "\x1b(B", "\x1b#8", "\x1b M", "\x1bN", "\x1b="])
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r", "\r\r\n", "\r\r"])
CONTROLS = st.sampled_from(
    [*(chr(n) for n in (*range(9), 11, 12, *range(14, 27), 127)), *BIDIRECTIONAL]
)
FINISHED = st.lists(WORDS | CSI | STRING | ESCAPE | LINE_ENDS | CONTROLS, max_size=12).map("".join)
# Arbitrary text, mostly broken or nearly complete sequences.
HOSTILE = st.text("\x1b[]P\\;0m \x07\r\n\t\x00\x9b\x9d\x9caé€😀", max_size=30)
CUTS = st.lists(st.integers(0, 400), max_size=12)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(place for place in cuts if place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def test_bidirectional_controls_are_removed() -> None:
    assert clean(f"a{BIDIRECTIONAL}b") == "ab"
    assert clean("שלום عالم") == "שלום عالم"


def clean_pieces(pieces: list[bytes]) -> str:
    cleaner = StreamCleaner()
    return "".join([*map(cleaner.feed, pieces), cleaner.finish()])


@given(text=FINISHED, cuts=CUTS)
@examples(200)
@example(text="\x1b[1mbold\x1b[0m", cuts=[1, 2, 3])
@example(text="\x1b]0;title\x07text", cuts=[1, 5])
@example(text="\x9b31mred", cuts=[2, 3])
@example(text="\x9d0;title\x9ctext", cuts=[2, 4])
def test_cleaning_in_pieces_equals_cleaning_the_whole_text(text: str, cuts: list[int]) -> None:
    assert clean_pieces(cut(text.encode(), cuts)) == clean(text)


@given(text=HOSTILE, cuts=CUTS)
@examples(200)
def test_broken_sequences_leave_no_control_characters(text: str, cuts: list[int]) -> None:
    assert not CONTROL.search(clean_pieces(cut(text.encode(), cuts)))
    assert not CONTROL.search(clean(text))


@given(data=st.binary(max_size=200), cuts=CUTS)
@examples()
def test_arbitrary_bytes_leave_no_control_characters(data: bytes, cuts: list[int]) -> None:
    assert not CONTROL.search(clean_pieces(cut(data, cuts)))


@given(text=st.lists(WORDS | st.sampled_from(["\n", "\t"])).map("".join), cuts=CUTS)
@examples()
def test_readable_text_is_unchanged(text: str, cuts: list[int]) -> None:
    assert clean_pieces(cut(text.encode(), cuts)) == text


@each_row(
    "raw,shown",
    [
        ("plain", "plain"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone?", "gone?"),
        ("\x1b[?1049halternate", "alternate"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJmIH4=\x07clipboard", "clipboard"),
        ("\x1bPq#0;2;0;0;0\x1b\\picture", "picture"),
        ("\x9b31mred", "red"),
        ("\x1bcreset", "reset"),
        ("\x1b(Bcharset", "charset"),
        ("bell\x07, backspace\x08, null\x00, delete\x7f", "bell, backspace, null, delete"),
        ("10%\r20%\r30%\r\ndone", "10%\n20%\n30%\ndone"),
        ("\x1b", ""),
        ("\x1b\x1b[31m[2J", "[2J"),
    ],
)
def test_sequences_are_removed_and_text_is_kept(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@each_row(
    "raw,shown",
    [
        (b"caf\xc3\xa9", "café"),
        (b"bad \xff byte", "bad \ufffd byte"),
        (b"\x9b31mraw", "\ufffd31mraw"),
        (b"half \xe2\x82", "half \ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    ],
)
def test_invalid_utf8_becomes_replacement_characters(raw: bytes, shown: str) -> None:
    assert clean_pieces([raw]) == shown
    assert clean_pieces([raw[n : n + 1] for n in range(len(raw))]) == shown


def test_only_an_unfinished_sequence_is_held_back() -> None:
    cleaner = StreamCleaner()
    assert cleaner.feed(b"a prompt without a line end> ") == "a prompt without a line end> "
    assert cleaner.feed(b"red: \x1b[3") == "red: "
    assert cleaner.feed(b"1mcrimson") == "crimson"


def test_unterminated_sequence_holds_back_a_bounded_amount() -> None:
    cleaner = StreamCleaner()
    shown = cleaner.feed(b"\x1b]0;" + b"x" * 100)
    shown += "".join(cleaner.feed(b"y" * 1000) for _ in range(100))
    assert shown.count("y") > 90_000
    assert not CONTROL.search(shown)


@pytest.mark.long
@each_row("piece", [4096, 262_144])
@each_row(
    "unit",
    ["\x1b", "\x1b[", "\x1b]", "\x1b]\x1b", "\x1bP0", "\x1b[0;", "0;", "\r", "\r\r\r\rx", "\x9d",
     "\x9b0", "\x90\x1b", "\x07", "\x1b ", "é"],
    ids=ascii,
)  # fmt: skip
def test_hostile_megabyte_is_cleaned_in_linear_time(unit: str, piece: int) -> None:
    data = (unit * 1_000_000)[:1_000_000].encode()
    shown = clean_pieces([data[at : at + piece] for at in range(0, len(data), piece)])
    assert not CONTROL.search(shown)
