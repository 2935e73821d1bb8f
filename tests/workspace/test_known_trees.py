"""The list of work trees that have a record."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from rooda.record.store import Store
from rooda.workspace.known_trees import known_trees, remember_tree
from rooda.workspace.state_home import tree_key


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def _tree(folder: Path) -> Path:
    folder.mkdir()
    store = Store(folder, print)
    store.close()
    return folder


def test_a_tree_that_is_remembered_is_known(tmp_path: Path, environ: Mapping[str, str]) -> None:
    assert known_trees(environ) == []
    one, other = _tree(tmp_path / "one"), _tree(tmp_path / "other \udcff\n")
    for tree in (one, other, one):
        remember_tree(tree, environ)
    assert sorted(known_trees(environ)) == sorted([one, other])


def test_the_list_is_private(tmp_path: Path, environ: Mapping[str, str]) -> None:
    remember_tree(_tree(tmp_path / "one"), environ)
    folder = tmp_path / "state/rooda/trees"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()] == [0o600]


def test_entries_of_deleted_folders_are_removed(tmp_path: Path, environ: Mapping[str, str]) -> None:
    one, other = _tree(tmp_path / "one"), _tree(tmp_path / "other")
    remember_tree(one, environ)
    remember_tree(other, environ)
    other.rename(tmp_path / "moved")
    assert known_trees(environ) == [one]
    assert [entry.name for entry in (tmp_path / "state/rooda/trees").iterdir()] == [tree_key(one)]


def test_files_that_are_no_entries_are_not_believed(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    tree = _tree(tmp_path / "one")
    remember_tree(tree, environ)
    folder = tmp_path / "state/rooda/trees"
    (folder / "another-name").write_bytes(os.fsencode(tree))
    (folder / ("0" * 16)).write_bytes(b"relative\0path")
    (folder / ("1" * 16)).symlink_to(folder / tree_key(tree))
    os.mkfifo(folder / ("2" * 16))
    assert known_trees(environ) == [tree]


@pytest.mark.parametrize("environ", [{}, {"HOME": "relative"}, {"HOME": "/dev/null"}])
def test_a_list_that_cannot_be_kept_is_no_error(tmp_path: Path, environ: dict[str, str]) -> None:
    remember_tree(_tree(tmp_path / "one"), environ)
    assert known_trees(environ) == []
