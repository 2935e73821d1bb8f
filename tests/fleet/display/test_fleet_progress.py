"""The progress of all runs: what happened is a line, what is at work is a line that is redrawn."""

import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rooda.base.widths import width
from rooda.fleet.display.fleet_progress import (
    Display,
    Viewer,
    follow_runs,
    going_on,
    happenings,
    panel,
)
from rooda.fleet.display.run_words import headline_of, time_of
from rooda.fleet.run_model import FleetTask, Order, Run, RunState
from rooda.run.outcome import LastAttempt
from rooda.views.terminal.terminal import Sink, Terminal
from rooda.world.process.interrupts import Interrupts
from support.fleet_runs import BATCH, NOW, a_run
from support.screen import Screen

AT_WORK = a_run(state=RunState.WORKING, worker="w1", where="host, slot 1", max_iterations=20)
THIRD = a_run(
    state=RunState.WORKING, worker="w1", iteration=2, max_iterations=20, cost=1.0, changed=NOW
)


def changed(run: Run, /, **fields: Any) -> Run:
    return replace(run, **fields)


FAILED_ATTEMPT = LastAttempt(3, 1, "failed", "exit", "half of it", reason="exit code 3")


@pytest.mark.parametrize(
    "before, after, words",
    [
        (a_run(), AT_WORK, ["starts on host, slot 1"]),
        (AT_WORK, AT_WORK, []),
        (THIRD, changed(THIRD, iteration=3, cost=1.44), ["iteration 3/20 done, $0.44"]),
        (
            THIRD,
            changed(THIRD, iteration=5, unknown_costs=2, headline="Fix\x1b[2J it"),
            ["iterations 3 to 5/20 done, cost unknown: Fix it"],
        ),
        (
            THIRD,
            changed(THIRD, iteration=3, headline=headline_of(FAILED_ATTEMPT)),
            ["iteration 3/20 failed: exit code 3; half of it"],
        ),
        (THIRD, changed(THIRD, worker="w2", where="b, slot 2"), ["taken over on b, slot 2"]),
        (THIRD, changed(THIRD, reason="git is away"), ["waiting: git is away"]),
        (THIRD, changed(THIRD, order=Order.STOP), ["stops after this iteration"]),
        (
            THIRD,
            changed(THIRD, state=RunState.QUEUED, not_before=NOW + 60, reason="usage limit"),
            [f"waiting until {time_of(NOW + 60, NOW)}: usage limit"],
        ),
        (
            THIRD,
            changed(THIRD, iteration=3, cost=1.5, state=RunState.SUCCESS),
            [
                "iteration 3/20 done, $0.50",
                "branch only: git merge rooda/auth (success, 3 iterations, $1.50)",
            ],
        ),
        (
            THIRD,
            changed(THIRD, state=RunState.FAILED, reason="3 failures in a row"),
            ["failed: 3 failures in a row (2 iterations, $1.00)"],
        ),
        (
            changed(THIRD, state=RunState.SUCCESS),
            changed(THIRD, state=RunState.SUCCESS, ended="PR #12"),
            ["PR #12"],
        ),
    ],
)
def test_what_happened_between_two_looks_is_told(before: Run, after: Run, words: list[str]) -> None:
    assert happenings([before], [after], NOW) == [f"auth: {one}" for one in words]


def test_a_run_that_was_added_meanwhile_is_told() -> None:
    assert happenings([], [a_run()], NOW) == ["auth: added: queued"]


def test_the_panel_has_a_line_for_each_run_at_work_and_a_summary() -> None:
    runs = [
        changed(THIRD, changed=NOW - 65, headline="Wrote \x1b[31mthe form"),
        a_run("api"),
        a_run("docs", state=RunState.SUCCESS, cost=0.5),
        a_run("ui", state=RunState.FAILED),
    ]
    assert panel(runs, NOW, 100, "Ctrl+C: stop", 3729) == [
        "auth  iteration 3/20  1:05  $1.00  Wrote the form",
        "1 at work, 1 waiting, 1 done, 1 not done · $1.50 · 1:02:09 · Ctrl+C: stop",
    ]


@pytest.mark.parametrize("columns", [1, 10, 40, 80])
def test_no_line_of_the_panel_is_wider_than_the_terminal(columns: int) -> None:
    runs = [
        Run(
            "p",
            f"run-{number}" * 9,
            BATCH,
            FleetTask("x"),
            state=RunState.WORKING,
            headline="\u4e2d" * 99,
        )
        for number in range(40)
    ]
    lines = panel(runs, NOW, columns, "Ctrl+C: stop", 1)
    assert len(lines) == 14
    assert all(width(line) < max(2, columns) for line in lines)


