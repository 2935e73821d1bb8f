"""Who owns a run, and whose work counts, is decided by the git server."""

import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rooda.fleet.remote.fence import (
    FALLBACK,
    RECORD_PLACES,
    AlreadyThere,
    BrokenRecord,
    Refused,
    Remote,
    scratch_remote,
)
from rooda.fleet.remote.mirror import BranchMoved
from rooda.fleet.remote.patience import until_reached
from rooda.fleet.remote.probe import probe
from rooda.fleet.remote.record_commits import Move, Record, RecordKind
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import RunState
from rooda.world.tools import Tools
from support.fleetwork import TASK, changes_since, fingerprint, remote_of, user_repository
from support.gitrepo import Repo, repository

pytestmark = pytest.mark.real


@pytest.fixture
def server(tmp_path: Path) -> Repo:
    """A bare repository with one commit on its branch."""
    repo = repository(tmp_path / "user")
    repo.write("a.txt", "one\n")
    repo.commit("first")
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "server.git"))
    return Repo(tmp_path / "server.git", repo.environ)


def commit_in(remote: Remote, server: Repo, text: str, parent: str | None = None) -> str:
    """Return a commit with one file, made in the repository of the remote."""
    here = Repo(remote.git_dir, server.environ)
    blob = here.git("hash-object", "-w", "--stdin", given=text.encode())
    tree = here.git("mktree", given=f"100644 blob {blob}\tb.txt\n".encode())
    parents = ("-p", parent) if parent else ()
    return here.git("commit-tree", tree, "-m", text, *parents)


def refs(server: Repo) -> dict[str, str]:
    lines = server.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return {ref: sha for ref, _, sha in (line.partition(" ") for line in lines)}


def records(remote: Remote) -> list[str]:
    """Return the names of the runs that have a record on the remote."""
    found = remote.look(*(f"{place}*" for place in RECORD_PLACES))
    return sorted(ref.rpartition("/")[2] for ref in found)


def seen(remote: Remote, run: str = "api") -> Record:
    record = remote.fetch(run)
    assert record is not None
    return record


def test_a_run_is_added_claimed_published_and_read_elsewhere(tmp_path: Path, server: Repo) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    other = remote_of(str(server.path), tmp_path / "two", server)
    assert remote.fetch("api") is None
    remote.add([("api", TASK), ("web", TASK)])
    assert records(remote) == ["api", "web"]
    added = seen(other)
    assert (added.kind, added.branch, added.tip, added.start) == (
        RecordKind.ADDED,
        None,
        None,
        None,
    )
    assert added.task == TASK["task.json"]

    owned = remote.claim("api", added, "host/1")
    assert (owned.owner, owned.claims_since, owned.kind) == ("host/1", 1, RecordKind.CLAIM)
    assert remote.claim("api", owned, "host/1").claims_since == 2
    owned = seen(remote)
    tip = commit_in(remote, server, "work")
    wip = commit_in(remote, server, "more", tip)
    published = remote.publish(
        "api",
        owned,
        kind=RecordKind.DONE,
        iteration=1,
        tip=tip,
        wip=wip,
        files={"result.json": b"{}", "record.json": b"[]"},
    )
    found = seen(other)
    assert found == published
    assert (found.kind, found.iteration, found.claims_since) == (RecordKind.DONE, 1, 0)
    assert (found.branch, found.tip, found.wip) == (tip, tip, wip)
    assert (found.task, found.result, found.record) == (TASK["task.json"], b"{}", b"[]")
    there = Repo(other.git_dir, server.environ)
    assert there.git("show", f"{wip}:b.txt") == "more"
    chain = server.git("log", "--first-parent", "--format=%an %s", "refs/rooda/fleet/api")
    assert chain.splitlines() == [
        *("rooda done 1", "rooda claim host/1", "rooda claim host/1", "rooda added")
    ]


def test_a_limit_does_not_count_as_an_iteration_and_an_end_tells_its_state(
    tmp_path: Path, server: Repo
) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    tip = commit_in(remote, server, "work")
    record = remote.claim("api", seen(remote), "w")
    for kind, iteration, state, last in (
        (RecordKind.DONE, 1, None, 1),
        (RecordKind.WAITING, 2, None, 1),
        (RecordKind.ENDED, 2, RunState.SUCCESS, 2),
    ):
        record = remote.publish(
            *("api", record),
            kind=kind,
            iteration=iteration,
            tip=tip,
            wip=None,
            files={},
            state=state,
        )
        assert (seen(remote).iteration, seen(remote).state) == (last, state)
    assert server.git("log", "-1", "--format=%s", "refs/rooda/fleet/api") == "ended success"


