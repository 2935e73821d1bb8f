"""Limits and budgets that runs share: of an account, and of a batch."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from support.fleet import Fleet

STREAM = "-p --output-format stream-json"
# The runs of the account `x` meet a usage limit until the file `open` is there.
LIMITED = """\
if [ ! -e {folder}/open ] && grep -q x- .git/HEAD; then
  touch {folder}/met-$(git branch --show-current | cut -d/ -f2)
  echo half >> half.txt
  echo '{words}'; exit 1
fi
"""


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url)
    yield fleet
    fleet.close()


def claude(fleet: Fleet, lines: int, words: str) -> str:
    """Return the command of a claude that prints text, and whose service refuses some runs."""
    before = LIMITED.format(folder=fleet.folder, words=words)
    path = Path(fleet.agent(lines, before))
    named = path.with_name("claude")
    path.rename(named)
    return f"{named} -p"


@pytest.mark.long
def test_a_limit_stops_all_runs_of_its_account_and_no_others(fleet: Fleet) -> None:
    command = claude(fleet, 2, "usage limit reached, resets in 6 seconds")
    tasks = [FleetTask(f"x-{number}", text="work", account="x") for number in (1, 2)]
    fleet.add([*tasks, FleetTask("y-1", text="work", account="y")], command)
    fleet.start_slot(1)
    fleet.until(lambda: fleet.run("y-1").state is RunState.SUCCESS)
    hold = fleet.store.accounts.hold("x")
    assert hold.until > 0
    assert "usage limit" in hold.reason
    assert fleet.store.accounts.hold("y").until == 0
    fleet.until(lambda: all(fleet.run(f"x-{number}").not_before > 0 for number in (1, 2)))
    assert len(list(fleet.folder.glob("met-*"))) == 1  # the other one did not even try
    assert all(fleet.run(f"x-{number}").state is RunState.QUEUED for number in (1, 2))
    (fleet.folder / "open").touch()
    fleet.until_ended()  # they wake up by themselves
    for name in ("x-1", "x-2", "y-1"):
        assert fleet.run(name).state is RunState.SUCCESS
    met = next(fleet.folder.glob("met-*")).name.removeprefix("met-")
    # What the agent did before the limit is not lost: it is in the first commit after it.
    assert fleet.git("show", f"rooda/{met}:half.txt") == "half"


@pytest.mark.long
def test_an_overload_lowers_the_number_at_work(fleet: Fleet) -> None:
    command = claude(fleet, 1, "API Error: 529 Overloaded")
    fleet.add([FleetTask(name, text="work", account="x") for name in ("x-1", "x-2")], command)
    fleet.start_slot(1)
    fleet.until(lambda: fleet.store.accounts.hold("x").most is not None)
    assert fleet.store.accounts.hold("x").most == 1
    fleet.until(lambda: fleet.run("x-1").not_before > time.time() + 10)
    assert "overloaded" in fleet.run("x-1").reason


@pytest.mark.long
def test_the_budget_of_a_batch_ends_its_runs_before_the_next_iteration(fleet: Fleet) -> None:
    event = {"type": "result", "total_cost_usd": 0.6, "result": "worked", "is_error": False}
    agent = Path(fleet.agent(9, f"echo '{json.dumps(event)}'"))
    named = agent.with_name("claude")
    agent.rename(named)
    fleet.batch_cost = 1.0
    fleet.add([FleetTask(name, text="work") for name in ("one", "two")], f"{named} {STREAM}")
    fleet.start_slot(1)
    fleet.until_ended()
    runs = [fleet.run(name) for name in ("one", "two")]
    assert [run.iteration for run in runs] == [2, 0]
    assert all(run.state is RunState.FAILED for run in runs)
    assert all(run.reason == "the batch has cost $1.20 of $1.00 (max_cost)" for run in runs)
