"""The thread that reads: the view takes results when it likes, and is never waited for."""

import threading

import pytest

from rooda.front.watch.widgets import Poller
from support.children import until


def test_results_arrive_and_the_reader_waits_when_none_are_taken() -> None:
    looks: list[int] = []
    closed = threading.Event()

    def look() -> int:
        looks.append(len(looks))
        return looks[-1]

    poller = Poller(look, 0, closed.set).start()
    until(lambda: len(looks) == 5, "the queue is full, and one result waits")
    assert poller.take() == [0, 1, 2, 3]
    until(lambda: len(looks) >= 9, "the reader goes on")
    poller.stop()
    assert closed.wait(20)


def test_a_paused_reader_does_not_look() -> None:
    looked = threading.Semaphore(0)
    wanted = threading.Semaphore(0)

    def look() -> None:
        looked.release()
        wanted.acquire()

    poller = Poller(look, 0).start()
    assert looked.acquire(timeout=20)
    poller.pause()
    wanted.release()
    assert not looked.acquire(timeout=0.1)
    poller.go_on()
    assert looked.acquire(timeout=20)
    poller.stop()
    wanted.release()


def test_an_error_of_the_reader_reaches_the_view() -> None:
    failed = threading.Event()

    def look() -> None:
        try:
            raise RuntimeError("a bug")
        finally:
            failed.set()

    poller = Poller(look, 0, failed.set).start()
    assert failed.wait(20)

    def has_failed() -> bool:
        try:
            poller.take()
        except RuntimeError:
            return True
        return False

    until(has_failed, "the error arrives")
    with pytest.raises(RuntimeError, match="a bug"):
        poller.take()
