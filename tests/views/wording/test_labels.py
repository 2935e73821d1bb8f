"""Words for numbers, times and changes, as all views show them."""

import time
from collections.abc import Iterator
from typing import cast

import pytest

from rooda.views.model.summary import RunSummary, SpanKind
from rooda.views.wording import labels
from support.tables import each_row

MORNING = "2026-11-14T06:41:09+00:00"


class Times:
    """What `times_of` and `clock_at` read of a run."""

    started_at = MORNING
    seconds = 100.0

    def __init__(self, **times: float) -> None:
        self.times = {SpanKind[name]: seconds for name, seconds in times.items()}


def run_with(**times: float) -> RunSummary:
    return cast("RunSummary", Times(**times))


@pytest.fixture
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_push_is_a_part_of_the_commit_and_the_rest_is_rooda_itself() -> None:
    found = labels.times_of(run_with(AGENT=60.0, COMMIT=2.0, PUSH=3.0))
    assert found == [("agent", 60.0), ("other", 35.0), ("commit", 5.0)]
    assert labels.times_of(run_with(AGENT=99.5)) == [("agent", 99.5)]
    assert labels.times_of(run_with(AGENT=99.0)) == [("agent", 99.0), ("other", 1.0)]
    assert labels.times_of(run_with()) == []


@each_row(
    "seconds,total,words",
    [(0, 10, "0 %"), (0.05, 10, "<1 %"), (0.1, 10, "1 %"), (5, 10, "50 %"), (3, 0, "0 %")],
)
def test_share_is_a_whole_number_of_percent(seconds: float, total: float, words: str) -> None:
    assert labels.share(seconds, total) == words


@each_row(
    "seconds,words",
    [
        (0, "0s"),
        (0.4, "0.4s"),
        (9.44, "9.4s"),
        (9.6, "9.6s"),
        (10.4, "10s"),
        (59, "59s"),
        (60, "1m"),
        (61, "1m01s"),
        (9 * 60 + 59, "9m59s"),
        (10 * 60 + 5, "10m"),
        (3599, "59m"),
        (3600, "1h00m"),
        (7 * 3600 + 39 * 60, "7h39m"),
        (23 * 3600 + 59 * 60 + 50, "1d00h"),
        (26 * 3600, "1d02h"),
    ],
)
def test_brief_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    assert labels.brief_duration(seconds) == words


@each_row(
    "files,added,deleted,words",
    [
        (None, 1, 1, "changes unknown"),
        (1, None, None, "1 file"),
        (2, 3, None, "2 files"),
        (2, None, 3, "2 files"),
        (3, 120, 14, "3 files +120 \u221214"),
        (0, 0, 0, "0 files +0 \u22120"),
        (1200, 5, 6, "1,200 files +5 \u22126"),
    ],
)
def test_changes_are_files_and_lines(
    files: int | None, added: int | None, deleted: int | None, words: str
) -> None:
    assert labels.changes_words(files, added, deleted) == words


@each_row(
    "number,words",
    [
        (0, "0"),
        (950, "950"),
        (999.4, "999.4"),
        (999.6, "1 k"),
        (1000, "1 k"),
        (12_400, "12.4 k"),
        (100_000, "100 k"),
        (999_700, "1 M"),
        (23_800_000, "23.8 M"),
        (5e9, "5 G"),
    ],
)
def test_brief_number_has_three_digits_and_a_unit(number: float, words: str) -> None:
    assert labels.brief_number(number) == words


@each_row(
    "iterations,words",
    [((), ""), ((21,), "iteration 21 not known"), ((3, 4), "2 iterations not known")],
)
def test_what_a_sum_does_not_have_is_named(iterations: tuple[int, ...], words: str) -> None:
    assert labels.not_known(iterations) == words


@pytest.mark.usefixtures("utc")
def test_times_of_the_record_are_shown_in_local_time() -> None:
    assert labels.clock(MORNING) == "06:41"
    assert labels.clock(MORNING, seconds=True) == "06:41:09"
    assert labels.clock(None) == labels.clock("no time") == "?"
    assert labels.day(MORNING) == "Sat 14 Nov 06:41"
    assert labels.day(None) == labels.day("no time") == "?"
    assert labels.date_and_time(MORNING) == "2026-11-14 06:41:09"
    assert labels.date_and_time(None) == "-"
    assert labels.date_and_time("no time") == "no time"
    assert labels.clock_at(run_with(), 3600) == "07:41"
    assert labels.clock_at(run_with(), 1e30) == "?"
