"""A recorded SUCCESS with open tasks through the installed commands."""

import json

import pytest
from msgspec.structs import replace

from rooda.record.store import Store
from support.hostile import SCRIPT
from support.nights import doubtful_night
from support.recorded import asked
from support.workspace import Workspace

CLAIM = "All tasks are done"


@pytest.mark.real
def test_no_command_shows_a_success_with_open_tasks_as_done(workspace: Workspace) -> None:
    row, rows = doubtful_night()
    assert row.tasks_left is not None
    left = replace(row.tasks_left, open=(SCRIPT, "\x1b[2Jcleared", *row.tasks_left.open[2:]))
    store = Store(workspace.state, print)
    store.save(run=replace(row, workspace=str(workspace.path), tasks_left=left))
    for one in rows:
        store.save(iteration=one)
    store.close()
    count = {"done": 14, "total": 20, "blocked": 0}
    (listed,) = asked(workspace.rooda, "history")
    for found in (asked(workspace.rooda, "show"), asked(workspace.rooda, "why"), listed):
        assert (found["status"], found["exit_code"], found["tasks"]) == ("success", 0, count)
        assert len(found["tasks_left"]["open"]) == 6
    assert (
        json.loads(workspace.rooda("report", "--format", "json", "-o", "-").out)["tasks"] == count
    )
    for command in ("show", "why", "history"):
        shown = workspace.rooda(command).out
        assert "14 of 20 tasks; 6 open in PLAN.md: " in shown
        assert "cleared" in shown
        assert "\x1b" not in shown
        assert "no check failed" not in shown
    assert CLAIM not in workspace.rooda("history").out
    page = workspace.rooda("report", "-o", "-").out
    assert '<h1 id="h" class="warn">' in page
    assert SCRIPT not in page
