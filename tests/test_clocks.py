"""The clocks: when each runs out, on what evidence, and what holds it back."""

from dataclasses import dataclass

import pytest

from rooda.process.clocks import (
    BUSY,
    Clock,
    ClockFacts,
    CpuActivity,
    Since,
    evidence,
    expired,
    expires_at,
)
from rooda.process.stopwatch import SHORTEST_SLEEP, Stopwatch
from support.children import until
from support.clocks import CLOCKS, CPU, DURATION, FIRST, GRACE, IDLE, ITERATION

SILENT = ClockFacts(began=100, last_activity=100)
SPEAKING = ClockFacts(began=100, last_output=130, printed=6, last_activity=130)
WORKING = ClockFacts(began=100, last_activity=140, cpu=3.5)
REPORTED = ClockFacts(began=100, last_output=150, printed=6, last_activity=151, result_at=150)


# -- when they run out ---------------------------------------------------------------------


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
def test_each_clock_counts_from_its_own_moment(
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
def test_of_several_clocks_the_one_that_ran_out_first_is_named(
    facts: ClockFacts, now: float, late: Clock | None
) -> None:
    assert expired(CLOCKS, facts, now) == late
    assert expired(CLOCKS[::-1], facts, now) == late


def test_of_two_that_run_out_at_once_the_first_of_the_list_is_named() -> None:
    both = (Clock("iteration_timeout", 5, Since.START), Clock("max_duration", 5, Since.START))
    assert expired(both, SILENT, 105) == both[0]
    assert expired(both[::-1], SILENT, 105) == both[1]


def test_no_clock_never_runs_out() -> None:
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
            f"nothing was printed; {CPU.format(0)}; no change of a file was seen",
        ),
        (
            IDLE,
            ClockFacts(100, 130, 2_000_000, 135, cpu=0.25),
            145,
            f"1.9 MB printed, the last 15s ago; {CPU.format(0.25)}; no change of a file was seen",
        ),
        (GRACE, REPORTED, 180, "its result was in, and it did not exit"),
    ],
)
def test_the_evidence_says_what_was_seen(
    clock: Clock, facts: ClockFacts, now: float, words: str
) -> None:
    assert evidence(clock, facts, now) == words


# -- a machine that sleeps -----------------------------------------------------------------


@dataclass
class Machine:
    """The two clocks of a system: one stands still while it is suspended."""

    awake: float = 1000.0
    since_boot: float = 5000.0

    def work(self, seconds: float) -> None:
        self.awake += seconds
        self.since_boot += seconds

    def sleep(self, seconds: float) -> None:
        self.since_boot += seconds

    def stopwatch(self) -> Stopwatch:
        return Stopwatch(lambda: self.awake, lambda: self.since_boot)


def test_a_machine_at_work_did_not_sleep() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    for _ in range(3):
        before = watch.now()
        machine.work(3600)
        assert watch.now() - before == 3600
        assert watch.slept() == 0


def test_the_sleep_of_a_machine_counts_nowhere_and_is_told_once() -> None:
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


def test_two_clocks_that_drift_a_little_are_no_sleep() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    for _ in range(10):
        machine.sleep(SHORTEST_SLEEP * 0.9)
        assert watch.slept() == 0


def test_a_machine_that_slept_before_did_not_sleep_now() -> None:
    machine = Machine()
    machine.sleep(3600)
    assert machine.stopwatch().slept() == 0


def test_what_is_held_does_not_count() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    before = watch.now()
    machine.work(1)
    assert watch.hold(lambda: machine.work(100)) == 100
    machine.work(1)
    assert watch.hold(lambda: machine.work(10)) == 10
    assert watch.now() - before == 2


def test_a_machine_may_sleep_while_the_clocks_are_held() -> None:
    machine = Machine()
    watch = machine.stopwatch()
    before = watch.now()

    def both() -> None:
        machine.work(7)
        machine.sleep(3600)

    assert watch.hold(both) == 7
    assert watch.now() == before
    assert watch.slept() == 3600


def test_this_machine_is_awake() -> None:
    watch = Stopwatch()
    before = watch.now()
    until(lambda: watch.now() > before + 0.01, "the passing of time")
    assert watch.slept() == 0


# -- whether a silent tree works -----------------------------------------------------------


@pytest.mark.parametrize(
    "limit,pace", [(0.5, 0.0625), (8, 1), (0.1, 0.05), (0.0, 0.05), (600, 30), (1e9, 30)]
)
def test_a_tree_is_looked_at_several_times_within_the_limit(limit: float, pace: float) -> None:
    pulse = CpuActivity(limit, 100)
    assert pulse.next_look == 100
    pulse.take(0, 100)
    assert pulse.next_look == 100 + pace


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
        (5.0, 4.0, 1.0, True),  # somebody ended for whom nobody waited
    ],
)
def test_a_tree_works_that_uses_a_share_of_a_core(
    before: float,
    after: float,
    seconds: float,
    works: bool,  # noqa: FBT001 - a table's column
) -> None:
    pulse = CpuActivity(8, 100)
    assert not pulse.take(before, 100)  # one look says nothing
    assert pulse.take(after, 100 + seconds) is works
    assert pulse.used == pytest.approx(abs(after - before))


def test_while_the_answer_is_awaited_it_is_not_asked_again() -> None:
    pulse = CpuActivity(8, 100)

    def state() -> tuple[bool, float]:
        return pulse.is_asked, pulse.next_look

    assert state() == (False, 100)
    pulse.ask()
    assert state() == (True, float("inf"))
    pulse.take(1.0, 101)
    assert state() == (False, 102)


def test_only_a_recent_look_may_decide() -> None:
    pulse = CpuActivity(8, 100)
    assert not pulse.is_fresh(100)
    pulse.take(1.0, 100)
    assert pulse.is_fresh(100.4)
    assert not pulse.is_fresh(100.5)
