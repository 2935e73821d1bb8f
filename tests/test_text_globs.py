"""Patterns for names: git and Python read them alike."""

from fnmatch import fnmatchcase

import pytest

from rooda.text.globs import alike, exactly

NAMES = ["run.log", "a/b c.log", "what?.log", "all*", "[x].log", "x[0-9].log"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_exactly_itself(name: str) -> None:
    assert fnmatchcase(name, exactly(name))
    others = [other for other in NAMES if other != name]
    assert not any(fnmatchcase(other, exactly(name)) for other in others)


def test_logs_of_other_times_are_alike() -> None:
    pattern = alike("logs 2026/session-20261115-231500.log")
    assert fnmatchcase("logs 2026/session-19991231-000000.log", pattern)
    assert not fnmatchcase("logs 1999/session-20261115-231500.log", pattern), "another folder"
    assert not fnmatchcase("logs 2026/session-20261115-2315000.log", pattern)
    assert not fnmatchcase("logs 2026/notes-20261115-231500.log", pattern)
