"""The recipes of CONTRIBUTING.md: one row adds a stop rule, a kind of wait, or a kind of failure.

Each test copies the package, adds one row to the copy, and asks all views of the copy.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rooda
from rooda.base.colors import Color
from rooda.loop import stops, wait_kinds
from rooda.world.agents import failure_kinds

pytestmark = pytest.mark.real

_TESTS = Path(__file__).parents[2]
_ASK = """
import json, sys
from pathlib import Path
from {module} import {enum}
from support.wordings import {views}
from tools import docs

row = {enum}({name!r})
print(json.dumps([*{views}(row, Path(sys.argv[1])), *{more}]))
"""
_WAITING = """
from datetime import UTC, datetime
from types import SimpleNamespace

from rooda.loop.state import State
from rooda.loop.waiting import next_wait
from rooda.loop.waits import Patience

services = SimpleNamespace(now=lambda: datetime.now(UTC), accounts={})
"""


def _with_row(folder: Path, source: str, enum: str, row: str) -> None:
    """Copy the package into the folder, with one more row at the end of an enumeration."""
    package = Path(rooda.__file__).parent
    shutil.copytree(package, folder / "rooda", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "rooda" / Path(source).relative_to(package)
    text = file.read_text("utf-8")
    (body,) = [
        one.body
        for one in ast.parse(text).body
        if isinstance(one, ast.ClassDef) and one.name == enum
    ]
    end = max(one.end_lineno or 0 for one in body if isinstance(one, ast.Assign))
    lines = text.splitlines()
    file.write_text("\n".join([*lines[:end], f"    FAKE = {row}", *lines[end:], ""]), "utf-8")


def _printed(folder: Path, asks: str) -> dict[str, str]:
    """Return what each view of the copy prints."""
    paths = os.pathsep.join(map(str, (folder, _TESTS, _TESTS.parent)))
    done = subprocess.run(
        [sys.executable, "-c", asks, str(folder)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = {}
    for name, text in json.loads(done.stdout):
        found[name] = found.get(name, "") + text
    return found


def _expect(found: dict[str, str], words: dict[str, tuple[str, ...]]) -> None:
    missing = [
        (word, view, found[view])
        for word, views in words.items()
        for view in views
        if word not in found[view]
    ]
    assert not missing


def test_one_row_adds_a_stop_rule(tmp_path: Path) -> None:
    row = """StopRow(
        "fake-rule",
        Status.ABORTED,
        lambda state, limits: "the moon is full" if state.idle == 99 else None,
        "A fake meaning.",
        settings=("max_cost",),
        reason="a fake reason",
        line="ERROR: A fake line ({completed})",
        logged="A fake message",
        story="A fake story at {time}.",
        next=NextStep("Continue after the fake moon"),
    )"""
    _with_row(tmp_path, stops.__file__, "StopRule", row)
    more = (
        "[('docs', docs.stop_rules_table()), ('decision', str(stops.stop(stops.State(idle=99), "
        "stops.Limits(None, 3))))]"
    )
    asks = _ASK.format(
        module="rooda.loop.stops", enum="StopRule", name="fake-rule", views="of_rule", more=more
    )
    found = _printed(tmp_path, f"from rooda.loop import stops\n{asks}")
    _expect(
        found,
        {
            "A fake meaning.": ("why", "docs"),
            "a fake reason": ("session log", "reason in the record", "history"),
            "A fake line": ("log, text", "message without a record"),
            "A fake message": ("log, logfmt",),
            "A fake story at": ("show", "watch", "report", "markdown", "json", "message"),
            "Continue after the fake moon": ("show", "markdown", "message"),
            "rooda resume": ("next at the end", "report"),
            "bad": ("color in the terminal",),
            Color.BAD: ("show", "watch", "history"),
            "loop.max_cost": ("settings",),
            "the moon is full": ("decision",),
        },
    )


def test_one_row_adds_a_kind_of_wait(tmp_path: Path) -> None:
    row = """WaitRow(
        "fake-wait",
        lambda state, patience, now: Due("moon", "it is new", 60.0) if state.idle == 99 else None,
        "A fake wait for {what}",
        "for the fake {what}",
        "fake label",
        until="until maybe",
        unknown="a fake note",
    )"""
    _with_row(tmp_path, wait_kinds.__file__, "WaitKind", row)
    asks = _ASK.format(
        module="rooda.loop.wait_kinds",
        enum="WaitKind",
        name="fake-wait",
        views="of_wait",
        more="[('decision', str(next_wait(State(idle=99), Patience(), services)))]",
    )
    found = _printed(tmp_path, f"{_WAITING}\n{asks}")
    _expect(
        found,
        {
            "A fake wait for claude": ("log, text", "log, logfmt"),
            "a fake note": ("log, text", "log, logfmt"),
            "until maybe": ("log, text", "live line", "show, waiting", "why, waiting"),
            "for the fake claude": ("live line", "message", "show, waiting", "show", "why"),
            "fake label": ("show", "report", "markdown"),
            "fake-wait": ("log, json", "json"),
            "it is new": ("decision",),
        },
    )


def test_one_row_adds_a_kind_of_failure(tmp_path: Path) -> None:
    row = """FailureRow(
        "fake-kind",
        "a fake meaning",
        settings=("max_cost",),
        advice="Take the fake advice",
        cause="a fake cause: {reason}",
        logged=("signal", "exit_code"),
        story="A fake story{ended}.",
        hint="A fake hint.",
    )"""
    _with_row(tmp_path, failure_kinds.__file__, "FailureKind", row)
    asks = _ASK.format(
        module="rooda.world.agents.failure_kinds",
        enum="FailureKind",
        name="fake-kind",
        views="of_failure",
        more="[('docs', docs.failure_kinds_table())]",
    )
    found = _printed(tmp_path, asks)
    _expect(
        found,
        {
            "a fake meaning": ("why N", "docs"),
            "Take the fake advice": ("log, text", "log, logfmt", "session log", "why N"),
            "a fake cause: why it failed": ("log, text", "session log"),
            "A fake story": ("show", "show N", "report", "markdown"),
            "A fake hint.": ("hint",),
            "fake-kind": ("show", "show N", "report", "markdown", "message"),
        },
    )
