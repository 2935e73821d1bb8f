from collections.abc import Iterator

import pytest

from rooda.fleet.run_model import Batch, FleetTask, Order, Run, RunProgress, RunState
from rooda.fleet.store.store import Dismissed, FleetStore, NameTaken
from rooda.fleet.store.tables import KnownRun
from rooda.fleet.store.workers import DEAD, WorkerRow

BATCH = Batch("b1", "c0ffee", flags=("--ai-cmd", "agent"), max_cost=5.0)
P = "project"


@pytest.fixture
def store(url: str) -> Iterator[FleetStore]:
    store = FleetStore(url)
    for name in ("w", "w1", "old", "new"):
        store.workers.register(WorkerRow(name, P, "host", 1, 1, ()))
    yield store
    store.close()


def added(store: FleetStore, *tasks: FleetTask) -> None:
    store.add(P, BATCH, tasks)


def at(store: FleetStore, name: str) -> Run:
    run = store.run(P, name)
    assert run is not None
    return run


def test_runs_come_back_as_they_were_added(store: FleetStore) -> None:
    tasks = [FleetTask("b", "B", "text", priority=3), FleetTask("a", labels=("gpu",), account="x")]
    added(store, *tasks)
    assert [(run.run, run.task, run.batch) for run in store.runs(P)] == [
        ("b", tasks[0], BATCH),
        ("a", tasks[1], BATCH),
    ]
    assert store.runs("other") == []
    assert store.run(P, "none") is None


def test_a_name_that_is_taken_adds_nothing(store: FleetStore) -> None:
    added(store, FleetTask("a"))
    with pytest.raises(NameTaken) as caught:
        store.add(P, Batch("b2", "c0ffee"), [FleetTask("new"), FleetTask("a")])
    assert caught.value.names == ("a",)
    assert [run.run for run in store.runs(P)] == ["a"]
    store.add("other", Batch("b2", "c0ffee"), [FleetTask("a")])


def test_runs_that_git_knows_come_back_and_those_that_are_there_stay(store: FleetStore) -> None:
    added(store, FleetTask("there"))
    other = Batch("b2", "c0ffee")
    known = [
        KnownRun(FleetTask("there"), BATCH, RunState.FAILED, 9),
        KnownRun(
            FleetTask("ended"),
            other,
            RunState.SUCCESS,
            4,
            "done",
            iteration=3,
            max_iterations=5,
            cost=1.5,
            unknown_costs=1,
            headline="did it",
        ),
        KnownRun(FleetTask("begun", after=("x",)), BATCH, RunState.QUEUED, 3, iteration=2),
        KnownRun(FleetTask("new", after=("x",), account="mine"), other, RunState.QUEUED, 1),
    ]
    assert store.restore(P, known) == {"ended", "begun", "new"}
    assert store.restore(P, known) == set()
    assert [run.run for run in store.runs(P)] == ["there", "ended", "begun", "new"]
    states = {run.run: (run.state, run.turn, run.batch) for run in store.runs(P)}
    assert states == {
        "there": (RunState.QUEUED, 1, BATCH),
        "ended": (RunState.SUCCESS, 4, other),
        "begun": (RunState.QUEUED, 3, BATCH),
        "new": (RunState.BLOCKED, 1, other),
    }
    ended = at(store, "ended")
    assert (ended.iteration, ended.max_iterations, ended.cost, ended.unknown_costs) == (
        3,
        5,
        1.5,
        1,
    )
    assert (ended.reason, ended.headline) == ("done", "did it")
    assert [(run.run, run.turn) for run in store.ready(P)] == [("there", 1), ("begun", 3)]


def test_a_turn_goes_from_queue_to_worker_to_the_next_turn(store: FleetStore) -> None:
    added(store, FleetTask("a"))
    assert [(run.run, run.turn) for run in store.ready(P)] == [("a", 1)]
    store.set_enqueued(P, [("a", 1)])
    assert store.ready(P) == []
    begun = store.begin(P, "a", 1, "w1", "host, slot 1")
    assert begun is not None
    assert (begun.state, begun.worker, begun.where) == (RunState.WORKING, "w1", "host, slot 1")
    store.advance(
        P,
        "a",
        "w1",
        RunProgress(iteration=2, cost=0.5, unknown_costs=1, max_iterations=20, headline="did it"),
    )
    assert store.wait(P, "a", 1, "w1", 60, "usage limit")
    waiting = at(store, "a")
    assert (waiting.state, waiting.turn, waiting.reason) == (RunState.QUEUED, 2, "usage limit")
    assert 50 < waiting.not_before - store.now() < 70
    assert (waiting.iteration, waiting.cost, waiting.headline) == (2, 0.5, "did it")
    assert store.ready(P) == []  # not yet
    store.begin(P, "a", 2, "w1", "")
    assert store.wait(P, "a", 2, "w1", 0, "handed back")
    assert [run.turn for run in store.ready(P)] == [3]


