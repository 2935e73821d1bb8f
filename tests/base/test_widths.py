"""The columns of a terminal that a text takes."""

from rooda.base.widths import cut, width, wrapped
from support.tables import each_row


@each_row(
    "text,columns",
    [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("a\u200bb", 2), ("🎉", 2), ("❤\ufe0f", 2)],
)
def test_wide_characters_take_two_columns_and_marks_none(text: str, columns: int) -> None:
    assert width(text) == columns


@each_row(
    "text,columns,shown",
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("ab cd", 4, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("日本語", 2, "…"),
        ("日本語", -5, ""),
        ("🚀🚀🚀", 5, "🚀🚀…"),
    ],
)
def test_a_text_is_cut_to_columns_and_not_to_characters(
    text: str, columns: int, shown: str
) -> None:
    assert cut(text, columns) == shown
    assert width(shown) <= max(0, columns)


def test_a_text_is_wrapped_and_no_character_is_lost() -> None:
    text = "verify passed after iteration 30: " + "x" * 50 + " 日本語日本語日本語 end"
    lines = list(wrapped(text, 20))
    assert max(map(width, lines)) <= 20
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert list(wrapped("", 20)) == [""]
    assert list(wrapped("日本", 1)) == ["日", "本"]


def test_a_huge_text_is_cut_and_wrapped() -> None:
    assert width(cut("日" * 1_000_000, 40)) == 39
    assert len(list(wrapped("x" * 1_000_000, 50))) == 20_000