def test_names_that_the_remote_has_are_refused_and_nothing_is_added(
    tmp_path: Path, server: Repo
) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    server.git("branch", "rooda/web", "main")
    before = refs(server)
    with pytest.raises(AlreadyThere, match="refs/heads/rooda/web"):
        remote.add([("api", TASK), ("web", TASK)])
    assert refs(server) == before
    remote.add([("api", TASK)])
    other = remote_of(str(server.path), tmp_path / "two", server)
    with pytest.raises(AlreadyThere, match="refs/rooda/fleet/api"):
        other.add([("api", TASK)])


@pytest.mark.long
def test_of_several_that_claim_a_run_at_once_exactly_one_wins(tmp_path: Path, server: Repo) -> None:
    remotes = [remote_of(str(server.path), tmp_path / str(n), server) for n in range(3)]
    remotes[0].add([("api", TASK)])
    for _ in range(6):
        record = seen(remotes[0])
        outcomes: list[str] = []
        gate = threading.Barrier(len(remotes))

        def claim(number: int, record: Record = record, gate: threading.Barrier = gate) -> None:
            assert remotes[number].fetch("api") == record
            gate.wait()
            try:
                outcomes.append(remotes[number].claim("api", record, "same name").sha)  # noqa: B023
            except Refused:
                outcomes.append("refused")  # noqa: B023

        threads = [threading.Thread(target=claim, args=(n,)) for n in range(len(remotes))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert outcomes.count("refused") == len(remotes) - 1
        assert seen(remotes[0]).sha in outcomes


def test_an_owner_that_wakes_up_after_a_takeover_publishes_nothing(
    tmp_path: Path, server: Repo
) -> None:
    old = remote_of(str(server.path), tmp_path / "old", server)
    new = remote_of(str(server.path), tmp_path / "new", server)
    old.add([("api", TASK)])
    asleep = old.claim("api", seen(old), "old")
    new.claim("api", seen(new), "new")
    before = refs(server)
    tip = commit_in(old, server, "late")
    with pytest.raises(Refused, match="another owner"):
        old.publish("api", asleep, kind=RecordKind.DONE, iteration=1, tip=tip, wip=None, files={})
    with pytest.raises(Refused):
        old.claim("api", asleep, "old")
    assert refs(server) == before


def test_a_branch_that_a_person_moved_is_not_overwritten(tmp_path: Path, server: Repo) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    record = remote.claim("api", seen(remote), "w")
    theirs = server.git("rev-parse", "main")
    server.git("branch", "rooda/api", "main")
    before = refs(server)
    tip = commit_in(remote, server, "work")
    with pytest.raises(BranchMoved) as caught:
        remote.publish(
            "api", record, kind=RecordKind.DONE, iteration=1, tip=tip, wip=None, files={}
        )
    assert caught.value.actual == theirs
    assert refs(server) == before
    kept = remote.publish(
        *("api", record),
        kind=RecordKind.ENDED,
        iteration=1,
        tip=tip,
        wip=None,
        files={},
        state=RunState.CONFLICT,
        keep_branch=True,
    )
    assert (kept.branch, seen(remote).branch, seen(remote).tip) == (None, theirs, tip)
    assert seen(remote).start == theirs
    server.git("branch", "-D", "rooda/api")
    assert seen(remote).start == tip


@pytest.mark.parametrize("claimed_since", [False, True])
def test_a_push_that_the_server_took_before_the_connection_died_is_published(
    tmp_path: Path, server: Repo, *, claimed_since: bool
) -> None:
    other = remote_of(str(server.path), tmp_path / "two", server)
    other.add([("api", TASK)])
    dying = tmp_path / "receive-pack"
    # The answer to the client is lost: it gets the refs, and nothing after its push.
    dying.write_text('#!/bin/sh\ngit receive-pack "$@" | head -c "$(cat "$0.bytes")"\nkill -9 $$\n')
    dying.chmod(0o755)
    advertised = subprocess.run(
        ["git", "receive-pack", "--http-backend-info-refs", str(server.path)],
        capture_output=True,
        check=True,
    ).stdout
    Path(f"{dying}.bytes").write_text(str(len(advertised)))
    remote = remote_of(
        str(server.path), tmp_path / "one", server, receive_pack=shlex.quote(str(dying))
    )
    errors = act_after_push(
        remote, lambda: other.claim("api", seen(other), "late") if claimed_since else None
    )
    owned = remote.claim("api", seen(remote), "w")
    assert "hung up" in str(errors[0])
    assert (seen(other).owner, seen(other).claims_since) == (
        ("late", 2) if claimed_since else ("w", 1)
    )
    assert server.git("merge-base", "--is-ancestor", owned.sha, seen(other).sha) == ""


def act_after_push(remote: Remote, act: Callable[[], object]) -> list[Unreachable | None]:
    """Act between a push and the look at what became of it; return what git says of the pushes."""
    push, errors = remote.push, list[Unreachable | None]()

    def push_then_act(moves: Sequence[Move], *, atomic: bool = True) -> Unreachable | None:
        error = push(moves, atomic=atomic)
        errors.append(error)
        act()
        return error

    remote.push = push_then_act  # type: ignore[method-assign]
    return errors


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "facts",
    [
        '{"kind":"done","tip":"--upload-pack=touch owned"}',
        '{"kind":"done","wip":"HEAD\\nmerge HEAD"}',
        '{"kind":"claim","claims":-1000}',
        '{"kind":"ended","state":"gone"}',
        "no facts",
    ],
)
def test_a_forged_record_is_refused_at_once_and_no_word_of_it_reaches_git(
    tmp_path: Path, server: Repo, facts: str
) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    forged = server.git("commit-tree", "main^{tree}", "-m", f"done 1\n\n{facts}")
    server.git("update-ref", "refs/rooda/fleet/api", forged)
    waits: list[str] = []
    with pytest.raises(BrokenRecord, match="refs/rooda/fleet/api can't be read"):
        until_reached(lambda: remote.fetch("api"), is_stopped=lambda: False, tell=waits.append)
    assert waits == []


