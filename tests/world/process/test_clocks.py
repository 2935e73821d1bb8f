"""Clocks: when each expires, with which evidence, and what resets it."""

from dataclasses import dataclass

import pytest

from rooda.world.process.clocks import (
    BUSY,
    Clock,
    ClockFacts,
    CpuActivity,
    Since,
    evidence,
    expired,
    expires_at,
)
from rooda.world.process.interrupts import SHORTEST_SLEEP, Stopwatch
from support.children import until
from support.clocks import CLOCKS, CPU, DURATION, FIRST, GRACE, IDLE, ITERATION

SILENT = ClockFacts(began=100, last_activity=100)
SPEAKING = ClockFacts(began=100, last_output=130, printed=6, last_activity=130)
WORKING = ClockFacts(began=100, last_activity=140, cpu=3.5)
REPORTED = ClockFacts(began=100, last_output=150, printed=6, last_activity=151, result_at=150)


# -- expiry --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clock,facts,when",
    [
        (FIRST, SILENT, 105),
        (FIRST, WORKING, 105),
        (FIRST, SPEAKING, None),
        (IDLE, SILENT, 110),
        (IDLE, SPEAKING, 140),
        (IDLE, WORKING, 150),
        (ITERATION, SILENT, 160),
        (ITERATION, SPEAKING, 160),
        (ITERATION, REPORTED, 160),
        (GRACE, SILENT, None),
        (GRACE, SPEAKING, None),
        (GRACE, REPORTED, 180),
        (DURATION, SILENT, 190),
    ],
)
def test_each_clock_counts_from_its_own_start(
    clock: Clock, facts: ClockFacts, when: float | None
) -> None:
    assert expires_at(clock, facts) == when


@pytest.mark.parametrize(
    "facts,now,late",
    [
        (SILENT, 104.9, None),
        (SILENT, 105, FIRST),
        (SILENT, 1000, FIRST),
        (SPEAKING, 139.9, None),
        (SPEAKING, 140, IDLE),
        (SPEAKING, 1000, IDLE),
        (WORKING, 104.9, None),
        (WORKING, 1000, FIRST),
        (REPORTED, 159.9, None),
        (REPORTED, 1000, ITERATION),
        (ClockFacts(100, 101, 1, last_activity=900), 1000, ITERATION),
        (ClockFacts(200, 201, 1, last_activity=220, result_at=202), 1000, IDLE),
        (ClockFacts(200, 201, 1, last_activity=230, result_at=202), 1000, GRACE),
    ],
)
def test_clock_that_expired_first_is_reported(
    facts: ClockFacts, now: float, late: Clock | None
) -> None:
    assert expired(CLOCKS, facts, now) == late
    assert expired(CLOCKS[::-1], facts, now) == late


def test_of_two_clocks_that_expire_at_once_the_first_in_the_list_is_reported() -> None:
    both = (Clock("iteration_timeout", 5, Since.START), Clock("max_duration", 5, Since.START))
    assert expired(both, SILENT, 105) == both[0]
    assert expired(both[::-1], SILENT, 105) == both[1]


def test_no_clocks_never_expire() -> None:
    assert expired((), SILENT, 1e12) is None


@pytest.mark.parametrize(
    "clock,facts,now,words",
    [
        (FIRST, SILENT, 105, "nothing was printed"),
        (ITERATION, SILENT, 160, "nothing was printed"),
        (ITERATION, SPEAKING, 160, "6 B printed, the last 30s ago"),
        (DURATION, SPEAKING, 190.26, "6 B printed, the last 60.3s ago"),
        (
            IDLE,
            SILENT,
            110,
            f"nothing was printed; {CPU.format(0)}; no file changed",
        ),
        (
            IDLE,
            ClockFacts(100, 130, 2_000_000, 135, cpu=0.25),
            145,
            f"1.9 MB printed, the last 15s ago; {CPU.format(0.25)}; no file changed",
        ),
        (GRACE, REPORTED, 180, "it printed its result, but did not exit"),
    ],
)
def test_evidence(clock: Clock, facts: ClockFacts, now: float, words: str) -> None:
    assert evidence(clock, facts, now) == words


# -- suspend and pause ---------------------------------------------------------------------


