"""The table of a fleet says of each run where it is and what to do, on any terminal."""

import json

import pytest

from rooda.base.colors import Painter
from rooda.fleet.display.fleet_table import Sight, as_object, table_text
from rooda.fleet.display.run_words import BATCH_SPENT, next_words, state_words, time_of
from rooda.fleet.run_model import Batch, FleetTask, Order, Run, RunState
from rooda.fleet.store.accounts import Hold
from rooda.fleet.store.workers import WorkerRow
from support.fleet_runs import NOW, a_run


@pytest.mark.parametrize(
    "run, words",
    [
        (a_run(), "queued"),
        (
            a_run(not_before=NOW + 60, reason="usage limit of claude"),
            f"waiting until {time_of(NOW + 60, NOW)}: usage limit of claude",
        ),
        (a_run(not_before=NOW - 60), "queued"),
        (a_run(labels=("gpu",)), "queued for a worker with the label gpu"),
        (a_run(state=RunState.WORKING), "working"),
        (
            a_run(state=RunState.WORKING, reason="git is away"),
            "waiting: git is away",
        ),
        (a_run(state=RunState.WORKING, order=Order.STOP), "stops after this iteration"),
        (a_run(state=RunState.WORKING, order=Order.NOW), "stops now"),
        (a_run(state=RunState.BLOCKED, after=("db", "api")), "after api"),
        (a_run(state=RunState.BLOCKED, after=("ui",)), "blocked: ui failed"),
        (a_run(state=RunState.BLOCKED, after=("old",)), "blocked: old was stopped"),
        (a_run(state=RunState.BLOCKED, after=("gone",)), "blocked: gone is gone"),
        (a_run(state=RunState.SUCCESS), "branch only: git merge rooda/auth"),
        (a_run(state=RunState.SUCCESS, ended="merged"), "merged"),
        (a_run(state=RunState.SUCCESS, ended="PR #12"), "PR #12"),
        (
            a_run(state=RunState.SUCCESS, ended="conflict with db: src/api.py"),
            "conflict with db: src/api.py",
        ),
        (a_run(state=RunState.CONFLICT, reason="conflict with db: a.py"), "conflict with db: a.py"),
        (a_run(state=RunState.FAILED, reason="3 failures in a row"), "failed: 3 failures in a row"),
        (a_run(state=RunState.FAILED), "failed"),
        (a_run(state=RunState.STOPPED, reason="stopped by the user"), "stopped by the user"),
        (a_run(state=RunState.SET_ASIDE, reason="4 workers died"), "set aside: 4 workers died"),
    ],
)
def test_each_state_has_its_words(run: Run, words: str) -> None:
    others = {
        "db": RunState.SUCCESS,
        "api": RunState.WORKING,
        "ui": RunState.FAILED,
        "old": RunState.STOPPED,
    }
    assert state_words(run, others, NOW) == words


@pytest.mark.parametrize(
    "run, words",
    [
        (a_run(), ""),
        (a_run(state=RunState.SUCCESS), ""),
        (a_run(state=RunState.SUCCESS, ended="verify failed"), "retry auth --onto BRANCH"),
        (
            a_run(state=RunState.SUCCESS, ended="no pull request: gh is not installed"),
            "git push origin rooda/auth && gh pr create --head rooda/auth",
        ),
        (a_run(state=RunState.STOPPED), "retry auth"),
        (a_run(state=RunState.FAILED, reason="the maximum of iterations was reached"), "auth -n N"),
        (
            a_run(state=RunState.FAILED, reason="$1 of $1 spent (max_cost)"),
            "auth --run-max-cost USD",
        ),
        (
            a_run(state=RunState.FAILED, reason=f"{BATCH_SPENT} $2 of $2 (max_cost)"),
            "auth --max-cost USD (of all runs that were added with it)",
        ),
    ],
)
def test_after_its_end_each_run_names_the_command_that_goes_on(run: Run, words: str) -> None:
    assert next_words(run).endswith(words)
    assert bool(next_words(run)) == bool(words)


