"""Agents that delete or replace what rooda made for them spoil their own runs and no other one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from support.fleet import Fleet
from support.fleetwork import changes_since, fingerprint
from support.gitrepo import Repo

LINES = 2
SLOTS = (1, 2, 3)
# What an agent does in each of its iterations. $slot is the folder of its slot, $user the user's
# repository, $mine another one of the user's with names as in a slot, $other one of a stranger.
OF_THE_RUN = {
    "work-gone": "rm -rf $slot/work",
    "work-link": "rm -rf $slot/away; mv $slot/work $slot/away; ln -s $user $slot/work",
    "work-link-to-copy": "cp -a $slot/work $TMPDIR/; rm -rf $slot/work; ln -s tmp/work $slot/work",
    "work-file": "rm -rf $slot/work; echo x > $slot/work",
    "work-clone": "rm -rf $slot/work; git clone -q $other $slot/work",
    "work-copy": "cp -a $slot/work $TMPDIR/; rm -rf $slot/work; mv $TMPDIR/work $slot/work",
    "work-locked": "rm -rf $slot/work; mkdir $slot/work; chmod 000 $slot/work",
    "git-gone": "rm -rf .git",
    "git-link": "rm -rf .git; ln -s $user/.git .git",
    "git-file": "rm -rf .git; echo gitdir: $user/.git > .git",
    "git-clone": "rm -rf .git; git clone -q --no-checkout $other new; mv new/.git .git",
    "git-emptied": "rm -rf .git/*; git init -q",
    "record-gone": "mv $slot/record $TMPDIR",
    "record-link": "mv $slot/record $TMPDIR; ln -s $mine $slot/record",
    "record-file": "mv $slot/record $TMPDIR; echo x > $slot/record",
    "record-init": "mv $slot/record $TMPDIR; git init -q $slot/record",
    "record-locked": "mv $slot/record $TMPDIR; mkdir -p $slot/record/x; chmod 000 $slot/record",
    "folders": "for one in $files; do rm -rf $slot/$one; mkdir -p $slot/$one/x; done; rm -rf .git",
    "links": "for one in $files; do rm -rf $slot/$one; ln -s $mine/$one $slot/$one; done; "
    "rm -rf .git",
}
OF_THE_SLOT = {
    "slot-gone": "rm -rf $slot",
    "slot-link": "rm -rf $slot; ln -s $mine $slot",
    "slot-file": "rm -rf $slot; echo x > $slot",
    "slot-init": "rm -rf $slot; git init -q $slot",
}
DAMAGE = {**OF_THE_RUN, **OF_THE_SLOT}
FILES = "task.md log result.json tmp setup.log setup-mark snapshot-index clone-alternates"
HONEST = ("api", "web", "docs")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


def repository(fleet: Fleet, name: str, *files: str) -> Repo:
    path = fleet.folder / name
    path.mkdir(mode=0o755)
    repo = Repo(path, fleet.environ())
    repo.git("init", "-q")
    for file in files:
        repo.write(file, "mine\n")
    repo.git("add", "-A")
    repo.git("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "mine")
    return repo


def work_until_ended(fleet: Fleet) -> None:
    """Keep slot processes running, as a worker does, until all runs have ended."""
    processes = {number: fleet.start_slot(number, takeover=1.0) for number in SLOTS}

    def have_ended() -> bool:
        for number, process in processes.items():
            if process.poll() is not None:
                processes[number] = fleet.start_slot(number, takeover=1.0)
        return all(run.state.is_end for run in fleet.store.runs(fleet.project))

    fleet.until(have_ended, 400)


@pytest.mark.long
@pytest.mark.timeout(500)
def test_an_agent_that_deletes_or_replaces_its_slot_publishes_nothing_and_stops_nobody(
    fleet: Fleet,
) -> None:
    user = Repo(fleet.repo, fleet.environ())
    names = (f"{name}/a.txt" for name in ("work", "record", "tmp"))
    mine = repository(fleet, "mine", *names, "task.md", "log", "result.json")
    other = repository(fleet, "other", "other.txt")
    before = fingerprint(user), fingerprint(mine), mine.path.stat().st_mode
    vandals = [FleetTask(name, text=f"do: {words}") for name, words in DAMAGE.items()]
    honest = [FleetTask(name, text="work") for name in HONEST]
    variables = f'slot="${{PWD%/*}}" user={user.path} mine={mine.path} other={other.path}'
    damage = "eval \"$(sed -n 's/^do: //p' ../task.md)\""
    agent = fleet.agent(LINES, f'{variables} files="{FILES}"\n{damage}')
    fleet.add([*vandals[::2], *honest, *vandals[1::2]], agent)
    work_until_ended(fleet)
    for name in HONEST:
        fleet.check_exactly_once(name, LINES)
    assert changes_since(before[0], user) == []
    now = fingerprint(mine)  # new files may be there: a rooda at work follows the path of its slot
    assert {name: now.get(name) for name in before[1]} == before[1]
    assert mine.path.stat().st_mode == before[2]
    assert fleet.git("branch", "--list", "--format=%(refname:short)", "rooda/*").split() == sorted(
        f"rooda/{name}" for name in HONEST
    )
    reasons = {name: fleet.run(name).reason for name in DAMAGE}
    assert {name: fleet.run(name).state for name in DAMAGE} == {
        **dict.fromkeys(OF_THE_RUN, RunState.FAILED),
        **dict.fromkeys(OF_THE_SLOT, RunState.SET_ASIDE),
    }, reasons
    for name in OF_THE_RUN:
        assert "3 times in a row: its agent seems to do that" in reasons[name], reasons
    for name in DAMAGE:
        subjects = fleet.records("log", "--format=%s", "--first-parent", f"refs/rooda/fleet/{name}")
        assert "done" not in subjects