@dataclass
class Machine:
    """The two clocks of an OS: `awake` stops while the machine is suspended."""

    awake: float = 1000.0
    since_boot: float = 5000.0

    def work(self, seconds: float) -> None:
        self.awake += seconds
        self.since_boot += seconds

    def sleep(self, seconds: float) -> None:
        self.since_boot += seconds

    def stopwatch(self) -> Stopwatch:
        return Stopwatch(lambda: self.awake, lambda: self.since_boot)


def test_running_machine_did_not_sleep() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    for _ in range(3):
        before = watch.now()
        machine.work(3600)
        assert watch.now() - before == 3600
        assert watch.slept() == 0


def test_suspended_time_is_not_counted_and_is_reported_once() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    before = watch.now()
    machine.work(5)
    machine.sleep(8 * 3600)
    machine.work(5)
    assert watch.now() - before == 10
    assert watch.slept() == 8 * 3600
    assert watch.slept() == 0
    machine.sleep(60)
    assert watch.slept() == 60


def test_small_drift_between_the_clocks_is_no_sleep() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    for _ in range(10):
        machine.sleep(SHORTEST_SLEEP * 0.9)
        assert watch.slept() == 0


def test_sleep_before_the_start_is_not_reported() -> None:
    machine = Machine()
    machine.sleep(3600)
    assert machine.stopwatch().slept() == 0


def test_held_time_does_not_count() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    before = watch.now()
    machine.work(1)
    assert watch.hold(lambda: machine.work(100)) == 100
    machine.work(1)
    assert watch.hold(lambda: machine.work(10)) == 10
    assert watch.now() - before == 2


def test_machine_may_sleep_while_the_clocks_are_held() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    before = watch.now()

    def work_and_sleep() -> None:
        machine.work(7)
        machine.sleep(3600)

    assert watch.hold(work_and_sleep) == 7
    assert watch.now() == before
    assert watch.slept() == 3600


def test_real_clocks_see_no_sleep() -> None:
    watch = Stopwatch()
    before = watch.now()
    until(lambda: watch.now() > before + 0.01, "time passes")
    assert watch.slept() == 0


# -- CPU activity of a silent tree ---------------------------------------------------------


@pytest.mark.parametrize(
    "limit,pace", [(0.5, 0.0625), (8, 1), (0.1, 0.05), (0.0, 0.05), (600, 30), (1e9, 30)]
)
def test_cpu_is_measured_several_times_within_the_limit(limit: float, pace: float) -> None:
    pulse = CpuActivity(limit, 100)
    assert pulse.next_check == 100
    pulse.take(0, 100)
    assert pulse.next_check == 100 + pace


@pytest.mark.parametrize(
    "before,after,seconds,works",
    [
        (0.0, 0.0, 1.0, False),
        (5.0, 5.0, 1.0, False),
        (5.0, 5.0, 0.0, False),
        (5.0, 6.0, 1.0, True),
        (5.0, 5.0 + BUSY, 0.999, True),
        (5.0, 5.0 + BUSY * 0.9, 1.0, False),
        (5.0, 5.01, 30.0, False),
        (5.0, 4.0, 1.0, True),  # a process exited unreaped
    ],
)
def test_tree_is_active_if_it_uses_a_share_of_a_core(
    before: float,
    after: float,
    seconds: float,
    works: bool,  # noqa: FBT001 - a column of the table
) -> None:
    pulse = CpuActivity(8, 100)
    assert not pulse.take(before, 100)  # one measurement proves nothing
    assert pulse.take(after, 100 + seconds) is works
    assert pulse.used == pytest.approx(abs(after - before))


def test_cpu_is_not_requested_again_before_the_answer() -> None:
    pulse = CpuActivity(8, 100)

    def state() -> tuple[bool, float]:
        return pulse.is_asked, pulse.next_check

    assert state() == (False, 100)
    pulse.ask()
    assert state() == (True, float("inf"))
    pulse.take(1.0, 101)
    assert state() == (False, 102)


def test_only_a_recent_measurement_is_fresh() -> None:
    pulse = CpuActivity(8, 100)
    assert not pulse.is_fresh(100)
    pulse.take(1.0, 100)
    assert pulse.is_fresh(100.4)
    assert not pulse.is_fresh(100.5)
