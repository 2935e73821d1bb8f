"""Only regular files are opened, whatever an agent has put in their place."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.world.files.plain_files import NotPlainFileError, open_plain_file, read_plain_file
from support.tables import each_row


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
        server.bind(path.name)  # the whole path may be too long for it


OTHERS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": bind,
    "a folder": os.mkdir,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a folder": lambda path: path.symlink_to("/"),
}


@each_row("make", OTHERS.values(), ids=OTHERS)
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(NotPlainFileError, match="is not a file"):
        open_plain_file(path, follow=True)
    with pytest.raises(OSError, match=r"is not a file|symbolic links"):
        read_plain_file(path, 10)


def test_a_refusal_leaves_no_descriptor_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with pytest.raises(NotPlainFileError):
        open_plain_file(tmp_path / "pipe")
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert before == after


def test_a_link_is_followed_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain_file(tmp_path / "link", 100, follow=True) == b"content"
    with pytest.raises(OSError, match="symbolic links"):
        read_plain_file(tmp_path / "link", 100)


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_plain_file(tmp_path / "file", 3) == b"con"
    assert read_plain_file(tmp_path / "file", 100) == b"content"
    assert read_plain_file(tmp_path / "file", None) == b"content"


def test_a_missing_file_is_told_as_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_plain_file(tmp_path / "nothing")
