"""Snapshots of version 0.1, which are commits in the user's repository, move to the store."""

import json
from pathlib import Path

import pytest

from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.git.snapshots.takeover import store_to_read
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools
from support.gitrepo import Repo, repository, walk

pytestmark = pytest.mark.real


def old_snapshot(repo: Repo, name: str, *notes: str) -> str:
    """Keep all files as version 0.1 did; return the tree."""
    repo.git("add", "-A")
    tree = repo.git("write-tree")
    message = "\n".join((f"rooda {name}", "", *notes, ""))
    commit = repo.git("commit-tree", "-p", "HEAD", tree, given=message.encode())
    repo.git("update-ref", f"refs/rooda/{name}", commit)
    return tree


@pytest.fixture(params=[(), ("--object-format=sha256",)], ids=["sha1", "sha256"])
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Repo:
    found = repository(tmp_path / "repo", *request.param)
    found.write("a.txt", "alpha\n")
    found.write("secret", "x").chmod(0o640)
    found.commit()
    return found


def test_old_snapshots_are_restored_from_the_store_and_their_refs_are_gone(repo: Repo) -> None:
    before = walk(repo.path)
    note = f"Mode 640: {json.dumps('secret')}"
    trees = [old_snapshot(repo, "20260101-000000-abcdef/0", note)]
    repo.write("a.txt", "changed\n")
    repo.write("new", "x")
    trees.append(old_snapshot(repo, "20260101-000000-abcdef/1", 'Left out: "large"'))
    repo.git("update-ref", "refs/rooda/fleet/3", "HEAD")
    snapshots = repo.open()
    run = "20260101-000000-abcdef"
    assert snapshots.names(run) == ("0", "1")
    assert [snapshots.tree_of(run, name) for name in ("0", "1")] == trees
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/rooda") == "refs/rooda/fleet/3"
    (repo.path / "secret").unlink()
    repo.sh("rm -rf .git")
    snapshots.restore(run, "0", "u1")
    assert walk(repo.path) == before
    assert (repo.path / "secret").stat().st_mode & 0o777 == 0o640
    repo.store("fsck", "--strict")


def test_old_snapshots_stay_where_they_are_if_the_user_chose_the_folder_of_the_record(
    repo: Repo,
) -> None:
    old_snapshot(repo, "run/0")
    chosen, tools = StateFolder(repo.path.with_name("chosen")), Tools(repo.environ, [repo.path])
    store_to_read(repo.path, chosen, tools)
    Snapshots.open(repo.path, chosen, tools)
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/rooda") == "refs/rooda/run/0"
    assert not chosen.exists()
    assert repo.open().names("run") == ("0",)


def test_old_snapshots_stay_where_they_are_if_a_content_is_missing(repo: Repo) -> None:
    tree = old_snapshot(repo, "run/0")
    blob = repo.git("rev-parse", f"{tree}:a.txt")
    (repo.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    snapshots = repo.open()
    assert snapshots.names("run") == ()
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/rooda") == "refs/rooda/run/0"
    assert repo.files_of(snapshots.take("next", "0")).keys() == {"a.txt", "secret"}
