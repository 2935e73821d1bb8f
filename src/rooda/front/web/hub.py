"""Live feeds, each shared by all of its readers.

A feed is looked at only while it has readers. A reader has a bounded queue: if the queue is full,
the reader is dropped, and neither the feed nor the other readers wait.
"""

import asyncio
import contextlib
import json
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

# A few threads for everything that reads files, so that the event loop never waits for a disk.
#
# The threads are daemons: a command that ends does not wait for a report that nobody will read.


_T = TypeVar("_T")
_THREADS = 4
_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Threads:
    """Runs functions in threads; create it in the event loop that waits for them."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        for number in range(_THREADS):
            name = f"rooda-web-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, function: Callable[[], _T]) -> _T:
        """Return what the function returns."""
        future: asyncio.Future[_T] = self._loop.create_future()
        self._jobs.put((function, future))
        return await future

    def close(self) -> None:
        """End the threads, each after its current function."""
        for _ in range(_THREADS):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = function()
            except BaseException as raised:  # noqa: BLE001 - the caller gets it
                error = raised
            try:
                self._loop.call_soon_threadsafe(_settle, future, answer, error)
            except RuntimeError:  # the event loop has ended
                return


def _settle(future: "asyncio.Future[Any]", answer: object, error: BaseException | None) -> None:
    if future.done():  # the caller was canceled
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)


PACE = 0.5  # seconds between two looks
HEARTBEAT = 10.0  # seconds
_MOST_WAITING = 2 * 1024 * 1024  # bytes in the queue of one reader
_MOST_TEXT = 64 * 1024  # characters that a new reader gets
_BEAT = b"{}\n"


class Message(Struct, frozen=True):
    """One line for the readers: a part of the page, or new words of the agent.

    A new reader gets the last message of each `part`, and the end of all text.
    """

    part: str = ""
    html: str = ""
    text: str = ""

    def line(self, *, is_first: bool = False) -> bytes:
        """Return the line; `is_first`: the text replaces what the page has."""
        content: dict[str, str | bool] = {"part": self.part, "html": self.html}
        if not self.part:
            content = {"text": self.text, "first": True} if is_first else {"text": self.text}
        return json.dumps(content).encode() + b"\n"


class Feed(Protocol):
    """What a feed can do."""

    def look(self) -> Sequence[Message]:
        """Return what is new since the last look; called in a thread, never two at once."""

    def close(self) -> None:
        """Close files."""


class _Reader:
    """The queue of one reader."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.is_closed = False

    def put(self, line: bytes) -> None:
        """Add a line, or drop the reader if it does not keep up."""
        if self._size + len(line) > _MOST_WAITING:
            self.close()
        elif not self.is_closed:
            self._lines.append(line)
            self._size += len(line)
            self._news.set()

    def close(self) -> None:
        """End the stream of the reader; what waits in its queue is not sent."""
        self.is_closed = True
        self._news.set()

    async def next(self) -> bytes | None:
        """Return what has come, or a heartbeat; None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT):
                await self._news.wait()
        self._news.clear()
        if self.is_closed:
            return None
        found = b"".join(self._lines) or _BEAT
        self._lines.clear()
        self._size = 0
        return found


class _Channel:
    """One feed and its readers."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.readers: set[_Reader] = set()
        self.task: asyncio.Task[None] | None = None
        self._parts: dict[str, bytes] = {}
        self._text = ""
        self._has_looked = False

    def join(self) -> _Reader:
        """Add a reader, which gets all that is known."""
        reader = _Reader()
        self.readers.add(reader)
        if self._has_looked:
            for line in self._parts.values():
                reader.put(line)
            reader.put(Message(text=self._text).line(is_first=True))
        return reader

    def tell(self, messages: Sequence[Message]) -> None:
        """Send messages to all readers."""
        is_first = not self._has_looked
        self._has_looked = True
        for message in messages:
            line = message.line(is_first=is_first)
            if message.part:
                self._parts[message.part] = line
            else:
                self._text = (self._text + message.text)[-_MOST_TEXT:]
            for reader in self.readers:
                reader.put(line)


class Hub:
    """All feeds that have readers."""

    def __init__(
        self,
        threads: Threads,
        pace: float | None = None,
        on_trouble: Callable[[str, Exception], None] = lambda _name, _error: None,
    ) -> None:
        """`on_trouble` gets the name of a feed that failed, and why."""
        self._threads = threads
        self._on_trouble = on_trouble
        self._pace = PACE if pace is None else pace
        self._channels: dict[str, _Channel] = {}
        self._is_closed = False

    @property
    def names(self) -> list[str]:
        """The feeds that have readers now."""
        return list(self._channels)

    @contextlib.asynccontextmanager
    async def reading(
        self, name: str, make: Callable[[], Feed]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of a feed, which is made for its first reader; leave with the block."""
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel(make())
            channel.task = asyncio.create_task(self._keep_looking(name, channel))
        reader = channel.join()
        if self._is_closed:
            reader.close()
        try:
            yield _lines(reader)
        finally:
            channel.readers.discard(reader)

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        for channel in self._channels.values():
            for reader in channel.readers:
                reader.close()

    async def _keep_looking(self, name: str, channel: _Channel) -> None:
        try:
            while channel.readers:
                channel.tell(await self._threads.run(channel.feed.look))
                await asyncio.sleep(self._pace)
        except Exception as error:  # noqa: BLE001 - the readers try again
            self._on_trouble(name, error)
        finally:
            # From here on a new reader gets a new feed. Readers are left only after an error.
            del self._channels[name]
            for reader in channel.readers:
                reader.close()
        channel.feed.close()  # not after a cancellation: a thread may still look


async def _lines(reader: _Reader) -> AsyncIterator[bytes]:
    while (found := await reader.next()) is not None:
        yield found
