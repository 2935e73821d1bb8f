"""`rooda selftest`: all trials on this machine."""

import contextlib
import json
import shutil
import signal
from pathlib import Path

import pytest

from support.children import until
from support.workspace import Workspace, alive

pytestmark = pytest.mark.real

HOSTILE = "loop: {ai_cmd: 'touch harmed', hooks: {loop_start: ['touch harmed']}}\n"


@pytest.fixture
def temporary(workspace: Workspace, tmp_path: Path) -> Path:
    """A folder for temporary files, to check which files are left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    workspace.env["TMPDIR"] = str(folder)
    return folder


@pytest.mark.sample
@pytest.mark.long
@pytest.mark.timeout(600)
def test_all_promises_hold_and_nothing_of_the_user_is_touched(
    workspace: Workspace, temporary: Path
) -> None:
    workspace.config("this is no config\n")
    workspace.global_config(HOSTILE)
    done = workspace.rooda("selftest", "--json", timeout=550)
    found = json.loads(done.out)
    bad = [
        one for one in found["trials"] if one["verdict"] not in ("held", "cannot be promised here")
    ]
    assert bad == []
    assert done.code == 0
    assert found["ok"] is True
    assert found["counts"]["held"] + found["counts"]["cannot be promised here"] == len(
        found["trials"]
    )
    if shutil.which("bwrap"):
        verdicts = {one["name"]: one["verdict"] for one in found["trials"]}
        assert verdicts["sandbox: writes outside"] == "held"
    assert done.err.count("  held ") == found["counts"]["held"], "a line for each trial"
    assert list(temporary.iterdir()) == []
    assert [path.name for path in workspace.path.iterdir()] == ["rooda-config.yml"]
    assert not list(workspace.home.rglob("harmed"))
    assert {path.name for path in workspace.home.iterdir()} <= {".config"}


def agents_at_work(folder: Path) -> list[int]:
    """The agents of the trials that run now; their folders come and go."""
    pids = []
    for file in folder.glob("*/*/tree-1/leader.pid"):
        with contextlib.suppress(OSError):
            pids.append(int(file.read_text().split()[0]))
    return pids


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signal_ends_the_selftest_with_all_its_agents(
    workspace: Workspace, temporary: Path, number: signal.Signals
) -> None:
    running = workspace.start("selftest")
    until(lambda: any(map(alive, agents_at_work(temporary))), "an agent works", 60)
    agents = agents_at_work(temporary)
    running.signal(number)
    done = running.finish(60)
    until(lambda: not any(map(alive, agents)), "all agents end", 30)
    if number is signal.SIGINT:
        assert done.code == 130
        assert done.err.rstrip().endswith("Interrupted")
        assert list(temporary.iterdir()) == []
