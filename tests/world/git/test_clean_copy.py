"""The copy of what a commit would contain: submodules, sparse checkouts, odd names, its removal."""

import hashlib
import os
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from rooda.world.git.clean_copy import clean_folder, copy_files, remove_copies
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools
from support.gitrepo import git, write_index


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


@pytest.mark.real
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


@pytest.mark.real
def test_files_outside_of_a_sparse_checkout_come_from_the_index(top: Path) -> None:
    for name in ("a/one", "b/two"):
        (top / name).parent.mkdir()
        (top / name).write_text(name)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "both")
    git(top, "sparse-checkout", "set", "--no-cone", "/a/")
    assert not (top / "b").exists()
    assert copied(top) == {"a/one": "a/one", "b/two": "b/two"}


@pytest.mark.real
def test_large_content_of_the_index_is_not_in_memory(top: Path) -> None:
    """An agent needs little space for it: git packs zeros."""
    size = 40 * 1024**2
    with (top / "large").open("wb") as file:
        file.truncate(size)
    (top / "small").write_text("small")
    git(top, "add", "-A")
    content = git(top, "rev-parse", ":large")
    for name in ("other", "third"):
        git(top, "update-index", "--add", "--cacheinfo", f"100644,{content},{name}")
    git(top, "update-index", "--skip-worktree", "large", "other", "third", "small")
    tools = Tools(folders=[top])
    tracemalloc.start()
    with clean_folder(top) as to:
        assert copy_files(Git(top, tools), tools, top, to) == 4
        assert [(to / name).stat().st_size for name in ("large", "other", "third")] == [size] * 3
        assert (to / "small").read_text() == "small"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < size / 2


@pytest.mark.real
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


@pytest.mark.real
def test_empty_repository_has_an_empty_copy(top: Path) -> None:
    assert copied(top) == {}


@pytest.mark.git
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


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "name",
    [
        "../../victim",
        "{outside}/victim",
        "a/../../../victim",
        "./victim",
        "a//victim",
        ".git/hooks/post-commit",
        ".GIT/config",
        "a/.Git /config",
        "git~1/config",
    ],
)
@pytest.mark.parametrize("mode", [0o100644, 0o100755, 0o120000])
def test_name_that_git_does_not_allow_is_refused_and_writes_nothing(
    top: Path, tmp_path: Path, name: str, mode: int
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("the user's")
    write_index(top, (mode, name.format(outside=tmp_path), b"the agent's"))
    with pytest.raises(GitError, match="a name that git does not allow"):
        copied(top)
    assert victim.read_text() == "the user's"


@pytest.mark.real
def test_file_is_not_written_through_a_link_of_the_copy(top: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link, file = (0o120000, "a", str(outside).encode()), (0o100644, "a/b", b"the agent's")
    write_index(top, link, file)
    with pytest.raises(OSError, match="a"):
        copied(top)
    assert not [*outside.iterdir()]


@pytest.mark.real
def test_file_behind_a_link_of_a_submodule_is_not_read(top: Path, tmp_path: Path) -> None:
    secret = tmp_path / "private"
    secret.mkdir()
    (secret / "key").write_text("KEY")
    git(top / "lib", "init", "-q")
    git(top / "lib", "commit", "-q", "--allow-empty", "-m", "lib")
    git(top, "-c", "advice.addEmbeddedRepo=false", "add", "lib")
    write_index(top / "lib", (0o100644, "keys/key", b""))
    index = (top / "lib/.git/index").read_bytes()
    (top / "lib/keys").symlink_to(secret)
    body = bytearray(index[:-20])
    body[12 + 60] &= 0x7F  # without the mark: git takes the file from the disk
    (top / "lib/.git/index").write_bytes(
        bytes(body) + hashlib.sha1(body, usedforsecurity=False).digest()
    )
    assert copied(top) == {}
