"""The filter in front of the pager of `rooda diff`."""

from rooda.base.secrets.visible_controls import visible
from support.tables import each_row


@each_row(
    "text,shown",
    [
        ("plain\tcafé 漢字\n", "plain\tcafé 漢字\n"),
        ("\x1b[32m+\x1b[m\x1b[1;38;5;8m", "\x1b[32m+\x1b[m\x1b[1;38;5;8m"),
        ("\x1b[8mx \x1b[1;8mx \x1b[08;1mx", "^[[8mx ^[[1;8mx ^[[08;1mx"),
        ("\x1b[2J\x1b]0;t\x07\x9b31m", "^[[2J^[]0;t^G<U+009B>31m"),
        ("a\rb\x7f\x00\u202e\u2066", "a^Mb^?^@<U+202E><U+2066>"),
        ("\x1b[" + "1;" * 100_000, "^[[" + "1;" * 100_000),
    ],
)
def test_control_characters_become_visible_and_colors_stay(text: str, shown: str) -> None:
    assert visible(text) == shown