def test_a_remote_that_is_away_is_asked_again_until_it_is_back(
    tmp_path: Path, server: Repo
) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    record = seen(remote)
    away = server.path.rename(tmp_path / "away.git")
    told: list[str] = []

    def tell(reason: str) -> None:
        told.append(reason)
        if reason and away.exists() and len(told) == 2:
            away.rename(server.path)

    owned = until_reached(
        lambda: remote.claim("api", record, "w"), is_stopped=lambda: False, tell=tell, first=0.01
    )
    assert seen(remote) == owned
    assert "does not appear to be a git repository" in told[0]
    assert told[-1] == ""
    server.path.rename(away)
    with pytest.raises(Unreachable):
        until_reached(lambda: remote.fetch("api"), is_stopped=lambda: True, tell=told.append)


def test_credentials_of_the_address_are_in_no_message(tmp_path: Path, server: Repo) -> None:
    for url in ("https://me:pass-word@127.0.0.1:1/x.git", "https://some-token@127.0.0.1:1/x.git"):
        remote = remote_of(url, tmp_path / str(len(url)), server)
        with pytest.raises(Unreachable) as caught:
            remote.look()
        assert "127.0.0.1" in str(caught.value)
        for text in (str(caught.value), remote.shown):
            assert "pass-word" not in text
            assert "some-token" not in text


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("address", ["{user}", "{user}/.git", "file://{user}/.git", "{user}.kept"])
def test_the_users_repository_gets_refs_and_objects_and_nothing_else(
    tmp_path: Path, address: str
) -> None:
    user = user_repository(tmp_path / "user")
    if address.endswith(".kept"):  # git init --separate-git-dir
        (user.path / ".git").rename(tmp_path / "user.kept")
        user.write(".git", f"gitdir: {tmp_path}/user.kept\n")
    before = fingerprint(user)
    with scratch_remote(address.format(user=user.path), Tools(user.environ)) as remote:
        remote.add([("api", TASK)])
        owned = remote.claim("api", seen(remote), "w")
        tip = commit_in(remote, user, "work")
        remote.publish("api", owned, kind=RecordKind.DONE, iteration=1, tip=tip, wip=None, files={})
        assert changes_since(before, user, is_shared=True) == []
        assert not (user.path / "HOOK-RAN").exists()
        remote.delete("api", seen(remote))
        assert remote.fetch("api") is None
    assert changes_since(before, user, is_shared=True) == []
    assert refs(user).keys() == {"refs/heads/main", "refs/stash"}


