"""A worker that dies at a named place: another one continues, and nothing is done twice."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rooda.fleet.crash_points import DONE, FAULTS
from rooda.fleet.run_model import FleetTask, Order, RunState
from support.fleet import Fleet, rooda_in

pytestmark = pytest.mark.real

LINES = 3


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url)
    yield fleet
    fleet.close()


@pytest.fixture
def sqlite_fleet(tmp_path: Path) -> Iterator[Fleet]:
    """For what does not depend on the kind of the database."""
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "point,iteration",
    [
        ("after-claim", 1),  # a worker claims a run once, before its first iteration
        *(
            (point, number)
            for point in ("after-commit", "after-push", "after-step")
            for number in (1, 2)
        ),
        ("after-push", LINES),  # the end is in git, and the database does not know it
    ],
)
def test_a_crash_costs_no_iteration_and_doubles_none(
    fleet: Fleet, point: str, iteration: int
) -> None:
    faults = {FAULTS: f"crash:{point}:one:{iteration}", DONE: str(fleet.folder)}
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES))
    first = fleet.start_slot(1, more=faults)
    assert first.wait(30) == -signal.SIGKILL
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)
    assert fleet.run("one").iteration == LINES
    again = 1 if point == "after-commit" else 0  # only what was not published is done again
    assert fleet.agent_starts == LINES + again


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("iteration", range(1, LINES + 1))
def test_crash_between_fence_and_branch_costs_no_iteration(
    sqlite_fleet: Fleet, iteration: int
) -> None:
    """The fence has the iteration, and the next process brings it to the branch of the user."""
    fleet = sqlite_fleet
    faults = {FAULTS: f"crash:between-pushes:one:{iteration}", DONE: str(fleet.folder)}
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES))
    assert fleet.start_slot(1, more=faults).wait(30) == -signal.SIGKILL
    branch = ("for-each-ref", "--format=%(refname)", "refs/heads/rooda")
    assert (fleet.git(*branch) == "") is (iteration == 1)
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)
    assert fleet.agent_starts == LINES
    assert "refs/rooda" not in fleet.git("for-each-ref")


@pytest.mark.long
@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("fits", [True, False])
def test_person_who_commits_while_the_worker_is_dead_keeps_the_commit(
    sqlite_fleet: Fleet, *, has_ended: bool, fits: bool
) -> None:
    """The fence has the work, git refuses the mirror: rooda replays it on the person's commit."""
    fleet = sqlite_fleet
    iteration = LINES if has_ended else 2
    faults = {FAULTS: f"crash:between-pushes:one:{iteration}", DONE: str(fleet.folder)}
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES))
    assert fleet.start_slot(1, more=faults).wait(30) == -signal.SIGKILL
    fleet.git("switch", "-q", "rooda/one")
    name = "person.txt" if fits else "work.txt"
    (fleet.repo / name).write_text("mine\n")
    fleet.git("add", name)
    fleet.git("commit", "-qm", "person")
    fleet.git("switch", "-q", "main")
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    run = fleet.run("one")
    assert fleet.git("show", f"rooda/one:{name}") == "mine"
    if not fits:
        assert run.state is RunState.CONFLICT, fleet.story()
        assert "work.txt" in run.reason
        return
    assert run.state is RunState.SUCCESS, fleet.story()
    assert fleet.agent_starts == LINES
    assert fleet.git("show", "rooda/one:work.txt").splitlines() == ["line"] * LINES
    assert [number for number, _ in fleet.recorded("one")] == [1, 2, 3]


@pytest.mark.real(rows=1)
def test_git_knows_that_the_user_stopped_a_run(fleet: Fleet) -> None:
    """So a run that was stopped stays stopped when the database is lost."""
    gate = fleet.folder / "gate"
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES, f"touch {gate}; sleep 0.5"))
    fleet.start_slot(1)
    fleet.until(gate.exists)
    fleet.store.order(fleet.project, "one", Order.STOP)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.STOPPED
    subjects = fleet.records("log", "--first-parent", "--format=%s", "refs/rooda/fleet/one")
    assert subjects.splitlines()[:2] == ["ended stopped", "done 1"]


@pytest.mark.long
def test_an_end_in_git_counts_more_than_a_later_order_to_stop(fleet: Fleet) -> None:
    faults = {FAULTS: f"crash:after-push:one:{LINES}", DONE: str(fleet.folder)}
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES))
    assert fleet.start_slot(1, more=faults).wait(30) == -signal.SIGKILL
    fleet.store.order(fleet.project, "one", Order.STOP)
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)
    assert fleet.run("one").iteration == LINES


@pytest.mark.long
def test_a_worker_that_dies_while_the_check_runs_is_replaced(fleet: Fleet) -> None:
    """After the agent and before the commit: rooda is at work, and its worker is gone."""
    killed = fleet.folder / "killed"
    verify = fleet.folder / "verify.sh"
    kill = f"kill -9 $(cat {fleet.folder}/pid)"
    verify.write_text(f"#!/bin/sh\nmkdir {killed} 2>/dev/null || exit 0\n{kill}\nsleep 60\n")
    verify.chmod(0o755)
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES), "--verify", str(verify))
    first = fleet.start_slot(1)
    (fleet.folder / "pid").write_text(str(first.pid))
    assert first.wait(30) == -signal.SIGKILL
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)


