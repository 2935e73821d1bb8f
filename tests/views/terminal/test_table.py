"""Tables on terminals of any width: which columns give way, and what stays readable."""

from rooda.base.colors import Color, Painter
from rooda.base.widths import width
from rooda.views.terminal.table import Cell, Column, named_lines, plain_table, table
from support.tables import each_row

COLUMNS = (
    Column("NO", is_right=True),
    Column("STATUS"),
    Column("TIME", 1, is_right=True),
    Column("TESTS", 2),
    Column("COMMIT", 3),
    Column("HEADLINE"),
)
WORDS = "Moved error positions into one class so that every message has a line and a column"
ROWS = [
    [Cell(text) for text in ("9", "failed", "6m12s", "9/12", "", "verify: " + WORDS)],
    [Cell(text) for text in ("10", "completed", "52m37s", "12/12", "a1b2c3d", WORDS)],
]


@each_row(
    "room,titles",
    [
        (None, "NO STATUS TIME TESTS COMMIT HEADLINE"),
        (160, "NO STATUS TIME TESTS COMMIT HEADLINE"),
        (80, "NO STATUS TIME TESTS COMMIT HEADLINE"),
        (70, "NO STATUS TIME TESTS HEADLINE"),
        (60, "NO STATUS TIME HEADLINE"),
        (50, "NO STATUS HEADLINE"),
        (30, "NO STATUS HEADLINE"),
    ],
)
def test_the_least_important_columns_give_way_first(room: int | None, titles: str) -> None:
    shown = table(COLUMNS, ROWS, room=room).splitlines()
    assert shown[0].split() == titles.split()
    if room is None:
        assert shown[1].endswith(WORDS)
    else:
        assert max(map(width, shown)) <= room
        assert all(
            word in line for word, line in zip(("failed", "completed"), shown[1:], strict=True)
        )


def test_without_a_terminal_nothing_is_cut_even_in_a_huge_text() -> None:
    words = "word " * 200_000 + "end"
    shown = table(COLUMNS, [[*ROWS[0][:-1], Cell(words)]])
    assert shown.endswith(f"{words}\n")


def test_a_column_without_any_text_is_left_out() -> None:
    assert "COMMIT" not in table(COLUMNS, ROWS[:1])


def test_columns_stay_aligned_below_wide_characters() -> None:
    columns = (Column("NAME"), Column("WORDS"))
    rows = [[Cell("日本"), Cell("one")], [Cell("abc"), Cell("two")]]
    assert table(columns, rows) == "NAME  WORDS\n日本  one\nabc   two\n"


def test_control_codes_and_line_breaks_of_an_agent_do_not_break_the_layout() -> None:
    rude = "\x1b[2Jone\ntwo\t\u202ethree\x9b31m"
    shown = table((Column("A"), Column("B")), [[Cell(rude), Cell(rude)]])
    assert shown == "A              B\none two three  one two three\n"
    assert named_lines([("Name", rude)]) == "Name  one two three\n"


def test_colors_do_not_change_the_layout() -> None:
    row = [Cell("9"), Cell("failed", Color.BAD), Cell("x" * 100)]
    columns = (Column("NO"), Column("STATUS"), Column("WORDS"))
    plain = table(columns, [row], room=40)
    colored = table(columns, [row], room=40, paint=Painter(is_on=True))
    assert f"{Color.BAD}failed\x1b[0m" in colored
    for color in (*Color, "\x1b[0m"):
        colored = colored.replace(color, "")
    assert colored == plain


def test_a_long_value_continues_below_itself_on_a_terminal() -> None:
    shown = named_lines([("Proof", "verify passed after iteration 30"), ("Time", "1m")], room=32)
    assert shown == "Proof  verify passed after\n       iteration 30\nTime   1m\n"
    narrow = named_lines([("Proof", "verify passed after iteration 30")], room=20)
    assert narrow == "Proof\n  verify passed\n  after iteration 30\n"


def test_a_plain_table_has_all_columns_and_is_cut_at_the_end() -> None:
    rows = [("a", "", "first words"), ("測試", "", "second words")]
    assert plain_table((), rows) == "a       first words\n測試    second words\n"
    titled = plain_table(("NAME", "", "WORDS"), rows, room=14).splitlines()
    assert titled == ["NAME    WORDS", "a       first…", "測試    secon…"]
    assert plain_table((), []) == ""
