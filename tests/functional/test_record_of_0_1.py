"""A record that version 0.1 wrote: it opens, shows and resumes.

`corpus/record-0.1` has three runs, made with the installed command of version 0.1: a success, an
abort after two failures, and one that SIGTERM interrupted in its second iteration.
"""

import json
import shutil
from pathlib import Path

import pytest

from support.workspace import Workspace

CORPUS = Path(__file__).parents[1] / "corpus/record-0.1"
SUCCESS, ABORTED, INTERRUPTED = (
    "20261116-005438-72b77d",
    "20261116-005440-b1bbdc",
    "20261116-005442-0e4261",
)


@pytest.fixture
def old(workspace: Workspace) -> Workspace:
    """A work folder with that record."""
    state = workspace.state
    shutil.copytree(CORPUS / "dot-rooda", state)
    state.chmod(0o700)
    for name in ("rooda-config.yml", "agent.sh"):
        shutil.copy(CORPUS / name, workspace.path / name)
    (workspace.path / "agent.sh").chmod(0o755)
    shutil.copy(CORPUS / "count", workspace.path / ".count")
    return workspace


def test_history_lists_its_runs(old: Workspace) -> None:
    done = old.rooda("history", "--json")
    assert done.code == 0, done.err
    found = [(run["run"], run["status"]) for run in json.loads(done.out)]
    assert found == [(INTERRUPTED, "interrupted"), (ABORTED, "aborted"), (SUCCESS, "success")]


@pytest.mark.long
def test_every_run_and_iteration_can_be_shown(old: Workspace) -> None:
    for run in (SUCCESS, ABORTED, INTERRUPTED):
        for words in (
            ("show", run),
            ("why", run),
            ("show", run, "1"),
            ("show", run, "2", "--output"),
            ("report", run),
        ):
            done = old.rooda(*words)
            assert done.code == 0, (words, done.err)
        shown = json.loads(old.rooda("show", run, "--json").out)
        assert [one["number"] for one in shown["iterations"]] == [1, 2]
    first = json.loads(old.rooda("show", SUCCESS, "--json").out)["iterations"][0]
    assert first["result"]["summary"].startswith("Wrote one.txt")
    assert first["result"]["files_created"] == ["one.txt"]
    assert first["agent"] == "agent.sh"


@pytest.mark.real
def test_its_interrupted_run_resumes(old: Workspace) -> None:
    done = old.rooda("work", "--resume", "--ai-cmd", "./agent.sh", "-n", "5")
    assert done.code == 0, done.err
    shown = json.loads(old.rooda("show", INTERRUPTED, "--json").out)
    assert shown["status"] == "success"
    assert [one["status"] for one in shown["iterations"]] == ["completed", "completed"]
