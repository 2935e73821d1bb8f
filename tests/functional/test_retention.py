"""Old runs leave the record by age and size, and rooda says which ones."""

from collections.abc import Iterator

import pytest

from support.gitrepo import stored
from support.gitwork import GitWork, git_work
from support.recorded import asked
from support.workspace import Workspace

LONG = "yes | head -c 300000"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


@pytest.mark.long
def test_rooda_names_the_runs_that_it_removes_and_keeps_the_last_successful_one(
    work: GitWork,
) -> None:
    work.settings(history={"max_size": "1MB"})
    work.work(work.agent(f"{LONG}; echo '<promise>SUCCESS</promise>'"), "-n", "1")
    for _ in range(2):
        work.work(work.agent(f"{LONG}; echo x >> made.txt"), "-n", "1")
    last, old, good = [run["run"] for run in asked(work.rooda, "history")]
    done = work.work(work.agent("echo y >> made.txt"), "-n", "1")
    (said,) = [line for line in done.log if "Removed old runs" in line]
    assert f"runs={old} freed=" in said
    assert good not in said
    new, *kept = [run["run"] for run in asked(work.rooda, "history")]
    assert kept == [last, good]
    assert f"1 older run: {old}" in work.rooda("show").out
    assert asked(work.rooda, "show")["pruned"][0]["runs"] == [old]
    missing = work.rooda("show", old)
    assert missing.code == 1
    assert f"removed as an old one when run {new} started" in missing.err
    refs = stored(work.path, "for-each-ref", "--format=%(refname)", "refs/rooda")
    assert old not in refs
    assert good in refs
