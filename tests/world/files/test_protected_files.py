"""Protected files come back, whatever an agent put in their place; nothing outside is touched."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.base.paths import PathPatterns
from rooda.world.files.protected_files import CannotProtect, ProtectedFiles, matching_files
from rooda.world.files.put_back import Aside
from support.faults import powerless

ODD = os.fsdecode(b"a\xff\n*.txt")
NAMES = ["top", "dir/one", "dir/deep/two", f"dir/{ODD}", "link"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with files, beside a folder that is none of the agent's business."""
    top = tmp_path / "work"
    (top / "dir/deep").mkdir(parents=True)
    for name in NAMES[:-1]:
        (top / name).write_text(f"content of {name!a}\n")
    (top / "link").symlink_to("dir/one")
    (top / "dir/one").chmod(0o750)
    (top / "dir/deep/two").chmod(0o400)
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("one", "deep/two"):
        (outside / name).write_text("not yours\n")
    return top


def aside(tree: Path) -> Aside:
    folder = tree.parent / "aside"

    def make() -> str:
        folder.mkdir(exist_ok=True)
        return str(folder)

    return Aside(make)


def protected(tree: Path) -> ProtectedFiles:
    return ProtectedFiles(tree, matching_files(tree, PathPatterns(["**"])))


def state(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the mode and the content or target of each file below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else path.read_text(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def remove(tree: Path) -> None:
    for one in tree.iterdir():
        shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()


def swap(tree: Path, name: str, make: Callable[[Path], object]) -> None:
    path = tree / name
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    make(path)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


ATTACKS: dict[str, Callable[[Path], object]] = {
    "other content": lambda tree: (tree / "top").write_text("evil"),
    "same size": lambda tree: (tree / "top").write_bytes(b"x" * (tree / "top").stat().st_size),
    "a hole of 100 GB": lambda tree: os.truncate(tree / "top", 100 * 1024**3),
    "mode": lambda tree: (tree / "dir/one").chmod(0o4777),
    "all gone": remove,
    "odd name": lambda tree: (tree / "dir" / ODD).unlink(),
    "pipe": lambda tree: swap(tree, "top", os.mkfifo),
    "socket": lambda tree: swap(tree, "top", bind),
    "link to a device": lambda tree: swap(tree, "top", lambda path: path.symlink_to("/dev/zero")),
    "folder with files": lambda tree: swap(
        tree, "dir/deep/two", lambda path: (path / "x").mkdir(parents=True)
    ),
    "folder linked outside": lambda tree: swap(
        tree, "dir", lambda path: path.symlink_to(tree.parent / "outside")
    ),
    "deep folder linked outside": lambda tree: swap(
        tree, "dir/deep", lambda path: path.symlink_to(tree.parent / "outside/deep")
    ),
    "folder is a file": lambda tree: swap(tree, "dir", lambda path: path.write_text("x")),
    "link is a file": lambda tree: swap(tree, "link", lambda path: path.write_text("x")),
    "link leads elsewhere": lambda tree: swap(tree, "link", lambda path: path.symlink_to("top")),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_file_comes_back_and_nothing_outside_changes(
    tree: Path, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    guarded, before = protected(tree), state(tree)
    outside = state(tree.parent / "outside")
    assert guarded.changed() == {}
    ATTACKS[attack](tree)
    changed = guarded.changed()
    assert changed
    assert guarded.put_back(changed, aside(tree)) == {}
    assert guarded.changed() == {}
    assert state(tree) == before
    assert state(tree.parent / "outside") == outside


def test_what_was_in_the_way_is_kept_beside_the_record(tree: Path) -> None:
    guarded = protected(tree)
    (tree / "top").write_text("work of the agent")
    guarded.put_back(guarded.changed(), aside(tree))
    assert [one.read_text() for one in (tree.parent / "aside").iterdir()] == ["work of the agent"]


def test_files_come_back_where_nothing_can_be_kept(tree: Path) -> None:
    def refuse() -> str:
        raise OSError("no folder")

    guarded, before = protected(tree), state(tree)
    swap(tree, "top", lambda path: (path / "x").mkdir(parents=True))
    swap(tree, "dir", lambda path: path.write_text("x"))
    assert guarded.put_back(guarded.changed(), Aside(refuse)) == {}
    assert state(tree) == before


CLOSED = """
import os, sys
from pathlib import Path
from rooda.world.files.protected_files import ProtectedFiles
from rooda.world.files.put_back import Aside
top = Path(sys.argv[1])
guarded = ProtectedFiles(top, ["dir/one", "dir/deep/two"])
(top / "dir/one").write_text("evil")
(top / "dir/deep").chmod(0)
(top / "dir").chmod(0o500)
found = guarded.changed()
print(found)
print(guarded.put_back(found, Aside(lambda: sys.argv[2])), guarded.changed())
print(oct((top / "dir").stat().st_mode), oct((top / "dir/deep").stat().st_mode))
"""


@pytest.mark.real
def test_folders_that_the_agent_closed_are_open_again(tree: Path, tmp_path: Path) -> None:
    """Also for a user for whom the modes of files count."""
    (tmp_path / "kept").mkdir()
    done = subprocess.run(
        [*powerless(), sys.executable, "-c", CLOSED, str(tree), str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == "{'dir/one': 'changed', 'dir/deep/two': 'out of reach: Permission denied'}"
    assert second == "{} {}"
    assert third == "0o40755 0o40755"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_and_new_folders_belong_to_their_owner_again(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        os.chown(path, 12345, 12346, follow_symlinks=False)
    guarded = protected(tree)
    remove(tree)
    assert guarded.put_back(guarded.changed(), aside(tree)) == {}
    found = {(one.lstat().st_uid, one.lstat().st_gid) for one in tree.rglob("*")}
    assert found == {(12345, 12346)}


def test_file_that_cannot_come_back_is_named_with_the_reason(tree: Path) -> None:
    guarded = protected(tree)
    shutil.rmtree(tree)
    failed = guarded.put_back(["top"], aside(tree))
    assert failed == {"top": "No such file or directory"}


def test_change_of_the_user_between_iterations_counts(tree: Path) -> None:
    guarded = protected(tree)
    (tree / "top").write_text("by the user")
    (tree / "dir/one").unlink()
    assert guarded.refresh() == []
    assert guarded.changed() == {}
    (tree / "dir/one").write_text("a new file")
    (tree / "top").write_text("by the agent")
    assert guarded.changed() == {"top": "changed"}


def test_change_that_the_agent_left_never_becomes_the_users(tree: Path) -> None:
    guarded = protected(tree)
    (tree / "top").write_text("by the agent")
    guarded.leave(guarded.changed())
    assert guarded.refresh() == []
    assert guarded.changed() == {"top": "changed"}
    (tree / "top").write_text("by the user after that")
    guarded.refresh()
    assert guarded.changed() == {}


def test_too_much_or_unreadable_is_refused_and_growth_is_reported(tree: Path) -> None:
    names = [*matching_files(tree, PathPatterns(["**"]))]
    with pytest.raises(CannotProtect, match="the files have more than 10 B in all"):
        ProtectedFiles(tree, names, most=10)
    guarded = ProtectedFiles(tree, ["top"], most=100)
    (tree / "top").write_text("x" * 101)
    assert guarded.refresh() == ["top"]
    assert guarded.changed() == {}


def test_walk_finds_files_and_links_but_no_repository_and_no_record(tree: Path) -> None:
    for name in (".git/config", ".rooda/rooda.db", "dir/.git/config"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("x")
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "pipe")
    assert {*matching_files(tree, PathPatterns(["**"]))} == {*NAMES, "loop"}
    assert [*matching_files(tree, PathPatterns(["/dir/deep"]))] == ["dir/deep/two"]
