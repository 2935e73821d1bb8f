"""Where rooda and its warden import modules from."""

import os
import sys
from pathlib import Path

import pytest

from rooda.world.process.first_moment import without_work_tree
from rooda.world.process.warden import client


def test_only_folders_of_python_path_in_the_work_tree_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / ".git").mkdir(parents=True)
    below, environment = work / "below", work / ".venv"
    (below / ".git").mkdir(parents=True)  # an agent can make a repository in the work tree
    monkeypatch.chdir(below)
    named = ["", "src", "../lib", "../../beside", str(work), str(outside)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(named))
    path = ["", *(os.path.abspath(folder) for folder in named), str(environment)]  # noqa: PTH100
    assert without_work_tree(path) == [str(outside), str(environment)]


def test_links_and_folders_of_other_repositories_in_python_path_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, other, outside = tmp_path / "work", tmp_path / "other", tmp_path / "outside"
    for folder in (work / ".git", other / ".git", other / "lib", outside / "lib"):
        folder.mkdir(parents=True)
    (work / "lib").symlink_to(outside)  # an agent can put a link in place of a folder
    (tmp_path / "to_work").symlink_to(work)
    named = [work / "lib", work / "lib/lib", tmp_path / "to_work/lib", other, other / "lib"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, named)))
    for here in (work, tmp_path):
        monkeypatch.chdir(here)
        assert without_work_tree([*map(str, named), str(outside)]) == [str(outside)]


def test_folder_of_rooda_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(client.__file__).parents[4]
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", str(root))
    assert without_work_tree([str(root)]) == [str(root)]


def test_warden_gets_no_folder_of_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert str(tmp_path) not in client.import_path().split("\x1f")
