"""JSON from untrusted programs."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.formats import MOST_JSON_PARTS, parse_json
from support.properties import examples
from support.tables import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@examples(60)
@given(JSON)
def test_valid_json_is_parsed(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.real
@examples(60)
@given(st.text(alphabet='{}[]",:\\u0123456789eE+-.\ud800 \n') | st.text() | st.binary())
def test_parse_json_never_raises(text: str | bytes) -> None:
    parse_json(text)


@each_row(
    "text",
    [
        "",
        "no json",
        '{"a": 1',
        '{"a": 1} more',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "9" * 10_000,  # Python raises ValueError for this many digits
        "\ufeff{}",
    ],
)
def test_text_that_is_not_json_gives_none(text: str) -> None:
    assert parse_json(text) is None
    assert parse_json(text.encode()) is None


def test_invalid_utf8_in_json_is_replaced() -> None:
    assert parse_json(b'{"a": "\xff"}') == {"a": "\ufffd"}


def test_json_with_too_many_parts_is_rejected_without_using_much_memory() -> None:
    text = "[" + "{}," * MOST_JSON_PARTS + "{}]"
    tracemalloc.start()
    try:
        assert parse_json(text) is None
        assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    finally:
        tracemalloc.stop()


def test_long_json_with_few_parts_is_parsed() -> None:
    assert parse_json(json.dumps(["x" * 2 * MOST_JSON_PARTS])) == ["x" * 2 * MOST_JSON_PARTS]
