"""Whatever an agent puts in place of the task file, rooda reads it or says why it can't."""

import os
from pathlib import Path

import pytest

from rooda.world.files.sight import Sight
from rooda.world.tasks.task_file import TaskFile, TaskFileError


def read(path: Path, *inside: Path) -> list[str]:
    return [task.name for task in TaskFile(path, path.name, Sight(inside)).read()]


def trouble(path: Path, *inside: Path) -> str:
    with pytest.raises(TaskFileError) as error:
        read(path, *inside)
    return str(error.value)


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "PLAN.md"
    file.write_bytes(b"- [ ] caf\xe9\n- [x] \xff\n")
    assert read(file) == ["caf\ufffd", "\ufffd"]


def test_missing_file_folder_pipe_and_huge_file_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "PLAN.md"
    assert trouble(file) == "does not exist"
    file.mkdir()
    assert trouble(file).startswith("can't be read: ")
    file.rmdir()
    os.mkfifo(file)
    assert trouble(file) == "can't be read: is not a file"
    file.unlink()
    file.write_text("- [ ] a\n" * 200_000)
    assert trouble(file) == "is larger than 1,000,000 bytes"


def test_link_may_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside.md"
    tree.mkdir()
    outside.write_text("- [x] Elsewhere\n")
    (tree / "docs.md").write_text("- [ ] Here\n")
    (tree / "PLAN.md").symlink_to("docs.md")
    assert read(tree / "PLAN.md", tree) == ["Here"]
    (tree / "PLAN.md").unlink()
    (tree / "PLAN.md").symlink_to(outside)
    assert trouble(tree / "PLAN.md", tree).startswith("is a link that leads out of the work tree")


def test_tasks_that_were_moved_are_in_a_file_beside_it(tmp_path: Path) -> None:
    file = TaskFile(tmp_path / "PLAN.md", "PLAN.md")
    assert file.read_done() == ()
    (tmp_path / "PLAN-DONE.md").write_text("- [x] Parse\n")
    assert [task.name for task in file.read_done()] == ["Parse"]
