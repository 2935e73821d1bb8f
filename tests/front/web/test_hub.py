"""Feeds are shared, and no reader can hold up another one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from rooda.front.web import hub as module
from rooda.front.web.hub import Hub, Message, Threads


class Script:
    """A feed that says what a test tells it to say."""

    def __init__(self) -> None:
        self.next: list[Sequence[Message]] = []
        self.looks = 0
        self.is_closed = False

    def look(self) -> Sequence[Message]:
        self.looks += 1
        return self.next.pop(0) if self.next else []

    def close(self) -> None:
        self.is_closed = True


class Bench:
    """A hub with one feed; `made` counts how often the feed was made."""

    def __init__(self, threads: Threads) -> None:
        self.feed = Script()
        self.made = 0
        self.troubles: list[str] = []
        self.hub = Hub(threads, 0.005, lambda name, error: self.troubles.append(f"{name}: {error}"))

    def make(self) -> Script:
        self.made += 1
        return self.feed

    def reading(self) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.hub.reading("one", self.make)


def with_bench(test: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        threads = Threads()
        try:
            async with asyncio.timeout(20):
                await test(Bench(threads))
        finally:
            threads.close()

    asyncio.run(run())


async def heard(lines: AsyncIterator[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await anext(lines)).splitlines()]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - it waits for what a thread does
        await asyncio.sleep(0.002)


def test_readers_share_one_feed_and_a_late_one_gets_all_that_is_known() -> None:
    async def test(bench: Bench) -> None:
        bench.feed.next = [
            [Message(part="head", html="1"), Message(text="one ")],
            [Message(part="head", html="2"), Message(text="two")],
        ]
        async with bench.reading() as first:
            got: list[dict[str, Any]] = []
            while {"text": "two"} not in got:
                got += await heard(first)
            assert got[:2] == [{"part": "head", "html": "1"}, {"text": "one ", "first": True}]
            async with bench.reading() as second:
                state = [{"part": "head", "html": "2"}, {"text": "one two", "first": True}]
                assert await heard(second) == state
                bench.feed.next = [[Message(text="!")]]
                assert [await heard(one) for one in (first, second)] == [[{"text": "!"}]] * 2
        assert bench.made == 1

    with_bench(test)


def test_a_feed_without_readers_is_closed_and_not_looked_at() -> None:
    async def test(bench: Bench) -> None:
        async with bench.reading():
            await until(lambda: bench.feed.looks > 2)
        await until(lambda: bench.feed.is_closed)
        looks = bench.feed.looks
        await asyncio.sleep(0.05)
        assert (bench.feed.looks, bench.hub.names) == (looks, [])
        async with bench.reading():
            assert bench.made == 2

    with_bench(test)


def test_a_reader_that_does_not_read_is_dropped_and_the_others_hear_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 1000)

    async def test(bench: Bench) -> None:
        async with bench.reading() as stuck, bench.reading() as good:
            await until(lambda: bench.feed.looks > 0)
            for number in range(10):
                bench.feed.next.append([Message(text=str(number) * 200)])
                assert (await heard(good))[0]["text"] == str(number) * 200
            assert [line async for line in stuck] == []

    with_bench(test)


def test_a_quiet_feed_sends_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT", 0.02)

    async def test(bench: Bench) -> None:
        async with bench.reading() as lines:
            assert [await heard(lines) for _ in range(3)] == [[{}]] * 3

    with_bench(test)


def test_a_feed_that_fails_ends_its_streams_and_is_reported() -> None:
    async def test(bench: Bench) -> None:
        bench.feed.next = [iter(())]  # type: ignore[list-item]

        def fail() -> Sequence[Message]:
            raise ValueError("no such table")

        bench.feed.look = fail  # type: ignore[method-assign]
        async with bench.reading() as lines:
            assert [line async for line in lines] == []
        assert bench.troubles == ["one: no such table"]
        await until(lambda: bench.feed.is_closed)

    with_bench(test)


def test_closing_the_hub_ends_all_streams_and_refuses_new_ones() -> None:
    async def test(bench: Bench) -> None:
        async with bench.reading() as one, bench.reading() as other:
            bench.hub.close()
            assert [line async for line in one] == [line async for line in other] == []
        async with bench.reading() as late:
            assert [line async for line in late] == []

    with_bench(test)
