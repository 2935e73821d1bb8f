"""Tasks are added to git and to the database, both or neither; mistakes are found at once."""

from pathlib import Path

import pytest
from msgspec import json

from rooda.base.problems import InvalidInput
from rooda.fleet.actions.add_tasks import (
    Added,
    add_tasks,
    check_is_shared,
    config_file_is_committed,
    find_base,
    records_of,
    with_bases,
)
from rooda.fleet.place import Place, find_place, make_state
from rooda.fleet.remote.own_fence import make_fence
from rooda.fleet.run_model import Batch, FleetTask
from rooda.plan.settings.fleet_values import read_fleet
from rooda.world.git.git import Git
from rooda.world.tools import Tools
from support.config import world
from support.gitrepo import git

TASKS = [FleetTask("auth", "Auth", "Write auth."), FleetTask("api", "API", "Write the API.")]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def place_of(repo: Path, config: str = "fleet:\n") -> tuple[Place, Tools, Git]:
    values, _ = read_fleet(world(repo, workspace=config), {})
    tools = Tools(folders=[repo])
    return find_place(repo, values, tools), tools, Git(repo, tools)


def fence_of(place: Place, tools: Tools) -> Path:
    """Return the repository that has the records of a place, and make it."""
    make_state(place)
    assert place.fence is not None
    make_fence(place.fence, place.git_dir, tools)
    return place.fence


def refs_of(repo: Path) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(refname)").splitlines()


@pytest.mark.real
def test_the_record_of_a_new_run_has_its_task_and_its_batch(repo: Path) -> None:
    place, tools, _ = place_of(repo)
    batch = Batch("night", git(repo, "rev-parse", "HEAD"), "main", ("--ai-cmd", "agent"))
    fence = fence_of(place, tools)
    add_tasks(place, batch, TASKS, tools, list)
    assert refs_of(repo) == ["refs/heads/main"]
    assert refs_of(fence) == ["refs/rooda/fleet/api", "refs/rooda/fleet/auth"]
    kept = json.decode(git(fence, "show", "refs/rooda/fleet/auth:task.json"), type=Added)
    assert kept == Added(TASKS[0], batch, number=1)
    with pytest.raises(InvalidInput, match="already has") as caught:
        add_tasks(place, batch, TASKS, tools, list)
    assert "rooda fleet adopt" in caught.value.problems[0].suggestion
    for ref in ("refs/rooda/fleet/api", "refs/rooda/fleet/auth"):
        git(fence, "update-ref", "-d", ref)
    git(repo, "branch", "rooda/api")  # as `forget` leaves one that is not merged
    with pytest.raises(InvalidInput, match="already has refs/heads/rooda/api") as caught:
        add_tasks(place, batch, TASKS, tools, list)
    assert "git branch -m rooda/api NAME" in caught.value.problems[0].suggestion


@pytest.mark.parametrize(
    "flags,kept,left_out",
    [
        (("--env", "MODE=s3cr3t"), (), ("--env MODE",)),
        (("--env=MODE=s3cr3t",), (), ("--env MODE",)),
        (("--env", "A=s3cr3t", "--env", "none"), ("--env", "none"), ("--env A",)),
        (("--ai-cmd", "agent --api-key s3cr3t", "--commit"), ("--commit",), ("--ai-cmd",)),
        (("--commit", "--verify", "K_TOKEN=s3cr3t make"), ("--commit",), ("--verify",)),
        (("--ai-flags", "--api-key=s3cr3t"), ("--ai-flags",), ("--api-key",)),
        (("--ai-cmd=agent --api-key=s3cr3t",), (), ("--ai-cmd",)),
        (("https://me:s3cr3t@host/",), (), ("https://me:...@host/",)),
    ],
)
def test_git_gets_no_secret_value_of_a_flag(
    flags: tuple[str, ...], kept: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    ((name, files),) = records_of(Batch("night", "x", flags=flags), TASKS[:1])
    assert name == "auth"
    assert b"s3cr3t" not in files["task.json"]
    found = json.decode(files["task.json"], type=Added)
    assert (found.batch.flags, found.left_out) == (kept, left_out)


@pytest.mark.real
def test_without_the_rows_there_are_no_records(repo: Path) -> None:
    place, tools, _ = place_of(repo)
    fence = fence_of(place, tools)

    def fail() -> None:
        raise RuntimeError("the database is away")

    with pytest.raises(RuntimeError):
        add_tasks(place, Batch("night", "x"), TASKS, tools, fail)
    assert refs_of(repo) == ["refs/heads/main"]
    assert refs_of(fence) == []

    def fail_without_git() -> None:
        repo.rename(repo.with_name("away"))
        fail()

    with pytest.raises(RuntimeError, match="the database is away"):
        add_tasks(place, Batch("night", "x"), TASKS, tools, fail_without_git)


@pytest.mark.real
def test_the_base_is_a_commit_and_its_branch(repo: Path) -> None:
    _, _, here = place_of(repo)
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "old")
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    assert find_base(here, None).branch == "main"
    assert (find_base(here, "old").commit, find_base(here, "old").branch) == (first, "old")
    assert (find_base(here, "HEAD~1").commit, find_base(here, "HEAD~1").branch) == (first, "")
    assert with_bases([FleetTask("a", base="old"), FleetTask("b")], here)[0].base == first
    with pytest.raises(InvalidInput, match="the task a: there is no commit 'gone'"):
        with_bases([FleetTask("a", base="gone")], here)
    for wrong in ("gone", "--all", "HEAD:file"):
        with pytest.raises(InvalidInput, match="there is no commit"):
            find_base(here, wrong)


@pytest.mark.real
def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    git(tmp_path / "new", "init", "-q")
    with pytest.raises(InvalidInput, match="no commit yet"):
        find_base(Git(tmp_path / "new", Tools()), None)


@pytest.mark.real
def test_a_commit_that_other_machines_lack_is_refused(repo: Path, tmp_path: Path) -> None:
    git(tmp_path / "hub.git", "init", "-q", "--bare")
    git(repo, "remote", "add", "origin", str(tmp_path / "hub.git"))
    place, _, here = place_of(repo, "fleet: {url: 'postgresql://db/x'}\n")
    commit = git(repo, "rev-parse", "HEAD")
    with pytest.raises(InvalidInput, match="no branch of a remote"):
        check_is_shared(place, here, [commit])
    git(repo, "push", "-q", "origin", "main")
    check_is_shared(place, here, [commit])
    git(repo, "commit", "-q", "--allow-empty", "-m", "not pushed")
    check_is_shared(place_of(repo)[0], here, [git(repo, "rev-parse", "HEAD")])


@pytest.mark.real
def test_a_config_file_that_slots_do_not_see_is_found(repo: Path) -> None:
    _, _, here = place_of(repo)
    file = repo / "rooda-config.yml"
    file.write_text("loop:\n")
    assert not config_file_is_committed(here, file)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "config")
    assert config_file_is_committed(here, file)
    file.write_text("loop: {}\n")
    assert not config_file_is_committed(here, file)
