"""Runs come back from git alone: with their order, their progress, and how they ended."""

from pathlib import Path

import pytest
from msgspec import json

from rooda.fleet.adding import records_of
from rooda.fleet.adopting import adopt_runs
from rooda.fleet.fence import scratch_remote
from rooda.fleet.model import Batch, State, Task
from rooda.fleet.place import Place
from rooda.fleet.record_commits import RESULT, Kind
from rooda.fleet.store import Store
from rooda.workspace.tools import Tools
from support.gitrepo import git

TASKS = [Task("z", text="first"), Task("a", text="second"), Task("late", after=("z",))]
FLAGS = ("--ai-cmd", "agent", "--env", "API_TOKEN=hush")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    git(tmp_path / "repo", "init", "-q")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "first")
    git_dir = tmp_path / "repo/.git"
    return Place(tmp_path / "repo", git_dir, "p", f"sqlite:///{tmp_path}/f.sqlite", str(git_dir))


def test_a_lost_database_is_made_again_from_git(place: Place) -> None:
    tools = Tools()
    batch = Batch("night", git(place.top, "rev-parse", "HEAD"), flags=FLAGS, max_cost=40.0)
    told = {"turn": 4, "state": "success", "reason": "done", "cost": 1.5, "unknown_costs": 1}
    with scratch_remote(place.remote, tools) as remote:
        remote.add(records_of(batch, TASKS))
        record = remote.fetch("z")
        assert record is not None
        remote.publish(
            "z",
            record,
            kind=Kind.ENDED,
            iteration=3,
            tip=None,
            wip=None,
            files={RESULT: json.encode(told)},
            state="success",
        )
    store = Store(place.url)
    adopted = adopt_runs(store, place, tools)
    assert [one.run.run for one in adopted] == ["z", "a", "late"]
    assert all(one.left_out == ("--env API_TOKEN",) for one in adopted)
    first, second, third = (one.run for one in adopted)
    assert (first.state, first.iteration, first.cost, first.unknown_costs) == (
        State.SUCCESS,
        3,
        1.5,
        1,
    )
    assert (second.state, second.task, second.batch.max_cost) == (State.QUEUED, TASKS[1], 40.0)
    assert third.state is State.BLOCKED
    assert [run.run for run in store.ready("p")] == ["a", "late"]
    assert adopt_runs(store, place, tools) == []
    store.forget("p", "a")
    assert [one.run.run for one in adopt_runs(store, place, tools)] == ["a"]
    store.close()