def test_a_branch_that_the_user_has_checked_out_waits_with_a_clear_reason(tmp_path: Path) -> None:
    user = repository(tmp_path / "user")
    user.commit("first")
    remote = remote_of(str(user.path), tmp_path / "one", user)
    remote.add([("api", TASK)])
    record = seen(remote)
    first, second = (commit_in(remote, user, text) for text in ("one", "two"))

    def publish(record: Record, iteration: int, tip: str) -> Record:
        return remote.publish(
            *("api", record), kind=RecordKind.DONE, iteration=iteration, tip=tip, wip=None, files={}
        )

    record = publish(record, 1, first)
    user.git("switch", "-q", "rooda/api")
    with pytest.raises(Unreachable, match=r"refs/heads/rooda/api is checked out in .* switch to"):
        publish(record, 2, second)
    with pytest.raises(Unreachable, match="is checked out"):
        remote.delete("api", record)
    user.git("switch", "-q", "main")
    publish(record, 2, second)
    assert user.git("rev-parse", "rooda/api") == second


def test_a_run_that_moved_is_not_deleted(tmp_path: Path, server: Repo) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    record = seen(remote)
    remote.claim("api", record, "w")
    with pytest.raises(Refused):
        remote.delete("api", record)
    assert records(remote) == ["api"]


NO_CUSTOM_REFS = 'case "$1" in refs/heads/*) ;; *) echo "deny" >&2; exit 1;; esac'
PROBES = {
    "all": ("", (True, True, True)),
    "no custom refs": (NO_CUSTOM_REFS, (True, True, False)),
    "nothing": ("exit 1", (False, False, False)),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_tells_what_the_remote_can_do_and_leaves_nothing(
    tmp_path: Path, server: Repo, name: str
) -> None:
    hook, (can_push, is_atomic, custom) = PROBES[name]
    server.write("hooks/update", f"#!/bin/sh\n{hook}\n").chmod(0o755)
    before = refs(server)
    found = probe(remote_of(str(server.path), tmp_path / "one", server))
    assert (found.can_push, found.is_atomic, found.takes_custom_refs) == (
        *(can_push, is_atomic, custom),
    )
    assert bool(found.words) is (name != "all")
    assert refs(server) == before


def test_a_probe_without_atomic_pushes_says_so(tmp_path: Path, server: Repo) -> None:
    server.git("config", "receive.advertiseAtomic", "false")
    found = probe(remote_of(str(server.path), tmp_path / "one", server))
    assert (found.is_atomic, found.can_push, found.records) == (False, True, None)
    assert "atomic" in found.words
    gone = probe(remote_of(str(tmp_path / "none"), tmp_path / "two", server))
    assert not gone.is_reachable


def test_records_are_branches_where_the_server_takes_no_other_refs(
    tmp_path: Path, server: Repo
) -> None:
    server.write("hooks/update", f"#!/bin/sh\n{NO_CUSTOM_REFS}\n").chmod(0o755)
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    other = remote_of(str(server.path), tmp_path / "two", server)
    assert other.claim("api", seen(other), "w").ref == f"{FALLBACK}api"
    assert records(other) == ["api"]


def test_refs_that_moved_while_git_read_them_are_read_again(
    tmp_path: Path, server: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git saw the old branch, and then the new record."""
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    owned = remote.claim("api", seen(remote), "w")
    old, new = commit_in(remote, server, "old"), None
    for number, text in ((1, "old"), (2, "new")):
        new = commit_in(remote, server, text, new)
        owned = remote.publish(
            "api", owned, kind=RecordKind.DONE, iteration=number, tip=new, wip=None, files={}
        )
    look = remote.look
    answers = [{**look(), "refs/heads/rooda/api": old}]

    def torn(*patterns: str) -> dict[str, str]:
        return answers.pop() if answers else look(*patterns)

    monkeypatch.setattr(remote, "look", torn)
    record = seen(remote)
    assert (record.start, record.iteration) == (new, 2)


def test_a_lock_that_a_killed_git_left_is_removed_when_it_is_old(
    tmp_path: Path, server: Repo
) -> None:
    remote = remote_of(str(server.path), tmp_path / "one", server)
    remote.add([("api", TASK)])
    record = seen(remote)
    lock = server.path / "refs/rooda/fleet/api.lock"
    lock.touch()
    for _ in range(2):
        with pytest.raises(Unreachable, match=r"api\.lock"):
            remote.claim("api", record, "w")
        assert lock.exists()
    os.utime(lock, (1, 1))
    with pytest.raises(Unreachable):
        remote.claim("api", record, "w")
    assert remote.claim("api", record, "w").owner == "w"
