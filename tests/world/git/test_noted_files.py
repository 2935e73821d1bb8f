"""The paths that stand for the user's untracked files, and the list that a resumed run reads."""

import os
from pathlib import Path

import pytest

from rooda.world.git.git import Git
from rooda.world.git.noted_files import NotedFiles, covering
from rooda.world.tools import Tools
from support.gitrepo import repository
from support.tables import each_row


@each_row(
    "names,others,paths",
    [
        (["a"], ["b"], ["a"]),
        (["d/a", "d/b", "d/e/c"], ["x"], ["d"]),
        (["d/a", "d/e/b", "d/e/c"], ["d/x"], ["d/a", "d/e"]),
        (["d/a", "d/e/b"], ["d/e/x"], ["d/a", "d/e/b"]),
        (["nested/", "d/nested/"], ["d/x"], ["nested", "d/nested"]),
        ([], ["a"], []),
    ],
)
def test_folder_stands_for_its_files_unless_it_contains_others(
    names: list[str], others: list[str], paths: list[str]
) -> None:
    assert covering(names, others) == paths


@pytest.mark.real
def test_list_survives_being_saved_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    repo = repository(tmp_path / "work")
    odd = os.fsdecode(b"\xff\n")
    repo.write(odd, "mine")
    repo.write("mine", "mine")
    found = NotedFiles.find(repo.path, Git(repo.path, Tools()), lambda: False)
    again = NotedFiles.restored(repo.path, found.saved())
    repo.write("mine", "other")
    (repo.path / odd).touch()
    for one in (found, again):
        assert list(one.unchanged([odd, "mine", "unknown"])) == [odd]
    for damaged in (b"x\0", b"zz zz\0name\0"):
        with pytest.raises(ValueError, match=r"zip|literal"):
            NotedFiles.restored(Path(), damaged)
