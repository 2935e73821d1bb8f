"""The door to a folder whose content an agent controls."""

import contextlib
import os
import stat
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from rooda.world.files.beneath import Beneath, copy_at
from support.tables import each_row
from support.users import folder_of_ordinary_user

DEEP = 25  # folders
LONG = "x" * 200  # a name; 25 of them are longer than a path may be


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/sub/file").write_bytes(b"content")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").write_bytes(b"key")
    return tmp_path / "tree"


def names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


READS: dict[str, Callable[[Beneath, str], object]] = {
    "read": lambda door, name: door.read(name, 10),
    "status": lambda door, name: door.status(name),
    "link": lambda door, name: door.link(name),
    "list": lambda door, name: door.list(name),
    "write_new": lambda door, name: door.write_new(name, BytesIO(b"new"), 0o600),
    "make_link": lambda door, name: door.make_link(name, b"target"),
    "remove": lambda door, name: door.remove(name),
}
# Names that lead out, with what an agent has put there.
WAYS_OUT = [
    ("link/file", "link"),
    ("sub/link/file", "sub/link"),
    ("../out/file", None),
    ("sub/../../out/file", None),
    ("/etc/hostname", None),
    ("sub//file", None),
    ("./sub/file", None),
    ("sub/..", None),
    ("sub/file\0", None),
]


@each_row("name, link", WAYS_OUT)
def test_no_name_leads_out_of_the_folder(tree: Path, name: str, link: str | None) -> None:
    if link is not None:
        (tree / link).symlink_to(tree.parent / "out")
    for act in READS.values():
        with pytest.raises((OSError, ValueError)):
            act(Beneath(tree), name)
    assert (tree.parent / "out/file").read_bytes() == b"key"
    assert names(tree.parent / "out") == ["file"]


def test_link_itself_is_neither_read_nor_written_through(tree: Path) -> None:
    door = Beneath(tree)
    (tree / "link").symlink_to(tree.parent / "out/file")
    assert door.link("link") == os.fsencode(tree.parent / "out/file")
    assert stat.S_ISLNK(door.status("link").st_mode)
    with pytest.raises(OSError):  # noqa: PT011 - each system has a message of its own
        door.read("link", 10)
    with pytest.raises(FileExistsError):
        door.write_new("link", BytesIO(b"new"), 0o600)
    door.remove("link")
    assert (tree.parent / "out/file").read_bytes() == b"key"


def test_pipe_and_folder_are_refused_without_waiting(tree: Path) -> None:
    door = Beneath(tree)
    os.mkfifo(tree / "pipe")
    for name in ("pipe", "sub"):
        with pytest.raises(OSError, match="is not a file"):
            door.read(name, 10)


def test_file_is_written_and_read_with_the_folders_above_it(tree: Path) -> None:
    door = Beneath(tree)
    door.write_new("a/b/program", BytesIO(b"text"), 0o755)
    door.make_link("a/c/link", b"../b")
    assert door.read("a/b/program", None) == b"text"
    assert stat.S_IMODE(door.status("a/b/program").st_mode) == 0o755
    assert door.link("a/c/link") == b"../b"
    assert [one.name for one in door.list("a/b")] == ["program"]


def open_below(top: Path) -> int:
    """Return how many files and folders at or below a folder are open."""
    number = 0
    for name in names(Path("/proc/self/fd")):
        with contextlib.suppress(OSError):
            number += os.readlink(f"/proc/self/fd/{name}").startswith(f"{top}")  # noqa: PTH115
    return number


def make_deep(top: Path, name: str, number: int) -> None:
    """Make folders in folders, with a file in the last one."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(number):
        os.mkdir(name, dir_fd=fd)
        above, fd = fd, os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(above)
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


@each_row("name, number", [(LONG, DEEP), ("d", 2000)])
def test_walk_reaches_any_depth_with_few_open_files_and_remove_deletes_it(
    tmp_path: Path, name: str, number: int
) -> None:
    make_deep(tmp_path, name, number)
    (tmp_path / "last").mkdir()
    most, found = 0, []
    for listing in Beneath(tmp_path).walk():
        most = max(most, open_below(tmp_path))
        found += [listing.name(one.name) for one in listing.entries]
    assert "/".join([name] * number + ["end"]) in found
    assert "last" in found
    assert len(found) == number + 2
    assert most < 40
    assert open_below(tmp_path) == 0
    Beneath(tmp_path).remove(name)
    assert names(tmp_path) == ["last"]


def test_walk_follows_no_link_and_leaves_out_what_the_caller_does_not_enter(tree: Path) -> None:
    door = Beneath(tree)
    (tree / "link").symlink_to(tree.parent / "out")
    (tree / "other/in").mkdir(parents=True)
    seen = []
    for listing in door.walk():
        seen.append(listing.path)
        listing.enter[:] = [one for one in listing.enter if one != "other"]
    assert seen == ["", "sub"]


@each_row("mode", [0o000, 0o311, 0o444])
def test_closed_folder_gets_its_bits_and_is_walked_and_removed(mode: int) -> None:
    with folder_of_ordinary_user() as top:
        (top / "sub/in").mkdir(parents=True)
        (top / "sub/in/file").touch()
        for folder in ("sub/in", "sub"):
            (top / folder).chmod(mode)
        found = {listing.path: listing for listing in Beneath(top).walk()}
        assert [one.name for one in found["sub/in"].entries] == ["file"]
        assert found["sub"].closed == found["sub/in"].closed == mode
        for folder in ("sub/in", "sub"):
            (top / folder).chmod(mode)
        Beneath(top).remove("sub")
        assert names(top) == []


def test_copy_keeps_links_and_contents_and_leaves_pipes_out(tree: Path) -> None:
    (tree / "sub/link").symlink_to("/etc")
    os.mkfifo(tree / "sub/pipe")
    (tree / "sub/in").mkdir()
    (tree / "sub/in/program").write_bytes(b"text")
    with Beneath(tree).folder() as parent, Beneath(tree.parent / "out").folder() as target:
        copy_at(parent, "sub", target, "1-sub")
    copy = tree.parent / "out/1-sub"
    assert sorted(names(copy)) == ["file", "in", "link"]
    assert os.readlink(copy / "link") == "/etc"  # noqa: PTH115 - text
    assert (copy / "in/program").read_bytes() == b"text"
    assert (tree / "sub/file").exists()
