"""Where rooda and its warden import modules from."""

import os
import sys
from pathlib import Path

import pytest

from rooda.process.first_moment import without_work_tree
from rooda.process.warden import client


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


def test_folder_of_rooda_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(client.__file__).parents[3]
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
