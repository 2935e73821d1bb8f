"""The small plots: every bar begins at zero, what is unknown is a gap, what failed is red."""

import pytest

from rooda.base.colors import Color, Painter
from rooda.front.watch.plots import Bar, bars_text, plots_of, plots_text
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.world.git.snapshots.tree_changes import LineCounts
from support.nights import START, failed, iteration, night, results

PLAIN = Painter()


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
