"""How long each part of an iteration took and which lines it changed, through the command."""

from collections.abc import Iterator

import pytest

from rooda.record.rows import IterationRow
from support.gitwork import GitWork, git_work
from support.workspace import Workspace

pytestmark = pytest.mark.real


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def rows(work: GitWork) -> list[IterationRow]:
    return work.reader.iterations(work.reader.run().run)


def test_record_has_the_parts_of_an_iteration_and_the_changed_lines(work: GitWork) -> None:
    work.settings(verify="sleep 0.1", hooks={"post_iteration": "sleep 0.1"}, git={"commit": True})
    work.write("kept.txt", "one\ntwo\nthree\n")
    work.write("image.bin", bytes(range(256)) * 8)
    agent = work.agents(
        "printf 'one\\n2\\n' > kept.txt; seq 5 > 'a new\tfile'; head -c 99 /dev/zero > image.bin",
        "rm kept.txt; git add -A; git commit -qm own; echo '<promise>SUCCESS</promise>'",
    )
    assert work.work(agent).code == 0
    first, second = rows(work)
    kinds = [str(one.kind) for one in first.segments]
    assert kinds == ["agent", "verify", "commit", "hooks"]
    starts = [one.start for one in first.segments]
    assert starts == sorted(starts)
    assert all(one.seconds >= 0.1 for one in first.segments if one.kind in ("verify", "hooks"))
    assert first.lines is not None
    assert (first.lines.added, first.lines.deleted) == (6, 2)
    counts = {one.name: (one.added, one.deleted) for one in first.lines.largest}
    assert counts["kept.txt"] == (1, 2)
    assert counts["a new\tfile"] == (5, 0)
    assert counts["image.bin"] == (None, None)
    assert first.result is not None
    assert first.lines.files == len(first.result.files_created + first.result.files_modified)
    assert second.lines is not None
    assert (second.lines.added, second.lines.deleted) == (0, 2)
    assert (first.commits, second.commits, second.adapter) == (None, 1, "text")
    # Verify ran three times: before the first iteration, and after each.
    checked = work.reader.run().verify_seconds
    assert checked is not None
    assert checked >= 0.3
    assert " VERIFY " in work.rooda("history").out


def test_changed_lines_are_counted_where_the_repository_lost_its_contents(work: GitWork) -> None:
    work.write("a", "one\n")
    lost = "find .git/objects -type f | xargs rm -f"
    agent = work.agents(f"{lost}; echo two > a; echo b > b; echo '<promise>SUCCESS</promise>'")
    assert work.work(agent).code == 0
    (row,) = rows(work)
    assert row.lines is not None
    assert (row.lines.added, row.lines.deleted) == (2, 1)
