"""`rooda doctor --fleet` finds what would stop a fleet, and says what to do about it."""

from pathlib import Path

import pytest

from rooda.fleet.store.store import FleetStore
from rooda.front.doctor.findings import Finding, Mark
from rooda.front.doctor.fleet_checks import check_fleet
from rooda.plan.world import World
from rooda.world.state.record_place import fleet_state
from rooda.world.tools import Tools
from support.config import world
from support.gitrepo import git

pytestmark = pytest.mark.real

SHARED = "fleet: {{remote: '{remote}'}}\n"
REFUSE = "#!/bin/sh\n{}\necho 'no pushes on Sundays' >&2\nexit 1\n"
CUSTOM_ONLY = "grep -q refs/rooda/ || exit 0"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    folder = tmp_path / "hub.git"
    git(folder, "init", "-q", "--bare")
    return folder


def a_world(folder: Path, config: str = "fleet:\n", **env: str) -> World:
    found = world(folder, workspace=config, env={"GIT_CONFIG_NOSYSTEM": "1", **env})
    git(found.folder, "init", "-q", "-b", "main")
    git(found.folder, "commit", "-q", "--allow-empty", "-m", "first")
    return found


def database_of(here: World) -> Path:
    """Return where the database is, and make the folder for it."""
    state = fleet_state(here.folder / ".git", here.environ)
    state.mkdir(parents=True, exist_ok=True)
    return state / "fleet.sqlite"


def findings(here: World) -> dict[str, Finding]:
    tools = Tools(here.environ, [here.folder])
    return {one.topic: one for one in check_fleet(here, None, tools)}


def test_a_sound_fleet_has_no_findings_but_good_ones(tmp_path: Path) -> None:
    here = a_world(tmp_path)
    found = findings(here)
    assert "the first run makes" in found["fleet-database"].text
    FleetStore(f"sqlite:///{database_of(here)}").close()
    found = findings(here)
    assert {one.mark for one in found.values()} == {Mark.OK}
    assert "dbos 3." in found["fleet-extra"].text
    assert "SQLite 3." in found["fleet-database"].text
    assert "fence.git" in found["fleet-remote"].text
    assert not database_of(here).with_name("fence.git").exists()
    assert git(here.folder, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_database_that_is_away_is_named_without_its_password(tmp_path: Path, hub: Path) -> None:
    config = f"fleet: {{remote: '{hub}'}}\n"
    url = "postgresql://me:hush-hush@127.0.0.1:1/night"
    found = findings(a_world(tmp_path, config, ROODA_FLEET_URL=url))
    one = found["fleet-database"]
    assert one.mark is Mark.PROBLEM
    assert "postgresql://me:...@127.0.0.1:1/night can't be used: connection failed" in one.text
    assert "ROODA_FLEET_URL" in one.advice
    assert not any("hush" in one.text for one in found.values())
    assert found["fleet-remote"].mark is Mark.OK  # one failed check does not end the others


def test_a_broken_database_file_can_be_replaced(tmp_path: Path) -> None:
    here = a_world(tmp_path)
    file = database_of(here)
    file.write_text("not a database at all\n" * 100)
    one = findings(here)["fleet-database"]
    assert (one.mark, "rooda fleet adopt" in one.advice) == (Mark.PROBLEM, True)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "trouble,mark,words,advice",
    [
        ("refuses", Mark.PROBLEM, "takes no push to refs/heads/rooda/", "hooks and rules"),
        ("not atomic", Mark.PROBLEM, "two refs in one push (--atomic)", "advertiseAtomic"),
        ("branches only", Mark.WARNING, "takes branches only", "refs/heads/rooda-record/"),
        ("gone", Mark.PROBLEM, "can't be reached", "git ls-remote"),
    ],
)
def test_what_a_remote_can_not_do_is_told(
    tmp_path: Path, hub: Path, trouble: str, mark: Mark, words: str, advice: str
) -> None:
    hook = hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    if trouble == "not atomic":
        git(hub, "config", "receive.advertiseAtomic", "false")
    elif trouble == "gone":
        hub.rename(tmp_path / "elsewhere.git")
    else:
        hook.write_text(REFUSE.format(CUSTOM_ONLY if trouble == "branches only" else ""))
        hook.chmod(0o755)
    one = findings(a_world(tmp_path, SHARED.format(remote=hub)))["fleet-remote"]
    assert one.mark is mark
    assert words in one.text
    assert str(hub) in one.text
    assert advice in one.advice


def test_slots_that_others_can_read_and_a_missing_gh_are_told(tmp_path: Path) -> None:
    here = a_world(tmp_path, "fleet: {finish: pr}\n")
    slots = tmp_path / "home/.cache/rooda/fleet"
    slots.mkdir(parents=True)
    slots.chmod(0o755)
    found = findings(here)
    assert (found["fleet-slots"].mark, found["fleet-slots"].advice) == (
        Mark.WARNING,
        f"chmod 700 {slots}",
    )
    assert found["fleet-gh"].mark is Mark.PROBLEM
    assert "gh is not installed" in found["fleet-gh"].text


@pytest.mark.parametrize("code,mark", [(0, Mark.OK), (1, Mark.PROBLEM)])
def test_gh_has_to_be_logged_in(tmp_path: Path, code: int, mark: Mark) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    gh = programs / "gh"
    gh.write_text(f'#!/bin/sh\n[ "$*" = "auth status" ] && exit {code}\n')
    gh.chmod(0o755)
    here = a_world(tmp_path, "fleet: {finish: pr}\n")
    path = f"{programs}:{here.environ['PATH']}"
    found = findings(World(here.folder, {**here.environ, "PATH": path}))
    assert found["fleet-gh"].mark is mark


def test_wrong_settings_and_a_folder_without_a_repository_are_told(tmp_path: Path) -> None:
    one = findings(a_world(tmp_path, "fleet: {jobs: 0}\n"))["fleet-settings"]
    assert (one.mark, one.text) == (Mark.PROBLEM, "must be 1 or more, not 0")
    (tmp_path / "other").mkdir()
    lost = world(tmp_path / "other")
    assert "is in no git repository" in findings(lost)["fleet-settings"].text
