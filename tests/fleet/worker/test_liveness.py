from rooda.fleet.store.workers import DEAD, WorkerRow
from rooda.fleet.worker.liveness import Observer


def worker(name: str, beats: int, state: str = "alive") -> WorkerRow:
    return WorkerRow(name, "p", "host", 1, 1, (), state, beats)


def looks(observer: Observer, *moments: tuple[float, int]) -> list[bool]:
    """Whether the observer finds the worker silent, at each time with this number of beats."""
    return [bool(observer.look([worker("other", beats)], now)) for now, beats in moments]


def test_a_worker_that_beats_stays_alive() -> None:
    moments = [(float(now), now) for now in range(50)]
    assert not any(looks(Observer("me", 10), *moments))


def test_a_worker_is_silent_after_one_ttl_of_contact() -> None:
    found = looks(Observer("me", 10), *((float(now), 7) for now in range(12)))
    assert found == [False] * 11 + [True]


def test_a_gap_in_the_own_contact_starts_the_time_again() -> None:
    observer = Observer("me", 10)
    assert not any(looks(observer, *((float(now), 7) for now in range(9))))
    away = 9.0 + 50.0  # the database was away for five TTLs
    assert not any(looks(observer, *((away + now, 7) for now in range(11))))
    assert looks(observer, (away + 11, 7)) == [True]


def test_an_observer_that_was_asleep_declares_no_worker_dead() -> None:
    observer = Observer("me", 10)
    looks(observer, (0.0, 1), (1.0, 1))
    assert looks(observer, (3600.0, 1)) == [False]


def test_the_own_row_and_the_dead_are_left_out() -> None:
    observer = Observer("me", 1)
    rows = [worker("me", 1), worker("old", 1, DEAD)]
    assert not observer.look(rows, 0.0)
    assert not observer.look(rows, 0.4)
    assert not any(observer.look(rows, 0.4 * step) for step in range(2, 9))