@pytest.mark.real(rows=1)
def test_no_agent_outlives_its_worker(fleet: Fleet) -> None:
    marker = fleet.folder / "agent-pid"
    fleet.add([FleetTask("one", text="work")], fleet.agent(1, f"echo $$ > {marker}; sleep 300"))
    first = fleet.start_slot(1)
    fleet.until(lambda: marker.exists() and marker.read_text().strip() != "")
    pid = int(marker.read_text())
    first.kill()
    fleet.until(lambda: not Path(f"/proc/{pid}").exists(), 20)


@pytest.mark.long
def test_an_agent_whose_rooda_was_killed_spoils_nothing(sqlite_fleet: Fleet) -> None:
    """It does not want to stop, and goes on writing while the iteration starts again."""
    fleet = sqlite_fleet
    gate = fleet.folder / "gate"
    write = f"trap '' TERM; touch {gate}.open; while :; do echo bad >> work.txt; sleep 0.01; done"
    fleet.add(
        [FleetTask("one", text="work")], fleet.agent(LINES, f"mkdir {gate} && {{ {write}; }}")
    )
    first = fleet.start_slot(1)
    fleet.until((fleet.folder / "gate.open").exists)
    rooda_in(psutil.Process(first.pid).children())[0].kill()
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)


@pytest.mark.long
def test_a_git_that_was_killed_does_not_end_a_run(sqlite_fleet: Fleet) -> None:
    """It is the first git of the iteration: rooda could not start. A worker has died before."""
    fleet = sqlite_fleet
    faults = {FAULTS: "crash:after-claim:one:1", DONE: str(fleet.folder)}
    folder = fleet.folder / "bin"
    folder.mkdir()
    git = shutil.which("git")
    die = f'[ -z "$ROODA_SLOT_FOLDER" ] || ! mkdir {fleet.folder}/died 2>/dev/null || kill -9 $$'
    (folder / "git").write_text(f'#!/bin/sh\n{die}\nexec {git} "$@"\n')
    (folder / "git").chmod(0o755)
    fleet.add([FleetTask("one", text="work")], fleet.agent(2))
    assert fleet.start_slot(1, more=faults).wait(30) == -signal.SIGKILL
    fleet.start_slot(2, takeover=1.0, more={"PATH": f"{folder}:{os.environ['PATH']}"})
    fleet.until_ended()
    assert (fleet.folder / "died").exists()
    fleet.check_exactly_once("one", 2)


@pytest.mark.long
def test_a_woken_owner_publishes_nothing(fleet: Fleet) -> None:
    """Its own check is off: git alone refuses it."""
    gate = fleet.folder / "gate"
    wait = f"touch {gate}; while [ ! -e {gate}.open ]; do sleep 0.05; done"
    wait = f"if [ $ROODA_SLOT = 1 ]; then {wait}; fi"
    fleet.add([FleetTask("one", text="work")], fleet.agent(LINES, wait))
    first = fleet.start_slot(1, more={FAULTS: "off:self-check", DONE: str(fleet.folder)})
    fleet.until(gate.exists)
    os.kill(first.pid, signal.SIGSTOP)
    second = fleet.start_slot(2, takeover=1.0)
    fleet.until(lambda: fleet.run("one").iteration >= 1)
    (fleet.folder / "gate.open").touch()
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(30) == 75  # it found out from git, and wants to be replaced
    fleet.until_ended()
    fleet.check_exactly_once("one", LINES)
    assert second.poll() is None


def test_a_slot_process_that_waits_for_its_slot_ends_with_its_worker(sqlite_fleet: Fleet) -> None:
    fleet = sqlite_fleet
    fleet.start_slot(1)
    log = fleet.folder / "slot-1.log"
    fleet.until(lambda: bool(fleet.store.workers.all(fleet.project)))
    second = fleet.start_slot(1)
    fleet.until(lambda: "waits for another process" in log.read_text())
    assert second.stdin is not None
    second.stdin.close()
    assert second.wait(20) == 1


@pytest.mark.long
def test_a_worker_that_must_end_while_git_is_away_hands_its_run_back(sqlite_fleet: Fleet) -> None:
    fleet = sqlite_fleet
    git, hidden = fleet.repo / ".git", fleet.repo / "hidden"
    fleet.add(
        [FleetTask("one", text="work")], fleet.agent(2, f"[ -e work.txt ] || mv {git} {hidden}")
    )
    first = fleet.start_slot(1)
    fleet.until(lambda: "next try" in fleet.run("one").reason)
    assert fleet.hurry(first) == 0
    run = fleet.run("one")
    assert run.state is RunState.QUEUED
    assert "its last iteration is not published" in run.reason
    hidden.rename(git)
    fleet.agent(2)  # the same one, but it moves nothing
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    fleet.check_exactly_once("one", 2)


@pytest.mark.long
def test_a_run_whose_workers_die_again_and_again_is_set_aside(fleet: Fleet) -> None:
    kill = f"kill -9 $(cat {fleet.folder}/pid)\nsleep 60"
    fleet.add(
        [FleetTask("bad", text="work"), FleetTask("good", text="work")],
        fleet.agent(1, f"if grep -q bad .git/HEAD; then {kill}; fi"),
    )
    for _ in range(20):
        slot = fleet.start_slot(1, takeover=0.6)
        (fleet.folder / "pid").write_text(str(slot.pid))
        fleet.until(lambda slot=slot: slot.poll() is not None or fleet.run("bad").state.is_end)  # type: ignore[misc]
        if fleet.run("bad").state.is_end:
            break
    run = fleet.run("bad")
    assert run.state is RunState.SET_ASIDE
    assert "iteration 1 was begun 8 times" in run.reason
    fleet.until_ended()
    assert fleet.run("good").state is RunState.SUCCESS
