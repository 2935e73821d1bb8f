"""The names that a program may choose for a run."""

from rooda.record.run_names import wrong_name
from rooda.world.state.folder import is_run
from support.tables import each_row


@each_row("name", ["api", "api-2", "1.2_x", "A" * 64, "1234567", "42-fix", "a.b"])
def test_names_of_letters_digits_and_some_signs_are_good(name: str) -> None:
    assert wrong_name(name) == ""
    assert is_run(name)


@each_row(
    "name",
    ["", "last", "undo", "fleet", "42", "A" * 65, "-1", ".a", "a/b", "a..b", "a.", "a.lock", "ä"],
)
def test_other_names_are_refused_with_a_reason(name: str) -> None:
    assert wrong_name(name)
