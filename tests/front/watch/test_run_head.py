"""The headline of a run: how it stands, or its outcome, the rule, the proof and what to do next."""

import pytest

from rooda.base.colors import Color, Painter
from rooda.base.widths import width
from rooda.front.watch.run_head import Bar, aged, bars_text, head_text, plots_of, plots_text
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.world.git.snapshots.tree_changes import LineCounts
from support.nights import START, doubtful_night, failed, iteration, night, results
from support.watched import at_work

PLAIN = Painter()
MODEL = "(claude-sonnet-4-5)"


def ended() -> RunSummary:
    rows = [iteration(1, results(4)), iteration(2, results(5), signal="SUCCESS")]
    return summarize(night(), rows, START)


def test_a_run_that_has_ended_shows_outcome_rule_proof_and_next_commands() -> None:
    text = head_text(ended(), 100, 24, PLAIN)
    assert text.splitlines() == [
        "✓ tabq: build ended as success (exit code 0) after 10m.",
        "The agent signaled SUCCESS in iteration 2 of at most 40, and verify passed after it.",
        f"iterations 2 (2 good, 0 failed) of at most 40 · $1.00, 2 k tokens {MODEL} · 3 files +60…",
        "Proof  verify passed after iteration 2: 5/5 tests, commit 0000002 (make test)",
        "Next   git log --oneline --stat 0000000..0000002   # Read the 2 commits",
        "       git diff 0000000..0000002   # Review the whole run as one diff",
    ]


def test_a_high_terminal_gets_all_numbers_and_commands() -> None:
    text = head_text(ended(), 100, 50, PLAIN)
    for name in ("Proof", "Tests", "Time", "Iterations", "Changes", "Cost", "Next"):
        assert f"\n{name} " in text
    assert "rooda why" in text


def test_words_of_an_agent_that_gave_up_are_marked_as_not_checked() -> None:
    rows = [failed(1, "signal", "the agent signaled FAILURE: no key")]
    run = summarize(night(status="aborted", rule="failure_threshold", exit_code=1), rows, START)
    text = head_text(run, 100, 50, PLAIN)
    assert "✗ tabq: build ended as aborted" in text
    assert "Agent says  no key (not checked by rooda)" in text


def test_a_run_at_work_grows_older_with_its_iteration() -> None:
    row = iteration(1, status="executing", ended_at=None, duration=None, result=None, segments=())
    run = summarize(at_work(), [row], START)
    older = aged(run, 60)
    assert older.seconds == run.seconds + 60
    assert older.iterations[0].seconds == run.iterations[0].seconds + 60
    assert aged(ended(), 60) == ended()
    first = aged(summarize(at_work(), [], START), 60)
    assert first.is_running
    assert first.seconds >= 60


@pytest.mark.parametrize("room", [1, 8, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [5, 24, 50])
def test_the_headline_fits_every_width(room: int, height: int) -> None:
    for run in (ended(), summarize(at_work(), [iteration(1)], START)):
        lines = head_text(run, room, height, PLAIN).splitlines()
        if room >= 40:
            assert all(width(line) <= room for line in lines)


@pytest.mark.parametrize("height", [10, 24, 50])
def test_success_with_open_tasks_is_a_warning_beside_the_proof(height: int) -> None:
    row, rows = doubtful_night()
    run = summarize(row, rows, START)
    lines = head_text(run, 120, height, PLAIN).splitlines()
    assert lines[0].startswith("! tabq: build ended as success (exit code 0)")
    proof = next(at for at, line in enumerate(lines) if line.startswith("Proof"))
    assert lines[proof + 1].split(maxsplit=1)[1].startswith("14 of 20 tasks; 6 open in PLAN.md: ")
    colored = head_text(run, 120, height, Painter(is_on=True))
    assert colored.startswith(Color.WARNING)
    assert f"{Color.WARNING}Tasks" in colored


def test_run_at_work_shows_how_many_tasks_are_done() -> None:
    _, rows = doubtful_night()
    row = at_work(tasks=rows[0].tasks)
    line = head_text(summarize(row, rows[:1], START), 120, 24, PLAIN).splitlines()[2]
    assert line.startswith("13 of 20 tasks · iterations 1 (1 good, 0 failed)")


# The small plots: every bar begins at zero, what is unknown is a gap, what failed is red.


def bars(*values: float | None) -> list[Bar]:
    return [Bar(value) for value in values]


def summary(*rows: object) -> RunSummary:
    return summarize(night(), rows, START)  # type: ignore[arg-type]  # rows of nights


def test_a_bar_is_as_high_as_its_value_and_begins_at_zero() -> None:
    assert bars_text(bars(1, 2, 4, 8), 4, 1, PLAIN) == ["▁▂▄█"]


def test_values_that_are_nearly_equal_have_bars_that_are_nearly_equal() -> None:
    assert bars_text(bars(40, 41), 2, 1, PLAIN) == ["██"]


def test_a_high_plot_has_several_rows() -> None:
    assert bars_text(bars(8, 16), 2, 2, PLAIN) == [" █", "██"]


def test_an_unknown_value_is_a_gap_and_a_small_one_is_visible() -> None:
    assert bars_text(bars(1000, None, 0, 1), 4, 1, PLAIN) == ["█  ▁"]


def test_few_bars_are_two_columns_wide_and_the_rest_is_empty() -> None:
    assert bars_text(bars(1, 1), 6, 1, PLAIN) == ["████  "]


def test_more_iterations_than_columns_share_columns_and_show_the_highest() -> None:
    many = [Bar(float(number % 10)) for number in range(1000)]
    assert bars_text(many, 100, 1, PLAIN) == ["█" * 100]


def test_the_bar_of_a_failed_iteration_is_red() -> None:
    (line,) = bars_text([Bar(1), Bar(1, is_failed=True)], 2, 1, Painter(is_on=True))
    assert f"{Color.BAD}█" in line
    assert f"{Color.NAME}█" in line


def test_no_plot_without_data() -> None:
    bare = iteration(1, cost=None, tokens=None, lines=LineCounts(0, 0, 0, ()))
    assert plots_of(summary(bare)) == []
    assert plots_of(summary()) == []
    assert plots_text([], 80, 1, PLAIN) == ""


def test_the_plots_are_tests_cost_and_lines() -> None:
    run = summary(iteration(1, results(4)), failed(2, "verify", "no", cost=1.5))
    assert [(one.title, one.words) for one in plots_of(run)] == [
        ("Tests passed", "4/4"),
        ("Cost", "$2.00"),
        ("Lines", "3 files +60 \u22128"),
    ]


@pytest.mark.parametrize("room", [1, 5, 17, 40, 80, 200])
def test_plots_fit_every_width(room: int) -> None:
    plots = plots_of(summary(*(iteration(one, results(one)) for one in range(1, 60))))
    lines = plots_text(plots, room, 3, PLAIN).split("\n")
    assert len(lines) == 4
    assert all(len(line) <= room for line in lines)
