"""JSON from programs that rooda does not trust."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.text.formats import MOST_JSON_PARTS, parse_json
from support.config import PROPERTY

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@PROPERTY
@given(JSON)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@PROPERTY
@given(st.text(alphabet='{}[]",:\\u0123456789eE+-.\ud800 \n') | st.text() | st.binary())
def test_no_text_makes_the_parser_raise(text: str | bytes) -> None:
    parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        '{"a": 1',
        '{"a": 1} more',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "9" * 10_000,  # Python refuses to convert so many digits
        "\ufeff{}",
    ],
)
def test_text_that_is_no_json_is_none(text: str) -> None:
    assert parse_json(text) is None
    assert parse_json(text.encode()) is None


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert parse_json(b'{"a": "\xff"}') == {"a": "\ufffd"}


def test_json_with_too_many_parts_is_refused_before_it_fills_the_memory() -> None:
    text = "[" + "{}," * MOST_JSON_PARTS + "{}]"
    tracemalloc.start()
    try:
        assert parse_json(text) is None
        assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_long_text_with_few_parts_is_read() -> None:
    assert parse_json(json.dumps(["x" * 2 * MOST_JSON_PARTS])) == ["x" * 2 * MOST_JSON_PARTS]
