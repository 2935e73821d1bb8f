"""The runs of the machine, and one run as it goes on."""

import contextlib
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.base.secrets.masking import Masker
from rooda.record.rows import RunRow
from rooda.record.store import Store
from rooda.views.machine_runs import machine_runs
from rooda.views.run_feed import RunFeed
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import new_file
from rooda.world.state.home import tree_key
from rooda.world.state.lock_note import ProcessIdentity
from rooda.world.state.record_place import place_with_key
from support.record import EARLIER, RUN, a_run, an_iteration
from support.states import own_state_home, record_at, remember, state_of

SECRET = "correct-horse-battery"


@pytest.fixture
def environ() -> Mapping[str, str]:
    return {**own_state_home(), "SOME_TOKEN": SECRET}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tree: Path) -> Iterator[Store]:
    with contextlib.closing(Store(state_of(tree), print)) as opened:
        yield opened


def _of(identity: ProcessIdentity, run: str = RUN) -> RunRow:
    row = replace(a_run(run), pid=identity.pid, pid_started=identity.started)
    return replace(row, host=identity.host, boot=identity.boot)


def _log(tree: Path, text: bytes) -> None:
    with new_file(state_of(tree), f"runs/{RUN}/session.log") as file:
        file.write(text)


# -- all runs --------------------------------------------------------------------------------


def test_runs_at_work_come_first_then_the_newest(
    tmp_path: Path, store: Store, tree: Path, environ: Mapping[str, str]
) -> None:
    store.save(replace(_of(ProcessIdentity.own()), started_at="2020-01-01T00:00:00+00:00"))
    remember(tree)
    other = tmp_path / "other"
    other.mkdir()
    with contextlib.closing(Store(state_of(other), print)) as more:
        for name, day in (("a", "2025-03-02"), ("b", "2025-03-03")):
            moment = f"{day}T10:00:00+00:00"
            more.save(replace(a_run(name, "success"), started_at=moment, ended_at=moment))
    remember(other)
    found = machine_runs(Masker(environ), environ)
    assert [(one.tree, one.row.run) for one in found] == [(tree, RUN), (other, "b"), (other, "a")]
    (record,) = [place_with_key(found[0].key, environ)]
    assert record is not None
    assert record.tree == tree
    assert place_with_key("../../etc", environ) is None


def test_secrets_of_runs_are_masked(store: Store, tree: Path, environ: Mapping[str, str]) -> None:
    store.save(replace(a_run(status="success"), command=f"agent {SECRET}"))
    remember(tree)
    (found,) = machine_runs(Masker(environ), environ)
    assert SECRET not in str(found.row.command)


def test_a_record_that_cannot_be_read_is_named(
    store: Store, tree: Path, environ: Mapping[str, str]
) -> None:
    store.close()
    (state_of(tree) / "rooda.db").write_bytes(b"not a database at all" * 100)
    remember(tree)
    troubles: list[tuple[Path, str]] = []
    assert machine_runs(Masker(), environ, on_trouble=lambda *what: troubles.append(what)) == []
    assert [one for one, _ in troubles] == [tree]


def test_a_record_that_a_program_keeps_locked_does_not_hide_the_others(
    tmp_path: Path, store: Store, tree: Path, environ: Mapping[str, str]
) -> None:
    store.save(a_run(status="success"))
    store.close()
    other = tmp_path / "other"
    other.mkdir()
    with contextlib.closing(Store(state_of(other), print)) as more:
        more.save(a_run("x", "success"))
    for one in (tree, other):
        remember(one)
    with contextlib.closing(sqlite3.connect(state_of(tree) / "rooda.db")) as agent:
        agent.execute("PRAGMA locking_mode = EXCLUSIVE")
        agent.execute("BEGIN EXCLUSIVE")
        troubles: list[Path] = []
        found = machine_runs(Masker(), environ, on_trouble=lambda one, _: troubles.append(one))
    assert [one.tree for one in found] == [other]
    assert troubles == [tree]