@pytest.fixture
def screen() -> Iterator[Screen]:
    found = Screen(columns=60)
    yield found
    found.close()


def a_display(screen: Screen, *, is_live: bool = True) -> Display:
    sink = Sink(screen.slave)
    return Display(Terminal(sink, sink), is_live=is_live, clock=lambda: 0.0)


def seen(screen: Screen) -> list[str]:
    while screen.read(0.05):
        pass
    return [line for line in screen.lines if line]


def test_a_terminal_keeps_the_lines_and_redraws_the_panel_in_place(screen: Screen) -> None:
    display = a_display(screen)
    other = changed(THIRD, run="api")
    display.update([a_run(), other], NOW)
    display.update([AT_WORK, other], NOW)
    display.update([AT_WORK, changed(other, iteration=3, cost=1.44)], NOW)
    first, second, *panel_lines = seen(screen)
    assert first.endswith("] auth: starts on host, slot 1")
    assert second.endswith("] api: iteration 3/20 done, $0.44")
    assert len(panel_lines) == 3
    assert panel_lines[-1].startswith("2 at work")
    display.close()
    assert seen(screen) == [first, second]


def test_without_a_terminal_there_are_only_lines(screen: Screen) -> None:
    display = a_display(screen, is_live=False)
    display.update([a_run()], NOW)
    display.update([AT_WORK], NOW)
    (line,) = seen(screen)
    assert line.endswith("auth: starts on host, slot 1")


def followed(
    screen: Screen, looks: Sequence[tuple[Run, Sequence[int]]], *, with_worker: bool
) -> Viewer:
    """Show a run again and again; with each look come signals, as if the user had pressed keys."""
    interrupts = Interrupts()
    rest = iter(looks)

    def look() -> tuple[list[Run], float]:
        run, signals = next(rest)
        interrupts.received += signals
        return [run], NOW

    viewer = Viewer(look, a_display(screen), interrupts, with_worker=with_worker)
    interrupts.rest = lambda _: None  # type: ignore[assignment,method-assign]  # no time passes
    if not with_worker:
        follow_runs(viewer, interrupts, lambda runs: all(run.state.is_end for run in runs))
    return viewer


def test_the_first_signal_lets_iterations_end_and_the_second_stops_them(screen: Screen) -> None:
    looks = [(AT_WORK, [signal.SIGINT]), (AT_WORK, [signal.SIGINT]), (AT_WORK, [])]
    viewer = followed(screen, looks, with_worker=True)
    viewer.show()
    viewer.show()
    viewer.show()
    text = "\n".join(seen(screen))
    assert "no new iteration starts; press Ctrl+C again" in text
    assert "stopping the iterations at work now" in text
    assert text.endswith("stopping now")


def test_following_ends_with_the_runs_or_with_ctrl_c(screen: Screen) -> None:
    done = changed(AT_WORK, state=RunState.SUCCESS)
    assert followed(screen, [(done, [])], with_worker=False).runs == [done]
    assert followed(screen, [(AT_WORK, [signal.SIGINT])], with_worker=False).runs == [AT_WORK]


def test_runs_that_wait_for_a_lost_one_do_not_go_on() -> None:
    runs = [
        a_run("a", state=RunState.FAILED),
        a_run("b", state=RunState.BLOCKED, after=("a",)),
        a_run("c", state=RunState.BLOCKED, after=("b",)),
        a_run("d", state=RunState.BLOCKED, after=("gone",)),
        a_run("e"),
        a_run("f", state=RunState.BLOCKED, after=("e",)),
        a_run("g", state=RunState.SUCCESS),
    ]
    assert [run.run for run in going_on(runs)] == ["e", "f"]


def test_a_worker_without_the_label_leaves_a_run_to_others() -> None:
    needy = Run("p", "g", BATCH, FleetTask("g", labels=("gpu",)))
    after = Run("p", "h", BATCH, FleetTask("h", after=("g",)), state=RunState.BLOCKED)
    assert going_on([needy, after], ()) == []
    assert going_on([needy, after], ("gpu", "big")) == [needy, after]
    assert going_on([needy, after]) == [needy, after]


@pytest.mark.parametrize("columns", [20, 60, 100, 160])
def test_the_echo_of_two_ctrl_c_fits_behind_the_last_line(columns: int) -> None:
    hint = "Ctrl+C: finish the iterations at work, then stop"
    lines = panel([a_run(state=RunState.WORKING, headline="x" * 200)], NOW, columns, hint, 0.0)
    assert len(f"{lines[-1]}^C^C") < columns