def test_words_that_the_database_refuses_do_not_keep_a_run_from_its_end(store: FleetStore) -> None:
    """An agent can print NUL, and a file name need not be UTF-8."""
    added(store, FleetTask("a"))
    store.begin(P, "a", 1, "w", "")
    store.advance(P, "a", "w", RunProgress(iteration=1, headline="did\0 it"))
    store.wait(P, "a", 1, "w", 0, "conflict: \udc80.txt")
    assert (at(store, "a").headline, at(store, "a").reason) == ("did it", "conflict: ?.txt")


def test_a_worker_that_was_replaced_changes_nothing(store: FleetStore) -> None:
    added(store, FleetTask("a"))
    store.begin(P, "a", 1, "old", "")
    assert store.begin(P, "a", 1, "new", "") is not None  # a takeover of the same turn
    store.advance(P, "a", "old", RunProgress(iteration=9, cost=9.0))
    store.explain(P, "a", "old", "nothing")
    assert not store.wait(P, "a", 1, "old", 0, "")
    assert not store.end(P, "a", 1, "old", RunState.SUCCESS, "no", "PR #1")
    run = at(store, "a")
    assert (run.state, run.turn, run.iteration, run.reason) == (RunState.WORKING, 1, 0, "")
    assert run.ended == ""
    assert store.end(P, "a", 1, "new", RunState.SUCCESS, "done", "PR #2")
    assert at(store, "a").ended == "PR #2"
    assert store.begin(P, "a", 1, "old", "") is None
    assert at(store, "a").state is RunState.SUCCESS


def test_a_worker_that_is_not_alive_any_more_gets_no_turn(store: FleetStore) -> None:
    added(store, FleetTask("a"))
    store.workers.declare_dead("old", 0)
    store.workers.leave("w")  # or the row of a dead worker was deleted after a day
    assert store.begin(P, "a", 1, "new", "") is not None
    for gone in ("old", "w"):
        with pytest.raises(Dismissed):
            store.begin(P, "a", 1, gone, "")
    assert at(store, "a").worker == "new"


def test_a_retry_is_a_new_life(store: FleetStore) -> None:
    """An end that git still has belongs to the life before."""
    added(store, FleetTask("a"))
    life = at(store, "a").life
    store.begin(P, "a", 1, "w", "")
    store.wait(P, "a", 1, "w", 0, "")
    assert at(store, "a").life == life
    store.begin(P, "a", 2, "w", "")
    store.end(P, "a", 2, "w", RunState.FAILED, "")
    store.retry(P, "a", FleetTask("a"))
    assert at(store, "a").life not in ("", life)


def test_runs_start_when_those_before_them_succeeded(store: FleetStore) -> None:
    added(store, FleetTask("a"), FleetTask("b"), FleetTask("c", after=("a", "b")))
    assert [run.run for run in store.ready(P)] == ["a", "b"]
    assert at(store, "c").state is RunState.BLOCKED
    for name, state in (("a", RunState.SUCCESS), ("b", RunState.FAILED)):
        store.begin(P, name, 1, "w", "")
        store.end(P, name, 1, "w", state, "")
    assert store.ready(P) == []
    assert store.retry(P, "b", FleetTask("b"))
    store.begin(P, "b", 3, "w", "")
    store.end(P, "b", 3, "w", RunState.SUCCESS, "")
    assert [run.run for run in store.ready(P)] == ["c"]


def test_a_stop_waits_for_the_iteration_or_comes_at_once(store: FleetStore) -> None:
    added(store, FleetTask("a"), FleetTask("b"))
    store.begin(P, "a", 1, "w", "")
    for name in ("a", "b"):
        store.order(P, name, Order.STOP)
    assert (at(store, "a").state, at(store, "a").order) == (RunState.WORKING, Order.STOP)
    assert at(store, "b").state is RunState.STOPPED
    assert store.begin(P, "b", 1, "w", "") is None
    assert not store.retry(P, "a", FleetTask("a"))  # it is still at work
    assert not store.forget(P, "a")
    assert store.forget(P, "b")
    assert store.run(P, "b") is None


