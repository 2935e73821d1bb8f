"""Names and ways to a branch."""

from pathlib import Path

import pytest

from rooda.world.git.branches import Branches, is_branch_name
from rooda.world.git.git import Git
from rooda.world.tools import Tools
from support.gitrepo import repository


@pytest.mark.real
def test_names_that_git_would_refuse_or_read_as_something_else_are_no_branches(
    tmp_path: Path,
) -> None:
    repo = repository(tmp_path / "work")
    repo.git("commit", "-q", "--allow-empty", "-m", "one")
    repo.git("switch", "-q", "-c", "other")
    git = Git(repo.path, Tools())
    for name in (
        "two words",
        "-x",
        "--help",
        "@{-1}",
        "@",
        "HEAD",
        "a..b",
        "end.lock",
        "a\nb",
        "/",
    ):
        assert not is_branch_name(git, name), name
    for name in ("night", "night/1", "größer", "a-b_c.d", "@x"):
        assert is_branch_name(git, name), name


def test_branch_is_found_here_then_at_a_remote_and_else_created() -> None:
    branches = Branches("main", {"main": "/work", "a/b": ""}, frozenset({"theirs"}))
    assert branches.way_to("a/b") == ("--no-guess", "a/b")
    assert branches.way_to("theirs") == ("--guess", "theirs")
    assert branches.way_to("new") == ("--no-track", "-c", "new")
    assert [branches.rival(name) for name in ("a", "a/b/c", "a/c", "main")] == [
        "a/b",
        "a/b",
        "",
        "",
    ]
    assert branches.used_elsewhere("main", Path("/work")) == ""
    assert branches.used_elsewhere("main", Path("/other")) == "/work"
