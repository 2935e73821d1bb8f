"""Glob patterns for names have the same meaning in git and Python."""

from fnmatch import fnmatchcase

from rooda.base.paths import PathPatterns, glob_of_name, glob_of_series
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


# Which paths the patterns of `protect.paths` match.


@each_row(
    "pattern,yes,no",
    [
        ("conftest.py", ["conftest.py", "tests/conftest.py"], ["conftest.pyc", "a/conftest"]),
        ("tests", ["tests/a.py", "pkg/tests/a.py", "tests"], ["mytests/a.py", "tests.py"]),
        ("tests/", ["tests/a.py", "pkg/tests/x/a.py"], ["tests2/a.py"]),
        ("/tests/", ["tests/a.py", "tests/deep/a.py"], ["pkg/tests/a.py"]),
        ("./a/b.py", ["a/b.py"], ["x/a/b.py"]),
        ("*.snap", ["a.snap", "x/y/a.snap"], ["a.snap.bak"]),
        ("tests/*.py", ["tests/a.py"], ["tests/x/a.py", "x/tests/a.py"]),
        ("tests/**/*.py", ["tests/a.py", "tests/x/y/a.py"], ["tests/a.txt"]),
        ("tests/**", ["tests/a", "tests/x/y"], ["test"]),
        ("**/golden/*", ["golden/a", "x/golden/a/deep"], ["golden"]),
        ("data/?.csv", ["data/1.csv"], ["data/12.csv", "data//.csv"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_pattern_matches_names_paths_and_whole_folders(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    found = PathPatterns([pattern])
    assert [name for name in yes if not found.match(name)] == []
    assert [name for name in no if found.match(name)] == []
    # A walk that looks only into promising folders reaches every match.
    folders = {name[:at] for name in yes for at, sign in enumerate(name) if sign == "/"}
    assert all(found.may_match_below(folder) for folder in folders)


def test_walk_skips_folders_in_which_nothing_can_match() -> None:
    found = PathPatterns(["src/gen/*.py", "/docs/"])
    assert found.may_match_below("src")
    assert not found.may_match_below("src/other")
    assert not PathPatterns(["src/gen/*.py"]).may_match_below("node_modules")
