"""What a text log shows of rooda's own work."""

from rooda.loop.events.work import VerifyEnded
from support.tables import each_row


@each_row(
    "output,shown",
    [
        ("one\ntwo\n", ["one", "two"]),
        ("x" * 300 + "\n" + "y" * 300 + "\nend\n", ["y" * 300, "end"]),
        ("x" * 700, ["x" * 500]),
        ("x" * 700 + "\n", ["x" * 499]),
        ("a" * 600 + "\n" + "b" * 499 + "\n", ["b" * 499]),
    ],
    ids=["short", "cut in a line", "one line", "one line that ends", "cut at a line"],
)
def test_the_end_of_an_output_begins_with_a_whole_line(output: str, shown: list[str]) -> None:
    text = VerifyEnded(1, "make test", 1, "exit code 1", 0.1, output).as_text() or ""
    assert text.splitlines()[1:] == ["  Last output:", *(f"    | {line}" for line in shown)]


def test_a_time_limit_is_named_once() -> None:
    text = VerifyEnded(1, "make test", None, "timed out after 2s", 2.0, "").as_text() or ""
    assert text.splitlines()[0] == "WARN: Verify failed: timed out after 2s (make test)"
