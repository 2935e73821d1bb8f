"""How many columns of a terminal a text takes."""

import pytest

from rooda.text.columns import columns, cut


@pytest.mark.parametrize(
    "text,expected",
    [
        ("", 0),
        ("abc", 3),
        ("naïve · …", 9),
        ("漢字", 4),
        ("\uff21\uff22", 4),
        ("🚀 go", 5),
        ("e\u0301", 1),
        ("a\u200bb", 2),
        ("❤\ufe0f", 2),
    ],
)
def test_columns_of_a_text(text: str, expected: int) -> None:
    assert columns(text) == expected


@pytest.mark.parametrize(
    "text,most,expected",
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("a b c", 3, "a…"),
        ("漢字", 4, "漢字"),
        ("漢字", 3, "漢…"),
        ("漢字", 2, "…"),
        ("漢字", 1, "…"),
        ("漢字", 0, ""),
        ("漢字", -5, ""),
        ("🚀🚀🚀", 5, "🚀🚀…"),
    ],
)
def test_text_is_cut_to_the_columns(text: str, most: int, expected: str) -> None:
    assert cut(text, most) == expected
    assert columns(expected) <= max(0, most)
