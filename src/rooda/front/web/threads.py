"""A few threads for everything that reads files, so that the event loop never waits for a disk.

The threads are daemons: a command that ends does not wait for a report that nobody will read.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
