"""Glob patterns for names have the same meaning in git and Python."""

from fnmatch import fnmatchcase

from rooda.base.paths import glob_of_name, glob_of_series
from support.tables import each_row

NAMES = ["run.log", "a/b c.log", "what?.log", "all*", "[x].log", "x[0-9].log"]


@each_row("name", NAMES)
def test_glob_of_name_matches_only_this_name(name: str) -> None:
    assert fnmatchcase(name, glob_of_name(name))
    others = [other for other in NAMES if other != name]
    assert not any(fnmatchcase(other, glob_of_name(name)) for other in others)


def test_glob_of_series_matches_logs_of_other_times_in_the_same_folder() -> None:
    pattern = glob_of_series("logs 2026/session-20261115-231500.log")
    assert fnmatchcase("logs 2026/session-19991231-000000.log", pattern)
    assert not fnmatchcase("logs 1999/session-20261115-231500.log", pattern), "another folder"
    assert not fnmatchcase("logs 2026/session-20261115-2315000.log", pattern)
    assert not fnmatchcase("logs 2026/notes-20261115-231500.log", pattern)
