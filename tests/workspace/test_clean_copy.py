"""The copy of what a commit would contain: submodules, sparse checkouts, odd names, its removal."""

import os
import tempfile
from pathlib import Path

import pytest

from rooda.workspace.clean_copy import clean_folder, copy_files, remove_copies
from rooda.workspace.git import Git
from rooda.workspace.tools import Tools
from support.gitrepo import git


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    git(folder, "init", "-q")
    return folder


def copied(top: Path) -> dict[str, str]:
    """Return the files of the copy and their content, and check that the copy is deleted."""
    tools = Tools(folders=[top])
    with clean_folder(top) as to:
        number = copy_files(Git(top, tools), tools, top, to)
        files = [path for path in to.rglob("*") if not path.is_dir()]
        found = {str(path.relative_to(to)): path.read_text() for path in files}
        assert number == len(found)
    assert not to.exists()
    return found


def test_submodule_is_copied_with_its_tracked_files(top: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(other, "init", "-q")
    (other / "lib.txt").write_text("lib")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "lib")
    git(top, "submodule", "add", "-q", str(other), "lib")
    (top / "lib/lib.txt").write_text("changed")
    (top / "lib/noise").write_text("untracked")
    found = copied(top)
    assert found.pop(".gitmodules")
    assert found == {"lib/lib.txt": "changed"}


def test_files_outside_of_a_sparse_checkout_come_from_the_index(top: Path) -> None:
    for name in ("a/one", "b/two"):
        (top / name).parent.mkdir()
        (top / name).write_text(name)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "both")
    git(top, "sparse-checkout", "set", "--no-cone", "/a/")
    assert not (top / "b").exists()
    assert copied(top) == {"a/one": "a/one", "b/two": "b/two"}


def test_odd_names_and_content_are_copied_and_no_filter_runs(top: Path) -> None:
    (top / ".gitattributes").write_text("*.big filter=big\n")
    git(top, "config", "filter.big.clean", "cat > /dev/null; echo pointer")
    git(top, "config", "filter.big.smudge", "cat > /dev/null; echo filter-ran")
    names = ("new\nline.txt", "tab\there", "ünïcode", "x.big")
    for name in names:
        (top / name).write_text(f"content of {name}")
    git(top, "add", "-A")
    found = copied(top)
    assert found.pop(".gitattributes")
    assert found == {name: f"content of {name}" for name in names}


def test_empty_repository_has_an_empty_copy(top: Path) -> None:
    assert copied(top) == {}


def test_only_copies_of_the_same_work_tree_are_removed(top: Path, tmp: Path) -> None:
    other = top.parent / "other-project"
    with clean_folder(other) as kept:
        (tmp / "unrelated").mkdir()
        link = tmp / f"{kept.parent.name.rpartition('-')[0]}-link"
        link.symlink_to(top)
        left = tmp / "left"
        with clean_folder(top) as to:
            os.rename(to.parent, left)  # noqa: PTH104 - as a killed run would leave it
            name = to.parent
        left.rename(name)
        remove_copies(top)
        remove_copies(other.parent)
        assert kept.exists()
        assert not name.exists()
        assert top.exists()
        assert (tmp / "unrelated").exists()
