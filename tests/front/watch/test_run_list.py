"""The list of runs as a table."""

from pathlib import Path

from rooda.base.colors import Color, Painter
from rooda.front.watch.run_list import ListedRun, list_text
from rooda.views.model.brief import brief_of
from support.nights import RUN, START, doubtful_night
from support.states import record_at


def test_success_with_open_tasks_is_a_warning_and_names_them() -> None:
    row, _ = doubtful_night()
    listed = ListedRun(
        record_at(Path("/home/ada/tabq")), RUN, brief_of(row, "All tasks are done", START)
    )
    text = list_text([listed], 200, Painter(is_on=True))
    assert f"{Color.WARNING}! success" in text
    assert f"{Color.WARNING}14 of 20" in text
    assert "6 open in PLAN.md: Parse dates" in text
    assert "All tasks are done" not in text