def test_a_run_that_is_stopped_does_not_wait_for_the_end_of_a_limit_first(
    store: FleetStore,
) -> None:
    added(store, FleetTask("a"))
    store.begin(P, "a", 1, "w", "")
    store.order(P, "a", Order.STOP)
    assert store.wait(P, "a", 1, "w", 3600, "usage limit")
    run = at(store, "a")
    assert (run.state, run.reason) == (RunState.STOPPED, "stopped by the user")
    assert run.order is Order.NONE


def test_a_run_that_was_stopped_while_it_waited_for_another_one_waits_for_it_again(
    store: FleetStore,
) -> None:
    _, task = tasks = [FleetTask("a"), FleetTask("b", after=("a",))]
    added(store, *tasks)
    store.order(P, "b", Order.STOP)
    assert store.retry(P, "b", task)
    assert [run.run for run in store.ready(P)] == ["a"]
    assert at(store, "b").state is RunState.BLOCKED
    store.begin(P, "a", 1, "w", "")
    store.end(P, "a", 1, "w", RunState.SUCCESS, "")
    assert [run.run for run in store.ready(P)] == ["b"]
    assert store.begin(P, "b", at(store, "b").turn, "w", "") is not None
    store.advance(P, "b", "w", RunProgress(iteration=1))
    store.end(P, "b", at(store, "b").turn, "w", RunState.FAILED, "")
    store.forget(P, "a")
    assert store.retry(P, "b", task)  # its branch has the work of the other one
    assert [run.run for run in store.ready(P)] == ["b"]


def test_a_new_run_of_a_forgotten_name_has_a_life_that_the_engine_never_saw(
    store: FleetStore,
) -> None:
    added(store, FleetTask("a"))
    for number in (1, 2, 3):
        before = at(store, "a")
        store.order(P, "a", Order.STOP)
        assert store.forget(P, "a")
        store.add(P, Batch(f"again-{number}", "base"), [FleetTask("a")])
        assert at(store, "a").life != before.life


def test_the_last_run_of_a_batch_takes_it_along(store: FleetStore) -> None:
    added(store, FleetTask("a"), FleetTask("b"))
    assert store.forget(P, "a")
    assert at(store, "b").batch == BATCH
    assert store.forget(P, "b")
    added(store, FleetTask("a"))  # a batch of the same name: the old one is gone


def test_the_cost_of_a_batch_is_the_sum_of_its_runs(store: FleetStore) -> None:
    added(store, FleetTask("a"), FleetTask("b"))
    for name in ("a", "b"):
        store.begin(P, name, 1, "w", "")
        for number in (1, 2):
            store.advance(
                P,
                name,
                "w",
                RunProgress(iteration=number, cost=0.25 * number, unknown_costs=number),
            )
        store.advance(
            P, name, "w", RunProgress(iteration=1, cost=0.25, unknown_costs=1)
        )  # an old one changes nothing
    assert store.spent(P, "b1") == (1.0, 4)
    store.end(P, "a", 1, "w", RunState.SUCCESS, "done")
    assert store.forget(P, "a")  # its cost stays: the money is spent
    assert store.spent(P, "b1") == (1.0, 2)


def test_a_hold_is_of_one_account_and_the_longest_counts(store: FleetStore) -> None:
    store.accounts.set_hold("x", 100, "limit")
    store.accounts.set_hold("x", 50, "shorter")
    hold = store.accounts.hold("x")
    assert hold.reason == "limit"
    assert 90 < hold.until - store.now() < 110
    assert store.accounts.hold("y").until == 0
    assert [one.account for one in store.accounts.holds()] == ["x"]


def test_an_overload_halves_the_number_at_work(store: FleetStore) -> None:
    added(store, *(FleetTask(name, account="x") for name in "abcde"))
    for name in "bcde":
        store.begin(P, name, 1, "w", "")
    assert store.accounts.lower("x", 60, "overloaded") == 2
    assert store.accounts.hold("x").most == 2
    assert [store.accounts.rank(P, name, "x") for name in "bcde"] == [0, 1, 2, 3]


def test_a_worker_is_dead_only_if_it_did_not_show_itself(store: FleetStore) -> None:
    store.workers.register(WorkerRow("w2", "other", "host", 1, 1, ("gpu", "big")))
    assert store.workers.beat("w2")
    (row,) = store.workers.all("other")
    assert (row.labels, row.beats) == (("gpu", "big"), 1)
    assert not store.workers.declare_dead("w2", 0)
    assert store.workers.declare_dead("w2", 1)
    assert not store.workers.beat("w2")
    assert store.workers.all("other")[0].state == DEAD
    store.workers.leave("w2")
    assert store.workers.all("other") == []
