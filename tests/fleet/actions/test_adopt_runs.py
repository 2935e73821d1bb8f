"""A database is lost: runs come back from git, and go on where they were."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from rooda.base.problems import InvalidInput
from rooda.fleet.actions.add_tasks import Added, records_of
from rooda.fleet.actions.adopt_runs import Adopted, Agree, adopt
from rooda.fleet.place import Place
from rooda.fleet.remote.fence import FALLBACK, scratch_remote
from rooda.fleet.remote.record_commits import RecordKind
from rooda.fleet.run_model import Batch, Finish, FleetTask, RunState
from rooda.fleet.store.store import FleetStore
from rooda.world.tools import Tools
from support.fleet import Fleet

pytestmark = pytest.mark.real

LINES = 3
HUGE = b'{"turn": 99999999999999999999}'


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/data/fleet.sqlite")
    yield fleet
    fleet.close()


def lose_the_database(fleet: Fleet) -> None:
    fleet.store.close()
    shutil.rmtree(fleet.folder / "data")
    fleet.store = FleetStore(fleet.url)
    assert fleet.store.runs(fleet.project) == []


def adopted(fleet: Fleet, *flags: str, agree: Agree = bool) -> list[Adopted]:
    git_dir = fleet.repo / ".git"
    state = None if fleet.fence is None else fleet.folder
    place = Place(fleet.repo, git_dir, fleet.project, fleet.url, fleet.remote, state)
    return adopt(place, fleet.store, Tools(fleet.environ()), flags, agree=agree)


@pytest.mark.long
def test_runs_of_every_stage_go_on_and_every_iteration_is_there_once(fleet: Fleet) -> None:
    """One has ended, one is between iterations, one is in its first iteration, one is new."""
    gate = f"while [ -e {fleet.folder}/gate ]; do sleep 0.05; done"
    stages = (
        f'case "$(git branch --show-current) $(wc -l 2>/dev/null < work.txt)" in '
        f'"rooda/middle 1"|"rooda/first "*) touch {fleet.folder}/at-$(git branch --show-current '
        f"| cut -d/ -f2); {gate};; esac"
    )
    (fleet.folder / "gate").touch()
    names = ("ended", "middle", "first", "new")
    fleet.add([FleetTask(name, text="work") for name in names], fleet.agent(LINES, stages))
    slots = [fleet.start_slot(number) for number in (1, 2)]
    reached = [fleet.folder / "at-middle", fleet.folder / "at-first"]
    fleet.until(lambda: fleet.run("ended").state is RunState.SUCCESS)
    fleet.until(lambda: all(path.exists() for path in reached))
    for slot in slots:
        slot.kill()
        slot.wait()
    lose_the_database(fleet)
    (fleet.folder / "gate").unlink()
    assert adopted(fleet) == [
        Adopted("ended", RunState.SUCCESS, LINES),
        Adopted("middle", RunState.QUEUED, 1),
        Adopted("first", RunState.QUEUED, 0),
        Adopted("new", RunState.QUEUED, 0),
    ]
    assert adopted(fleet) == []  # rows that are there are left alone
    fleet.start_slot(3)
    fleet.until_ended(90)
    for name in names:
        fleet.check_exactly_once(name, LINES)


def test_records_that_rooda_did_not_write_are_named_and_left_alone(fleet: Fleet) -> None:
    fleet.add([FleetTask("good", text="work")], "agent")
    git, head = fleet.records, fleet.git("rev-parse", "HEAD")
    git("update-ref", "refs/rooda/fleet/plain", head)
    git("update-ref", "refs/rooda/fleet/blob", git("rev-parse", f"{head}:README"))
    git("update-ref", "refs/rooda/fleet/other", "refs/rooda/fleet/good")
    evil = Added(FleetTask("evil", text="x"), Batch("b", "--upload-pack=touch owned"))
    with fleet.remote_here() as remote:
        huge = {**dict(records_of(fleet.batch, [FleetTask("huge")]))["huge"], "result.json": HUGE}
        remote.add([("evil", {"task.json": json.encode(evil)}), ("torn", {"task.json": b"{"})])
        remote.add([("huge", huge)])
    lose_the_database(fleet)
    found = {one.run: one.trouble for one in adopted(fleet)}
    assert found.pop("good") == ""
    assert sorted(found) == ["blob", "evil", "huge", "other", "plain", "torn"]
    assert found["other"] == "its record is one of another run"
    assert found["evil"] == "its record names no commit to start from"
    assert all("can't be read" in found[name] for name in ("blob", "huge", "plain", "torn"))
    assert [run.run for run in fleet.store.runs(fleet.project)] == ["good"]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "task",
    [
        FleetTask("odd", labels=("gpu+big",)),
        FleetTask("odd", labels=("a\0b",)),
        FleetTask("odd", account="a\0b"),
        FleetTask("odd", after=("../x",)),
        FleetTask("odd", max_iterations=10**20),
        FleetTask("odd", procedure="--verify=touch owned"),
    ],
)
def test_one_record_with_odd_values_does_not_keep_the_others_from_coming_back(
    fleet: Fleet, task: FleetTask
) -> None:
    """The name of a queue has the labels in it: the queue of all would stop."""
    fleet.add([FleetTask("good", text="work")], "agent")
    with fleet.remote_here() as remote:
        remote.add(records_of(fleet.batch, [task]))
    lose_the_database(fleet)
    found = {one.run: one.trouble for one in adopted(fleet)}
    assert found["odd"].startswith(("its record has ", "its record can't be read: Expected "))
    assert [run.run for run in fleet.store.runs(fleet.project)] == ["good"]


def test_flags_with_secrets_have_to_be_given_again(fleet: Fleet) -> None:
    fleet.add(
        [FleetTask("b", text="work"), FleetTask("a", text="work")], "agent", "--env", "MODE=hush"
    )
    lose_the_database(fleet)
    refused = adopted(fleet)
    assert {one.run: [*one.needs] for one in refused} == {run: ["--env MODE"] for run in "ab"}
    assert all("git does not keep the values of: --env MODE" in one.trouble for one in refused)
    assert fleet.store.runs(fleet.project) == []
    assert [one.run for one in adopted(fleet, "--env", "MODE=again")] == ["b", "a"]  # as added
    assert fleet.run("a").batch.flags == ("--ai-cmd", "agent", "--env", "MODE=again")


def test_an_end_comes_back_with_its_words_and_a_retried_run_is_queued(fleet: Fleet) -> None:
    fleet.add(
        [FleetTask("aside"), FleetTask("again"), FleetTask("later", after=("again",))], "agent"
    )
    result = b'{"turn": 4, "state": "set-aside", "reason": "why", "iteration": 2, "cost": 1.5}'
    with fleet.remote_here() as remote:
        remote.ensure(fleet.batch.base)
        for name in ("aside", "again"):
            record = remote.fetch(name)
            assert record is not None
            ended = remote.publish(
                name,
                record,
                kind=RecordKind.ENDED,
                iteration=2,
                tip=fleet.batch.base,
                wip=None,
                files={"result.json": result},
                state=RunState.SET_ASIDE,
            )
        remote.claim("again", ended, "a worker")
    lose_the_database(fleet)
    adopted(fleet)
    aside, again, later = (fleet.run(name) for name in ("aside", "again", "later"))
    assert (aside.state, aside.reason, aside.cost) == (RunState.SET_ASIDE, "why", 1.5)
    assert (again.state, again.turn, again.iteration) == (RunState.QUEUED, 5, 2)
    assert later.state is RunState.BLOCKED


def test_records_among_the_branches_are_found_too(fleet: Fleet) -> None:
    base, fleet.fence = fleet.batch.base, None
    with scratch_remote(fleet.remote, Tools(fleet.environ()), records=FALLBACK) as remote:
        remote.add(records_of(Batch("b", base), [FleetTask("one")]))
    assert adopted(fleet) == [Adopted("one")]


def test_a_remote_that_is_away_is_named(fleet: Fleet) -> None:
    gone = Place(fleet.repo, fleet.repo / ".git", fleet.project, fleet.url, fleet.remote)
    away = str(fleet.folder / "away.git")
    with pytest.raises(InvalidInput) as error:
        adopt(replace(gone, remote=away), fleet.store, Tools(fleet.environ()), agree=bool)
    assert f"the records on {away} can't be read" in str(error.value.problems[0].message)


def test_every_command_of_a_record_is_shown_and_nothing_is_added_without_consent(
    fleet: Fleet,
) -> None:
    fleet.add([FleetTask("mine", text="x"), FleetTask("other", text="x")], "agent")
    gift = FleetTask("gift", text="x", procedure="build")
    flags = ("--ai-cmd", "touch owned\x1b[8m", "--sandbox", "none")
    with fleet.remote_here() as remote:
        forged = replace(fleet.batch, flags=flags, finish=Finish.PR)
        remote.add(records_of(forged, [replace(gift, base="f" * 40)]))
    lose_the_database(fleet)
    shown: dict[str, Sequence[str]] = {}

    def refuse(commands: Mapping[str, Sequence[str]]) -> bool:
        shown.update(commands)
        return False

    assert adopted(fleet, agree=refuse) == []
    assert fleet.store.runs(fleet.project) == []
    base = fleet.batch.base[:12]
    assert shown == {
        "rooda loop TASK --ai-cmd agent": [f"mine at {base}", f"other at {base}"],
        "rooda run build --ai-cmd 'touch owned' --sandbox none --finish pr": [
            "gift at ffffffffffff"
        ],
    }


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flag", ["--record=/elsewhere", "--lifeline", "--config"])
def test_a_record_with_a_flag_that_only_slots_set_is_left_alone(fleet: Fleet, flag: str) -> None:
    with fleet.remote_here() as remote:
        remote.add(records_of(replace(fleet.batch, flags=(flag, "1")), [FleetTask("odd")]))
    (found,) = adopted(fleet)
    assert "a flag that only a slot sets" in found.trouble
