"""The record of a work tree that is gone stays for 90 days."""

import os
import time
from pathlib import Path

import pytest

from rooda.record.gone_trees import forget_gone_trees
from rooda.world.state.folder import make_state_folder
from rooda.world.state.lock import Lock
from support.states import remember, state_of

DAY = 24 * 3600


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    make_state_folder(state_of(folder))
    (state_of(folder) / "rooda.db").touch()
    remember(folder)
    return folder


def later(tree: Path, days: int) -> None:
    """Make the mark of a deleted tree this many days old."""
    then = time.time() - days * DAY
    os.utime(state_of(tree) / "gone", (then, then))


def test_record_of_a_tree_that_is_gone_is_deleted_after_90_days(tree: Path) -> None:
    assert forget_gone_trees(os.environ) == []
    tree.rmdir()
    assert forget_gone_trees(os.environ) == []
    later(tree, 89)
    assert forget_gone_trees(os.environ) == []
    later(tree, 91)
    assert forget_gone_trees(os.environ) == [str(tree)]
    assert not state_of(tree).exists()


def test_tree_that_came_back_is_gone_for_no_time(tree: Path) -> None:
    tree.rmdir()
    forget_gone_trees(os.environ)
    later(tree, 91)
    tree.mkdir()
    forget_gone_trees(os.environ)
    tree.rmdir()
    assert forget_gone_trees(os.environ) == []
    assert state_of(tree).exists()


def test_record_of_a_run_at_work_is_not_deleted(tree: Path) -> None:
    lock = Lock(tree, state=state_of(tree))
    tree.rmdir()
    forget_gone_trees(os.environ)
    later(tree, 91)
    assert forget_gone_trees(os.environ) == []
    lock.close()
    assert forget_gone_trees(os.environ) == [str(tree)]
