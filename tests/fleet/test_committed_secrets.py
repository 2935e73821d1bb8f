"""Secret files that an agent committed do not leave the machine, and the work is not lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from support.fleet import Fleet, hub_elsewhere

pytestmark = pytest.mark.real

COMMIT_KEY = """\
echo hush > server.pem
echo half > half.txt
git add server.pem
git commit -qm key
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


@pytest.mark.long
def test_a_key_in_a_commit_is_not_pushed_to_another_machine(fleet: Fleet) -> None:
    environ = hub_elsewhere(fleet)
    fleet.add([FleetTask("one", text="work")], fleet.agent(2, COMMIT_KEY), environ=environ)
    fleet.start_slot(1, more=environ)
    fleet.until_ended()
    run = fleet.run("one")
    assert run.state is RunState.FAILED
    assert "look like secrets: server.pem" in run.reason
    hub = fleet.folder / "hub.git"
    objects = fleet.git("-C", str(hub), "cat-file", "--batch-all-objects", "--batch-check")
    key = fleet.git("hash-object", "--stdin", given="hush\n")
    assert key not in objects
    assert "rooda/one" not in fleet.git("-C", str(hub), "branch", "--list")
    (kept,) = (fleet.folder / "cache/rooda/fleet" / fleet.project / "kept").iterdir()
    assert str(kept) in run.reason
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    fleet.git("fetch", "-q", str(kept), "rooda/one")
    assert fleet.git("show", "FETCH_HEAD~1:server.pem") == "hush"
    assert fleet.git("show", "FETCH_HEAD:half.txt") == "half"


@pytest.mark.long
def test_a_key_that_the_flags_allow_is_pushed(fleet: Fleet) -> None:
    environ = hub_elsewhere(fleet)
    allow = ("--git-allow-secrets", "*.pem")
    fleet.add([FleetTask("one", text="work")], fleet.agent(1, COMMIT_KEY), *allow, environ=environ)
    fleet.start_slot(1, more=environ)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.SUCCESS, fleet.story()
    hub = str(fleet.folder / "hub.git")
    assert fleet.git("-C", hub, "show", "rooda/one:server.pem") == "hush"


@pytest.mark.long
def test_the_users_own_repository_gets_the_work_as_it_is(fleet: Fleet) -> None:
    fleet.add([FleetTask("one", text="work")], fleet.agent(1, COMMIT_KEY))
    fleet.start_slot(1)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.SUCCESS
    assert fleet.git("show", "rooda/one:server.pem") == "hush"
