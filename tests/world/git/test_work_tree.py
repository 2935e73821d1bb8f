"""`leads_out`, and `changed_within`: the last scan before rooda stops an idle agent."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.world.git.work_tree import changed_within, leads_out, work_tree
from support.children import until
from support.states import state_of
from support.tables import each_row

# -- what counts as a change ---------------------------------------------------------------

LONG_AGO = time.time() - 10_000


def filled(folder: Path) -> Path:
    """Return a work tree with a few files."""
    folder.mkdir()
    (folder / "notes").touch()
    (folder / "src").mkdir()
    (folder / "src" / "main.c").touch()
    return folder


def at_rest(folder: Path) -> Path:
    """Return the folder once nothing in it has changed for a moment."""
    until(lambda: changed_within(folder, 0.1) is None, "a tree at rest")
    return folder


def is_seen(top: Path, change: Callable[[Path], object], patch: pytest.MonkeyPatch) -> bool:
    """Whether a scan finds the change; its window is too short for older changes."""
    at_rest(top)
    before = time.time()
    change(top)
    moment = time.time()
    with patch.context() as patched:
        patched.setattr(time, "time", lambda: moment)
        return changed_within(top, moment - before + 0.05) is not None


@each_row(
    "change",
    [
        lambda top: (top / "src" / "main.c").write_text("x"),
        lambda top: (top / "new").touch(),
        lambda top: (top / "src" / "new").touch(),
        lambda top: (top / "src" / "main.c").chmod(0o600),
        lambda top: (top / "src" / "main.c").rename(top / "main.c"),
        lambda top: os.utime(top / "src" / "main.c", (LONG_AGO, LONG_AGO)),
        lambda top: (top / "src" / "main.c").unlink(),
        lambda top: (top / "notes").unlink(),
    ],
    ids=[
        "written",
        "new",
        "new below",
        "mode",
        "moved",
        "unpacked with its old time",
        "deleted",
        "deleted at the top",
    ],
)
def test_each_change_of_a_work_tree_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    assert is_seen(filled(tmp_path / "work"), change, monkeypatch)


@each_row(
    "change",
    [
        Path.stat,
        lambda top: (top / "src" / "main.c").read_text(),
        lambda top: (state_of(top) / "runs" / "1" / "stdout.log").write_text("x"),
        lambda top: (state_of(top) / "run.json").touch(),
    ],
    ids=["nothing", "read", "rooda's transcript", "rooda's run.json"],
)
def test_reads_and_writes_of_rooda_are_not_seen_as_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    top = filled(tmp_path / "work")
    (state_of(top) / "runs" / "1").mkdir(parents=True)
    assert not is_seen(top, change, monkeypatch)


def test_file_with_a_time_in_the_future_is_no_change(tmp_path: Path) -> None:
    """The clock was set back, or an archive comes from a machine with a wrong clock."""
    top = filled(tmp_path / "work")
    future = time.time() + 10_000
    os.utime(top / "src" / "main.c", (future, future))
    until(lambda: changed_within(top, 0.05) is None, "a tree at rest", timeout=3)


def test_scan_without_time_counts_as_a_change(tmp_path: Path) -> None:
    top = at_rest(filled(tmp_path / "work"))
    assert changed_within(top, 0.001, lambda: True) == 0.0, "so the agent is not stopped"


# -- what a link leads out of the work tree ------------------------------------------------


@each_row(
    "path,expected",
    [
        ("..", False),
        ("../x", False),
        ("src/../..", False),
        ("src/..", False),
        ("../tree", False),
        ("../tree/..", False),
        ("../../..", False),
        ("away", True),
        ("away/x", True),
        ("away/..", True),
        ("src/../away", True),
        ("../tree/away", True),
        ("back", False),
    ],
)
def test_only_a_link_leads_out(tmp_path: Path, path: str, expected: bool) -> None:  # noqa: FBT001
    top = filled(tmp_path / "tree")
    (tmp_path / "elsewhere").mkdir()
    (top / "away").symlink_to(tmp_path / "elsewhere")
    (top / "back").symlink_to("src")
    assert leads_out(top / path, top) is expected


def test_link_to_itself_is_a_folder_without_a_work_tree(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert work_tree(tmp_path / "loop") == tmp_path / "loop"
