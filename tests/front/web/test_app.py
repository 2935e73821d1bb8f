"""The live pages: what a reader gets when something changes."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooda.front.web import app as feeds
from rooda.front.web import fragments
from rooda.front.web import sources as run_cards
from rooda.front.web.app import OneRunFeed, RunsFeed
from rooda.front.web.sources import RunCards
from rooda.views.machine_runs import TreeRun
from support.nights import RUN, STEP, at, iteration, night, results
from support.states import state_of
from support.web import Machine, reading, serving, write_log

SECRET = "correct-horse-battery"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def one_run(machine: Machine, address: str) -> OneRunFeed:
    sources = machine.sources
    return OneRunFeed(sources, sources.find(*address.split("/")))


def parts(feed: OneRunFeed | RunsFeed) -> dict[str, str]:
    return {one.part: one.html or one.text for one in feed.look()}


def test_run_sends_everything_at_first_and_then_only_what_has_changed(machine: Machine) -> None:
    address = machine.run_at_work("payments", iteration(1, results(4)))
    tree = machine.tree("payments")
    feed = one_run(machine, address)
    names = ["head", "timeline", "trends", "spent", "next", "i1", "trouble"]
    assert list(parts(feed)) == names
    assert parts(feed) == {}
    machine.run_at_work("payments", iteration(1, results(4)), iteration(2, results(5)))
    found = parts(feed)
    assert "i2" in found
    assert "i1" not in found
    machine.save(tree, night(ended_at=at(2 * STEP)))
    assert "success" in parts(feed)["head"]
    feed.close()


def test_words_come_as_they_are_written_and_without_secrets(machine: Machine) -> None:
    machine.more["SOME_TOKEN"] = SECRET
    address = machine.run_at_work()
    tree = machine.tree("payments")
    write_log(tree, b"first\n")
    feed = one_run(machine, address)
    assert parts(feed)[""] == "first\n"
    log = state_of(tree) / "runs" / RUN / "session.log"
    with log.open("ab") as file:
        file.write(f"\x1b[31m<b>key</b> {SECRET} \x1b[0mdone\n".encode())
    text = parts(feed)[""]
    assert "<b>key</b>" in text
    assert "\x1b" not in text
    assert SECRET not in text
    feed.close()


def test_times_of_a_run_at_work_grow(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_OLDEST", -1.0)
    working = iteration(1, ended_at=None, status="executing")
    feed = one_run(machine, machine.run_at_work("payments", working))
    before = parts(feed)
    monkeypatch.setattr(fragments, "run_parts", lambda *_: {"head": "later"})
    assert parts(feed) == {"head": "later"}
    assert "running" in before["head"]
    feed.close()


def test_record_that_is_gone_is_told(machine: Machine) -> None:
    address = machine.run_at_work()
    feed = one_run(machine, address)
    feed.look()
    (state_of(machine.tree("payments")) / "rooda.db").write_bytes(b"no database" * 1000)
    assert "can&#39;t be read" in parts(feed)["trouble"]
    feed.close()


def test_list_is_sent_again_when_a_run_starts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cards, "_PACE", 0.0)
    machine.good_run("shop")
    feed = RunsFeed(RunCards(machine.sources))
    assert list(parts(feed)) == ["at-work", "ended"]
    assert parts(feed) == {}
    machine.run_at_work("payments")
    found = parts(feed)
    assert list(found) == ["at-work"]
    assert "payments" in found["at-work"]
    feed.close()


def a_view(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript("drop table runs; create view runs as select 1")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a view": (a_view, "its table `runs` is missing, or is not the one that rooda makes"),
    "a pipe": (a_pipe, "rooda.db is not a file"),
    "a folder": (a_folder, "rooda.db is not a file"),
    "garbage": (lambda file: file.write_bytes(b"garbage " * 900), "file is not a database"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_list_names_a_record_that_cannot_be_read_and_shows_the_others(
    machine: Machine, how: str
) -> None:
    machine.good_run("shop")
    machine.good_run("broken")
    damage, words = BROKEN[how]
    damage(state_of(machine.tree("broken")) / "rooda.db")
    ended = parts(RunsFeed(RunCards(machine.sources)))["ended"]
    assert "<bdi>shop</bdi>" in ended
    assert words in ended
    assert str(machine.tree("broken")) in ended


def test_record_that_takes_long_does_not_hold_up_the_list(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cards, "_LONGEST", -1.0)
    machine.good_run("shop")
    cards = RunCards(machine.sources)
    assert cards.cards() == []
    assert "takes long to read" in cards.troubles[0]


def test_run_that_cannot_be_read_is_tried_again_only_when_its_record_changes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.good_run("shop")
    tries: list[str] = []

    def fail(run: TreeRun, _masker: object) -> None:
        tries.append(run.row.run)

    monkeypatch.setattr(run_cards, "_read", fail)
    monkeypatch.setattr(run_cards, "_PACE", -1.0)
    monkeypatch.setattr(run_cards, "_RARELY", -1.0)
    cards = RunCards(machine.sources)
    for _ in range(3):
        assert cards.cards() == []
        assert str(machine.tree("shop")) in cards.troubles[0]
    assert len(tries) == 1
    machine.good_run("shop")
    cards.cards()
    assert len(tries) > 1


def test_stream_of_a_run_has_its_page_and_its_words(machine: Machine) -> None:
    address = machine.run_at_work("payments", iteration(1, results(4)))
    write_log(machine.tree("payments"), b"hello\n")

    async def read() -> list[dict[str, Any]]:
        async with serving(machine) as app, reading(app, f"/api/live/run/{address}") as lines:
            return [await asyncio.wait_for(lines.get(), 20) for _ in range(8)]

    got = asyncio.run(read())
    assert got[0]["part"] == "head"
    assert got[-1] == {"text": "hello\n", "first": True}


def test_stream_of_the_list_ends_when_the_reader_leaves(machine: Machine) -> None:
    machine.good_run()

    async def read() -> str:
        async with serving(machine) as app:
            async with reading(app, "/api/live/runs") as lines:
                first = await asyncio.wait_for(lines.get(), 20)
            return str(first["part"])

    assert asyncio.run(read()) == "at-work"
