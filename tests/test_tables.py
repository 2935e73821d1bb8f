"""The helper for tables itself: a row that fails must fail the test."""

from pathlib import Path

import pytest

from support.tables import each_row


def test_every_row_that_fails_is_reported_with_its_name() -> None:
    @each_row("number,wanted", [(1, 1), (2, 3), pytest.param(4, 5, id="the last")])
    def check(number: int, wanted: int) -> None:
        assert number == wanted

    with pytest.raises(ExceptionGroup) as failed:
        check()
    notes = [error.__notes__ for error in failed.value.exceptions]
    assert notes == [["in row 1: (2, 3) of check"], ["in row the last of check"]]


def test_each_row_has_a_folder_and_patches_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROODA_TABLE", raising=False)
    seen = []

    @each_row("name", ["a", "b"])
    def check(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not [*tmp_path.iterdir()]
        (tmp_path / "left").touch()
        monkeypatch.setattr("support.tables.VALUE", name, raising=False)
        seen.append(name)

    check(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert seen == ["a", "b"]


def test_tables_of_two_decorators_are_combined() -> None:
    seen = []

    @each_row("a", [1, 2])
    @each_row("b", [3, 4])
    def check(a: int, b: int) -> None:
        seen.append((a, b))

    check()
    assert seen == [(1, 3), (1, 4), (2, 3), (2, 4)]