def a_sight() -> Sight:
    runs = [
        a_run(
            "auth",
            state=RunState.WORKING,
            iteration=3,
            max_iterations=20,
            cost=1.2,
            where="host 1",
        ),
        a_run("api", state=RunState.BLOCKED, after=("auth",)),
        a_run(
            "docs", state=RunState.SUCCESS, iteration=2, cost=0.5, unknown_costs=1, ended="PR #12"
        ),
        a_run(
            "ui", state=RunState.FAILED, iteration=1, unknown_costs=1, reason="\x1b[31mred\nline"
        ),
    ]
    holds = [Hold("claude", NOW + 60, "usage limit", 2, NOW + 120)]
    workers = [
        WorkerRow("a", "app-1", "host", 1, 1, ()),
        WorkerRow("b", "app-1", "host", 2, 2, ()),
        WorkerRow("c", "app-1", "gone", 3, 1, (), state="dead"),
    ]
    return Sight(runs, NOW, holds, workers)


def test_the_table_has_each_run_the_totals_the_budget_the_holds_and_the_workers() -> None:
    lines = table_text(a_sight()).splitlines()
    assert lines[0].split() == ["TASK", "ITERATION", "COST", "WHERE", "BRANCH", "STATE"]
    assert lines[1].split() == ["auth", "3/20", "$1.20", "host", "1", "rooda/auth", "working"]
    assert lines[2].split() == ["api", "after", "auth"]
    assert "$0.50 + 1 unknown" in lines[3]
    assert lines[4].endswith("rooda/ui    failed: red line")
    assert lines[6:] == [
        (
            "4 runs: 1 at work, 1 waiting, 1 success, 1 failed; $1.70 in all "
            "(2 iterations told no cost)"
        ),
        "Batch night: $1.70 of $40.00; 2 iterations told no cost",
        f"Account claude waits until {time_of(NOW + 60, NOW)}: usage limit",
        f"Account claude has at most 2 runs at work until {time_of(NOW + 120, NOW)}: usage limit",
        "Workers: host (2 slots)",
    ]


def test_a_narrow_terminal_keeps_the_name_and_the_state() -> None:
    for line in table_text(a_sight(), room=44).split("\n\n")[0].splitlines():
        assert len(line) <= 44
    text = table_text(a_sight(), room=44)
    assert "BRANCH" not in text
    assert "after auth" in text


def test_a_long_name_leaves_room_for_the_state() -> None:
    run = a_run(
        "a-very-long-name-of-a-run-that-goes-on-and-on", state=RunState.FAILED, reason="red"
    )
    assert "failed: red" in table_text(Sight([run], NOW), room=40)
    assert run.run in table_text(Sight([run], NOW))


def test_runs_that_wait_without_a_worker_say_how_to_start_one() -> None:
    assert "`rooda worker --drain`" in table_text(Sight([a_run()], NOW))
    ended = Sight([a_run(state=RunState.SUCCESS)], NOW)
    assert "rooda worker" not in table_text(ended)


def test_a_run_that_no_worker_can_take_says_which_label_is_missing() -> None:
    picky = a_run("model", labels=("gpu",))
    assert "`rooda worker --drain --labels gpu`" in table_text(Sight([picky], NOW))
    assert "`rooda worker --drain`" in table_text(Sight([picky, a_run()], NOW))
    plain = WorkerRow("a", "app-1", "host", 1, 1, ())
    words = "No worker has the label gpu, which model needs. Start one with `rooda worker --labels"
    assert words in table_text(Sight([picky], NOW, workers=[plain]))
    able = WorkerRow("b", "app-1", "host", 2, 2, ("gpu", "big"))
    assert "No worker has" not in table_text(Sight([picky], NOW, workers=[plain, able]))


def test_colors_are_those_of_the_states() -> None:
    text = table_text(a_sight(), paint=Painter(is_on=True))
    assert "\x1b[31mfailed: red line\x1b[0m" in text
    assert "\x1b[32mPR #12\x1b[0m" in text


def test_json_has_the_same_without_the_flags() -> None:
    secret = Batch("night", "abc", flags=("--env", "TOKEN=hush"))
    run = Run("app-1", "auth", secret, FleetTask("auth", "Auth"), not_before=NOW + 60)
    found = as_object(Sight([run], NOW, a_sight().holds, a_sight().workers))
    assert "hush" not in json.dumps(found)
    assert found["runs"][0]["state"] == "queued"
    assert found["runs"][0]["until"] == "2027-01-15T08:01:00+00:00"
    assert found["holds"][0]["account"] == "claude"
    assert [one["state"] for one in found["workers"]] == ["alive", "alive", "dead"]
