"""The report that a run writes while it is at work (`loop.report`)."""

import json
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.pages import Page
from support.workspace import Workspace, wait_for

pytestmark = pytest.mark.real

DONE = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def test_report_is_written_after_the_first_iteration_and_at_the_end(work: GitWork) -> None:
    """It is rooda's own file: no change of the agent, and in no commit."""
    work.settings(report=str(work.path / "out/night.html"), git={"commit": True})
    agent = work.agents(
        "echo one > a; echo Added one file.",
        f"grep -c 'Added one file' out/night.html > seen; {DONE}",
    )
    done = work.work(agent)
    assert (done.code, done.err.count("WARN")) == (0, 0), done.err
    assert int((work.path / "seen").read_text()) > 0
    page = Page((work.path / "out/night.html").read_text())
    assert "success" in page.text
    assert "2 good" in page.text
    first, second = work.record()
    assert (first["result"]["files_created"], second["result"]["files_modified"]) == (["a"], [])
    assert "out/" not in work.git("ls-files")
    assert [one.name for one in (work.path / "out").iterdir()] == ["night.html"]


def test_report_while_the_run_is_at_work_says_so(work: GitWork) -> None:
    work.settings(report=str(work.path / "night.json"))
    running = work.begin(work.agents("true", "echo 2 > second; sleep 60"))
    wait_for(work.path / "second")
    found = json.loads((work.path / "night.json").read_text())
    assert (found["status"], len(found["iterations"])) == ("running", 1)
    running.process.terminate()
    running.finish()
    found = json.loads((work.path / "night.json").read_text())
    assert found["status"] == "interrupted"


def test_report_that_cannot_be_written_is_one_warning_and_no_failure(work: GitWork) -> None:
    target = work.home / "outside"
    target.mkdir()
    (work.path / "away").symlink_to(target)
    work.settings(report=str(work.path / "away/night.html"))
    done = work.work(work.agents("true", "true", DONE))
    assert done.code == 0
    warnings = [line for line in done.log if "report" in line]
    assert len(warnings) == 1, done.err
    assert "WARN: The report can't be written; the run goes on" in warnings[0]
    assert "leads out of it" in warnings[0]
    assert list(target.iterdir()) == []


def test_report_may_be_beside_the_work_tree(work: GitWork) -> None:
    done = work.work(work.agents(DONE), "--report", "../beside.md")
    assert (done.code, done.err.count("WARN")) == (0, 0), done.err
    live = work.path.parent / "beside.md"
    assert ": success" in live.read_text()
    assert work.rooda("report", "-o", "../beside.html").code == 0
    assert live.with_suffix(".html").exists()
