"""The look that saves a git for a small tree without changes."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.workspace.old_record import OLD_FOLDER
from rooda.workspace.snapshots.quick_look import MOST_ENTRIES, QuickLook, are_settled
from rooda.workspace.snapshots.snapshots import Snapshots
from rooda.workspace.state_folder import StateFolder
from rooda.workspace.tools import Command, Tools
from rooda.workspace.tree_changes import Changes
from support.children import until
from support.gitrepo import repository
from support.tables import each_row

SECOND = 10**9


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "deep/er").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "deep/.rooda").mkdir()
    (top / "a").write_text("alpha")
    (top / "deep/er/b").write_text("beta")
    (top / "link").symlink_to("a")
    (tmp_path / "rules").write_text("*.o")
    return top


@pytest.fixture
def look(tree: Path) -> QuickLook:
    """Return a look at the tree after its clock has ticked."""
    found = QuickLook(str(tree), (tree.parent / "rules", tree.parent / "missing"))
    until(found.is_unchanged, "a tick of the clock")
    assert found.is_unchanged()
    return found


def _in_disguise(tree: Path) -> None:
    before = (tree / "deep/er/b").stat()
    (tree / "deep/er/b").write_text("BETA")
    os.utime(tree / "deep/er/b", ns=(before.st_atime_ns, before.st_mtime_ns))


def _with_another_target(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("b")


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size and date": _in_disguise,
    "mode": lambda tree: (tree / "a").chmod(0o755),
    "new file": lambda tree: (tree / "deep/er/new").write_text(""),
    "deleted": lambda tree: (tree / "deep/er/b").unlink(),
    "empty folder": lambda tree: (tree / "deep/new").mkdir(),
    "renamed": lambda tree: (tree / "deep").rename(tree / "other"),
    "link": _with_another_target,
    "rules": lambda tree: (tree.parent / "rules").write_text("*.a"),
    "new rules": lambda tree: (tree.parent / "missing").write_text("*.a"),
    "tree is gone": shutil.rmtree,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_is_seen(look: QuickLook, tree: Path, change: Callable[[Path], object]) -> None:
    change(tree)
    assert not look.is_unchanged()


def test_folders_of_git_and_rooda_do_not_count(look: QuickLook, tree: Path) -> None:
    (tree / ".git/index").write_text("of git")
    (tree / "deep/.rooda/run.json").write_text("of rooda")
    assert look.is_unchanged()
    look.forget()
    assert not look.is_unchanged()


@pytest.mark.parametrize("kind", ["many", "nested"])
def test_only_git_can_tell_about_large_trees_and_repositories_within(
    look: QuickLook, tree: Path, kind: str
) -> None:
    if kind == "nested":
        (tree / "deep/.git").mkdir()
    else:
        for number in range(MOST_ENTRIES):
            (tree / f"{number}").touch()
    assert not look.is_unchanged()
    newest = max(path.lstat().st_ctime for path in tree.rglob("*"))
    until(lambda: time.time() > newest + 0.2, "a tick of the clock")
    assert [look.is_unchanged() for _ in range(3)] == [False] * 3


@each_row(
    "changed_at, settled",
    [
        (99 * SECOND + 5, True),
        (100 * SECOND - SECOND // 10, False),
        (99 * SECOND, False),  # a clock that ticks by the second
        (98 * SECOND - 1, True),
        (101 * SECOND + 5, False),  # the clock of a server
    ],
)
def test_a_look_counts_only_after_the_clock_has_ticked(*, changed_at: int, settled: bool) -> None:
    marks = {"a": (0, 0, 0, changed_at, 0), "missing": None}
    assert are_settled(marks, 100 * SECOND) == settled


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the commands of every git that is started."""
    found: list[tuple[str, ...]] = []
    stream = Tools.stream

    def noted(tools: Tools, command: Command, take: Callable[[bytes], object]) -> object:
        found.append(command.argv)
        return stream(tools, command, take)

    monkeypatch.setattr(Tools, "stream", noted)
    return found


@pytest.mark.real
def test_a_tree_without_changes_needs_no_git(
    tmp_path: Path, started: list[tuple[str, ...]]
) -> None:
    repo = repository(tmp_path / "repo")
    repo.write("a.txt", "alpha")
    repo.commit()
    snapshots = repo.open()
    snapshots.take("r1", "0")

    def needs_none() -> bool:
        started.clear()
        taken = snapshots.take("r1", "1")
        return taken.changes == Changes() and taken.commit is not None and not started

    until(needs_none, "a scan without git")
    repo.write("a.txt", "beta!")
    assert snapshots.take("r1", "2").changes == Changes(modified=("a.txt",))
    until(needs_none, "a scan without git")
    repo.git("commit", "-qam", "the same files")
    assert snapshots.take("r1", "3").head == repo.git("rev-parse", "HEAD")
    assert repo.git("rev-parse", "refs/rooda/r1/3^{tree}") == repo.git("rev-parse", "HEAD^{tree}")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("is_private", [False, True], ids=["repository", "folder"])
def test_deleted_state_is_noticed_while_nothing_else_changes(
    tmp_path: Path, started: list[tuple[str, ...]], *, is_private: bool
) -> None:
    repo = repository(tmp_path / "repo")
    repo.write("a.txt", "alpha")
    repo.write("b.txt", "beta")
    repo.commit()
    if is_private:
        shutil.rmtree(repo.path / ".git")
    tools = Tools(repo.environ)
    state = repo.path / OLD_FOLDER
    snapshots = (
        Snapshots.without_repository(repo.path, StateFolder(state), tools)
        if is_private
        else repo.open()
    )

    def needs_none() -> bool:
        started.clear()
        snapshots.take(None)
        return not started

    until(needs_none, "a scan without git")
    shutil.rmtree(repo.path / ".rooda")
    assert snapshots.take(None).changes == Changes()
    repo.write("a.txt", "gamma")
    assert snapshots.take(None).changes == Changes(modified=("a.txt",))