def test_times_that_an_agent_has_changed_do_no_harm(
    store: Store, tree: Path, environ: Mapping[str, str]
) -> None:
    store.save(replace(a_run(EARLIER, "success"), started_at="never"))
    store.save(replace(a_run("x", "success"), ended_at="2025-03-02T10:00:00+00:00"))
    remember(tree)
    assert [one.row.run for one in machine_runs(Masker(), environ)] == ["x", EARLIER]
    assert tree_key(tree) == machine_runs(Masker(), environ)[0].key


# -- one run ---------------------------------------------------------------------------------


def test_feed_tells_what_is_new_and_nothing_twice(store: Store, tree: Path) -> None:
    store.save(_of(ProcessIdentity.own()), an_iteration(1))
    _log(tree, b"first\n")
    with contextlib.closing(RunFeed(record_at(tree), RUN, Masker())) as feed:
        news = feed.look()
        assert news.summary is not None
        assert [one.number for one in news.summary.iterations] == [1]
        assert news.text == "first\n"
        again = feed.look()
        assert (again.summary, again.text) == (None, "")
        store.save(iteration=an_iteration(2))
        with (state_of(tree) / f"runs/{RUN}/session.log").open("ab") as file:
            file.write(f"said \x1b[31m{'x'} ghp_{'a1B2' * 9}\n".encode())
        news = feed.look()
        assert news.summary is not None
        assert [one.number for one in news.summary.iterations] == [1, 2]
        assert news.text.startswith("said x ")
        assert "a1B2a1B2a1B2" not in news.text
        store.save(replace(_of(ProcessIdentity.own()), status="success", ended_at="2025-03-02"))
        news = feed.look()
        assert news.summary is not None
        assert not news.summary.is_running
        assert feed.look().summary is None


@pytest.mark.real
def test_a_run_that_is_killed_is_news_although_no_file_changes(store: Store, tree: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        own = ProcessIdentity.own()
        started = start_time(process.pid)
        assert started is not None
        store.save(_of(replace(own, pid=process.pid, started=started)))
        with contextlib.closing(RunFeed(record_at(tree), RUN, Masker())) as feed:
            first = feed.look().summary
            assert first is not None
            assert first.is_running
            process.kill()
            process.wait()
            then = feed.look().summary
            assert then is not None
            assert then.status == "interrupted"


def test_of_a_long_log_the_feed_shows_the_end(store: Store, tree: Path) -> None:
    store.save(_of(ProcessIdentity.own()))
    _log(tree, b"".join(b"line %06d\n" % number for number in range(200_000)))
    with contextlib.closing(RunFeed(record_at(tree), RUN, Masker())) as feed:
        text = feed.look().text
        assert text.startswith("[...]\nline ")
        assert text.endswith("line 199999\n")
        assert len(text) < 70_000
        with (state_of(tree) / f"runs/{RUN}/session.log").open("ab") as file:
            file.write(b"".join(b"more %06d\n" % number for number in range(200_000)))
        text = feed.look().text
        assert text.startswith("[...]\nmore ")
        assert text.endswith("more 199999\n")


def test_a_log_that_is_replaced_or_cut_is_read_again(store: Store, tree: Path) -> None:
    store.save(_of(ProcessIdentity.own()))
    with contextlib.closing(RunFeed(record_at(tree), RUN, Masker())) as feed:
        assert feed.look().text == ""
        _log(tree, b"the first one\n")
        assert feed.look().text == "the first one\n"
        _log(tree, b"another\n")
        assert feed.look().text == "another\n"
        with (state_of(tree) / f"runs/{RUN}/session.log").open("r+b") as file:
            file.truncate(0)
            file.write(b"cut\n")
        assert feed.look().text == "cut\n"
        (state_of(tree) / f"runs/{RUN}/session.log").unlink()
        (state_of(tree) / f"runs/{RUN}/session.log").symlink_to("/etc/passwd")
        assert feed.look().text == ""


def test_a_record_that_is_gone_is_trouble_and_no_crash(store: Store, tree: Path) -> None:
    store.save(_of(ProcessIdentity.own()))
    with contextlib.closing(RunFeed(record_at(tree), RUN, Masker())) as feed:
        assert feed.look().trouble == ""
        (state_of(tree) / "rooda.db").write_bytes(b"broken" * 1000)
        for name in ("rooda.db-wal", "rooda.db-shm"):
            (state_of(tree) / name).unlink(missing_ok=True)
        assert feed.look().trouble
