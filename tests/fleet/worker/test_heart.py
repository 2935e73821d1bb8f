import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.workers import WorkerRow
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.heart import Heart


class Queue:
    """A queue that does not answer, or that fails."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.asked = threading.Semaphore(0)

    def recover(self, _: object) -> None:
        self.asked.release()
        if self._error is not None:
            raise self._error
        threading.Event().wait()


@pytest.mark.parametrize("error", [None, ValueError("an answer that rooda does not know")])
def test_a_worker_beats_whatever_its_queue_does(
    tmp_path: Path, error: Exception | None, capfd: pytest.CaptureFixture[str]
) -> None:
    store = FleetStore(f"sqlite:///{tmp_path}/fleet.sqlite")
    store.workers.register(WorkerRow("w", "p", "host", 1, 1, ()))
    queue: Any = Queue(error)
    stopped = threading.Event()
    heart = Heart(store, queue, Control(), "p", "w", 0.12, on_death=pytest.fail)
    beating = threading.Thread(target=heart.run, args=[stopped])
    beating.start()
    assert queue.asked.acquire(timeout=20)
    first = store.workers.all("p")[0].beats
    end = time.monotonic() + 20
    while store.workers.all("p")[0].beats < first + 3:
        assert time.monotonic() < end
        time.sleep(0.01)
    if error is not None:
        assert queue.asked.acquire(timeout=20)  # it tries again
    stopped.set()
    beating.join()
    store.close()
    assert capfd.readouterr().err.count("rooda does not know") == (0 if error is None else 1)
