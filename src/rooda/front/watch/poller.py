"""Reads in a thread of its own, so that the view answers keys while a record is read."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")
_MOST = 4  # results that wait; then the thread waits for the view
_REST = 4  # a look that takes a second is followed by a pause of so many seconds, at least


class Poller(Generic[_T]):
    """Calls `look` again and again; the view takes the results when it has time for them."""

    def __init__(
        self, look: Callable[[], _T], seconds: float, close: Callable[[], None] = lambda: None
    ) -> None:
        self._look, self._seconds, self._close = look, seconds, close
        self._results: queue.Queue[_T] = queue.Queue(_MOST)
        self._is_over = threading.Event()
        self._is_wanted = threading.Event()
        self._is_wanted.set()
        self._error: Exception | None = None
        # A daemon: quitting does not wait for a disk that does not answer.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Poller[_T]":
        """Start to look."""
        self._thread.start()
        return self

    def take(self) -> list[_T]:
        """Return the results since the last call. Raises what `look` raised."""
        if self._error is not None:
            raise self._error
        found: list[_T] = []
        with contextlib.suppress(queue.Empty):
            while len(found) < _MOST:
                found.append(self._results.get_nowait())
        return found

    def pause(self) -> None:
        """Do not look until `go_on`: the user looks at something else."""
        self._is_wanted.clear()

    def go_on(self) -> None:
        """Look again."""
        self._is_wanted.set()

    def stop(self) -> None:
        """Stop to look; the thread ends after its current look."""
        self._is_over.set()
        self._is_wanted.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                result = self._look()
            except Exception as error:  # noqa: BLE001 - the view ends with it
                self._error = error
                break
            took = time.monotonic() - began
            while not self._is_over.is_set():
                with contextlib.suppress(queue.Full):
                    self._results.put(result, timeout=0.2)
                    break
            self._is_over.wait(max(self._seconds, _REST * took))
            self._is_wanted.wait()
        self._close()
