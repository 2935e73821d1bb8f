"""When rooda prints colors, and what a colored text looks like."""

import click

from rooda.base.colors import Color, Painter, wants_color
from support.tables import each_row


@each_row(
    "choice, environ, is_terminal, wanted",
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    choice: str, environ: dict[str, str], *, is_terminal: bool, wanted: bool
) -> None:
    assert wants_color(choice, environ, is_terminal=is_terminal) is wanted


def test_every_line_of_a_colored_text_ends_its_color() -> None:
    painted = Painter(is_on=True)(Color.GOOD, "one\n\ntwo")
    assert painted == "\x1b[32mone\x1b[0m\n\n\x1b[32mtwo\x1b[0m"
    assert click.unstyle(painted) == "one\n\ntwo"
    assert Painter()(Color.GOOD, "one") == "one"
