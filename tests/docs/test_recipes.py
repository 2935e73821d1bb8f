"""The recipes of CONTRIBUTING.md, followed in a copy of the sources: how many places they take."""

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import rooda
from rooda.loop import iteration_facts, loop, run_facts
from rooda.loop.stages import signals
from rooda.views.terminal import iteration_view, run_view
from support.finished import Finished
from support.workspace import PROCEDURE, Workspace

START = """\
import sys
sys.path.insert(0, {path!r})
sys.argv[0] = "rooda"
from rooda.front.cli.main import main
sys.exit(main())
"""


class Change(NamedTuple):
    """A line that is put below a line of a module."""

    module: ModuleType
    below: str
    line: str

    def apply(self, sources: Path) -> None:
        top, file = Path(inspect.getfile(rooda)).parent, Path(inspect.getfile(self.module))
        copy = sources / "rooda" / file.relative_to(top)
        text = copy.read_text()
        assert text.count(self.below) == 1, (copy, self.below)
        copy.write_text(text.replace(self.below, f"{self.below}\n{self.line}"))


# A fact about an iteration takes two places: its field, and the view that shows it.
FACT = (
    Change(
        iteration_facts,
        "    returned_to: int | None = None  # an earlier iteration that left the same tree",
        "    mood: str | None = None  # how the agent felt",
    ),
    Change(
        iteration_view,
        "    full = row.result.context_usage_percent if row.result is not None else None",
        '    yield "Mood", row.mood or "unknown"',
    ),
)
# The stage that measures it.
LEARNED = Change(
    signals, "    context.promises = _scan(context, result)", '    context.learn(mood="glad")'
)

# So does a fact about a run.
RUN_FACT = (
    Change(
        run_facts,
        "    total: float | None = None  # for how many seconds the run was at work",
        "    moods: int | None = None  # how many moods there were",
    ),
    Change(
        run_view,
        "    yield from task_lines(run)",
        '    yield "Moods", str(run.row.moods)',
    ),
)
RUN_LEARNED = Change(loop, "        rule=str(found.rule),", "        moods=2,")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the sources."""
    folder = tmp_path / "sources"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(inspect.getfile(rooda)).parent, folder / "rooda", ignore=ignored)
    return folder


def run_copy(sources: Path, workspace: Workspace, *words: str) -> Finished:
    done = subprocess.run(
        [sys.executable, "-I", "-c", START.format(path=str(sources)), *words],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Finished(done.returncode, done.stdout, done.stderr, 0.0)


def event_of(log: str, name: str) -> Mapping[str, object]:
    events = [json.loads(line) for line in log.splitlines()]
    found: Mapping[str, object] = next(one for one in events if one["event"] == name)
    return found


@pytest.mark.real
def test_fact_about_an_iteration_takes_two_places(workspace: Workspace, sources: Path) -> None:
    for change in (*FACT, LEARNED):
        change.apply(sources)
    workspace.config(PROCEDURE)
    agent = workspace.agent("echo '<promise>SUCCESS</promise>'")
    words = ("work", "--ai-cmd", agent, "--run-id", "one", "--log-format", "json")
    log = run_copy(sources, workspace, *words).err
    assert event_of(log, "iteration_ended")["mood"] == "glad"
    shown = json.loads(run_copy(sources, workspace, "show", "one", "--json").out)
    assert [one["mood"] for one in shown["iterations"]] == ["glad"]
    assert "Mood" in run_copy(sources, workspace, "show", "one", "1").out
    exported = json.loads(run_copy(sources, workspace, "record", "export", "one").out)
    assert "glad" in json.dumps(exported["iterations"])


@pytest.mark.real
def test_fact_about_a_run_takes_two_places(workspace: Workspace, sources: Path) -> None:
    for change in (*RUN_FACT, RUN_LEARNED):
        change.apply(sources)
    workspace.config(PROCEDURE)
    result = workspace.home / "result.json"
    agent = workspace.agent("echo '<promise>SUCCESS</promise>'")
    words = ("work", "--ai-cmd", agent, "--run-id", "one", "--result", str(result))
    log = run_copy(sources, workspace, *words, "--log-format", "json").err
    assert event_of(log, "run_ended")["moods"] == 2
    assert json.loads(result.read_text())["moods"] == 2
    shown = json.loads(run_copy(sources, workspace, "show", "one", "--json").out)
    assert shown["moods"] == 2
    assert "Moods" in run_copy(sources, workspace, "show", "one").out
