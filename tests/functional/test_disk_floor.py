"""`min_free_disk` through the installed command: no start, and no iteration, on a full disk."""

import json
import shlex

import pytest

from support.children import Nursery
from support.faults import small_disk
from support.workspace import PROCEDURE, ROODA, Workspace

pytestmark = pytest.mark.real

FILL = "head -c 12000000 /dev/zero > ballast"
FLOOR = ("--min-free-disk", "6MB")


@pytest.mark.long
def test_run_does_not_start_below_the_floor_and_says_what_to_change(workspace: Workspace) -> None:
    workspace.config(f"loop:\n  min_free_disk: 999999GB\n{PROCEDURE}")
    for args in ((), ("--dry-run",)):
        done = workspace.work("true", "-n", "1", *args)
        assert done.code == 1
        assert "rooda-config.yml:2: loop.min_free_disk: only " in done.err + done.out
        assert f"of disk space is free for the work tree in {workspace.path}" in done.err + done.out
        assert "less than 999999GB (min_free_disk)" in done.err + done.out
        assert "lower the floor with --min-free-disk (0: no floor)" in done.err + done.out
    assert not (workspace.state).exists()
    for off in ("0", "none"):
        assert workspace.work("true", "-n", "1", "--min-free-disk", off).code == 2


@pytest.mark.long
def test_run_waits_for_space_says_so_and_goes_on_by_itself(
    workspace: Workspace, nursery: Nursery
) -> None:
    told = workspace.home / "told"
    rooda = shlex.quote(str(ROODA))
    look = f"cat > /dev/null; {rooda} why > {told}; {rooda} show --json > {told}.json"
    # It frees the space a while after the hook has ended, so that rooda has to look again.
    hook = workspace.agent(f"{look}; (sleep 0.5; rm -f ballast) > /dev/null 2>&1 &", "hook.sh")
    workspace.config(
        f"loop:\n  hooks: {{on_wait: [{{command: {json.dumps(hook)}}}]}}\n"
        f"  keep_processes: ['*hook.sh*']\n{PROCEDURE}"
    )
    agent = workspace.agents(FILL, "true")
    keep = f'"$@"; code=$?; cp -a $STATE {workspace.home}/record; exit $code'
    before = (*small_disk(workspace, "16m"), "sh", "-c", keep, "sh")
    args = ("work", "--ai-cmd", agent, "-n", "2", *FLOOR)
    done = nursery.start(workspace, *args, before=before).finish(40)
    assert done.code == 2, done.err
    assert "WARN: Too little disk space: waiting for more at most until " in done.err
    assert "of disk space is free for the work tree in" in done.err
    assert "less than 6MB (min_free_disk)" in done.err
    assert "The run waits for disk space for the work tree at most until" in told.read_text()
    (wait,) = json.loads((workspace.home / "told.json").read_text())["waits"]
    assert wait["kind"] == "disk"
    assert wait["waited"] is None
    workspace.state.parent.mkdir(parents=True, exist_ok=True)
    (workspace.home / "record").rename(workspace.state)
    shown = json.loads(workspace.rooda("show", "--json").out)
    assert 0.3 < shown["waits"][0]["waited"] < 30
    assert [one["status"] for one in shown["iterations"]] == ["completed", "completed"]
    assert "waiting" in workspace.rooda("show").out
    assert workspace.rooda("report").code == 0


def test_run_ends_as_aborted_if_there_is_no_space_in_time(
    workspace: Workspace, nursery: Nursery
) -> None:
    workspace.config(PROCEDURE)
    args = ("work", "--ai-cmd", workspace.agents(FILL, "true"), "-n", "3", *FLOOR)
    before = small_disk(workspace, "16m")
    done = nursery.start(workspace, *args, "--max-outage-wait", "0.3", before=before).finish(40)
    assert done.code == 1
    assert "Too little disk space: waiting for more" in done.err
    assert "(min_free_disk); waited 0.3s (max_outage_wait)" in done.err
