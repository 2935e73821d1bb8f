"""Statistics of iteration times: correct, and in constant memory."""

import functools
import statistics
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.loop.history import Stats

SECONDS = st.floats(min_value=0, max_value=1e6, allow_nan=False)


def collect(durations: Iterable[float]) -> Stats:
    return functools.reduce(Stats.add, durations, Stats())


@pytest.mark.parametrize(
    "durations,expected",
    [
        ([45.2, 38.7, 52.1], (38.7, 52.1, 45.3, 5.5)),
        ([42.0, 36.0, 37.0, 15.0, 12.0, 13.0], (12.0, 42.0, 25.8, 12.7)),
    ],
    ids=["example 1", "example 2"],
)
def test_numbers_of_the_documented_examples(
    durations: list[float], expected: tuple[float, float, float, float]
) -> None:
    stats = collect(durations)
    assert stats.stddev is not None
    found = (stats.minimum, stats.maximum, stats.mean, stats.stddev)
    assert tuple(round(number, 1) for number in found) == expected


@given(st.lists(SECONDS, min_size=2, max_size=200))
def test_stddev_is_the_population_standard_deviation(durations: list[float]) -> None:
    assert collect(durations).stddev == pytest.approx(
        statistics.pstdev(durations), rel=1e-6, abs=1e-4
    )


@given(st.lists(SECONDS, min_size=1, max_size=200))
def test_count_total_extremes_and_mean_are_correct(durations: list[float]) -> None:
    stats = collect(durations)
    assert stats.count == len(durations)
    assert stats.total == pytest.approx(sum(durations))
    assert (stats.minimum, stats.maximum) == (min(durations), max(durations))
    assert stats.mean == pytest.approx(statistics.fmean(durations), abs=1e-9)


def test_small_stddev_of_large_numbers_is_exact() -> None:
    assert collect([1e9 + 1, 1e9 + 2, 1e9 + 3]).stddev == pytest.approx(0.8164966, rel=1e-5)


def test_stddev_of_equal_durations_is_zero() -> None:
    assert collect([0.1] * 1000).stddev == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("durations", [[], [3.5]], ids=["none", "one"])
def test_stddev_is_unknown_before_the_second_duration(durations: list[float]) -> None:
    assert collect(durations).stddev is None


def test_one_duration_is_minimum_maximum_and_mean() -> None:
    stats = collect([3.5])
    assert (stats.minimum, stats.maximum, stats.mean) == (3.5, 3.5, 3.5)


def test_memory_does_not_grow_with_the_number_of_iterations() -> None:
    few, many = collect([1.5, 2.5]), collect(n % 7 + 0.5 for n in range(10_000))

    def weight(stats: Stats) -> int:
        values = [getattr(stats, name) for name in stats.__struct_fields__]
        assert all(type(value) in (int, float) for value in values)
        return sys.getsizeof(stats) + sum(sys.getsizeof(value) for value in values)

    assert weight(many) <= weight(few) + 8, "only numbers, and not longer ones"
    assert not hasattr(many, "__dict__"), "there is no other attribute"


def test_add_does_not_change_the_statistics_before() -> None:
    before = collect([1.0, 2.0])
    before.add(100.0)
    assert before == collect([1.0, 2.0])
