"""Differences of many pairs of trees, with real repositories."""

from pathlib import Path

import pytest

from rooda.world.git.git import Git
from rooda.world.git.snapshots.patches import patches
from rooda.world.tools import Tools
from support.gitrepo import git

pytestmark = pytest.mark.real


def tree(folder: Path) -> str:
    git(folder, "add", "-A")
    return git(folder, "write-tree")


def test_each_pair_gets_the_beginning_of_its_difference(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    empty = tree(tmp_path)
    (tmp_path / "a").write_text("one\ntwo\n")
    first = tree(tmp_path)
    # A line that looks like the line with which git begins the next pair.
    (tmp_path / "a").write_text(f"one\n{first} {empty}\n" + "x" * 1_000_000 + "\n")
    (tmp_path / ".gitattributes").write_text("a diff=planted\n")
    git(tmp_path, "config", "diff.planted.textconv", f"touch {tmp_path}/ran; cat")
    git(tmp_path, "config", "diff.external", f"touch {tmp_path}/ran")
    second = tree(tmp_path)
    pairs = {1: (empty, first), 2: (first, second), 3: (second, second), 4: (first, empty)}
    found = patches(Git(tmp_path, Tools()), pairs, 8)
    assert list(found) == [1, 2, 3, 4]
    assert found[1].lines[-2:] == ("+one", "+two")
    assert not found[1].is_cut
    assert found[2].is_cut
    assert found[3].lines == ()
    assert found[4].lines[-2:] == ("-one", "-two")
    assert not (tmp_path / "ran").exists()
    whole = patches(Git(tmp_path, Tools()), {2: (first, second)}, 1000)[2]
    assert f"+{first} {empty}" in whole.lines
    assert max(map(len, whole.lines)) < 310
    assert any(line.endswith("xxx [...]") for line in whole.lines)


def test_pairs_after_a_missing_tree_have_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    empty = tree(tmp_path)
    (tmp_path / "a").write_text("one\n")
    first = tree(tmp_path)
    pairs = {1: (empty, first), 2: (first, "1" * 40), 3: (first, empty)}
    found = patches(Git(tmp_path, Tools()), pairs, 100)
    assert 2 not in found
    assert patches(Git(tmp_path / "none", Tools()), pairs, 100) == {}
    assert patches(Git(tmp_path, Tools()), {}, 100) == {}
