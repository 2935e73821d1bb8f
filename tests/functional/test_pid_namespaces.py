"""A run in another PID namespace, as in a container that shares the folder of the project.

Pids differ between namespaces, and a sibling namespace does not see the process of the run at all.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rooda.world.state.lock_note import ProcessIdentity, here, pid_namespace
from support.children import Nursery, until
from support.finished import Finished
from support.recorded import asked
from support.workspace import PROCEDURE, Workspace, wait_for

APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
WITHOUT_PROC = ("unshare", "--pid", "--fork", "--kill-child")  # `/proc` is that of the parent
# No file `NAME.pid`: the number would mean another process here.
WAITS = "echo > up; while ! test -e go; do sleep 0.02; done; echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    trial = [*APART, "true"]
    if not shutil.which("unshare") or subprocess.run(trial, check=False).returncode:
        pytest.skip("this machine does not allow a new PID namespace (`unshare --pid`)")
    workspace.config(PROCEDURE)
    found = Nursery(workspace.path)
    yield found
    found.clear()


@pytest.mark.long
def test_a_live_run_of_another_pid_namespace_is_known_refused_and_stopped(
    workspace: Workspace, nursery: Nursery
) -> None:
    def inside(before: tuple[str, ...], *args: str) -> Finished:
        return nursery.start(workspace, *args, before=before).finish()

    agent = workspace.agent(WAITS)
    running = nursery.start(workspace, "work", "-n", "2", "--ai-cmd", agent, before=APART)
    wait_for(workspace.path / "up")
    (run,) = asked(workspace.rooda, "history")
    assert run["status"] == "running"
    for namespace in (APART, WITHOUT_PROC):
        assert " running " in inside(namespace, "history").out
        stopped = inside(namespace, "stop", "--now")
        assert stopped.code == 1
        assert "is at work here in another PID namespace, such as a container" in stopped.err
        refused = inside(namespace, "work", "--ai-cmd", "true")
        assert refused.code == 1
        assert "end it with `rooda stop` in the container of the run" in refused.err
    assert workspace.rooda("work", "--ai-cmd", "true").code == 1
    assert running.process.poll() is None
    # The namespace above sees the process, under a pid that the note does not have.
    assert f"(run {run['run']}, pid " in workspace.rooda("stop").out
    (workspace.path / "go").touch()
    assert running.finish().code in (0, 130)


@pytest.mark.real
def test_a_killed_run_of_another_pid_namespace_is_interrupted(
    workspace: Workspace, nursery: Nursery
) -> None:
    agent = workspace.agent(WAITS)
    running = nursery.start(workspace, "work", "--ai-cmd", agent, before=APART)
    wait_for(workspace.path / "up")
    running.signal(signal.SIGKILL)  # unshare ends, and with it the whole namespace

    def status() -> str:
        return str(asked(workspace.rooda, "history")[-1]["status"])

    until(lambda: status() == "interrupted", "the run is shown as interrupted")
    (workspace.path / "go").touch()
    assert workspace.rooda("work", "--ai-cmd", agent).code == 0
    assert status() == "interrupted"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has PID namespaces")
@pytest.mark.parametrize("is_locked", [True, False])
def test_the_lock_tells_whether_a_run_of_another_namespace_is_alive(*, is_locked: bool) -> None:
    host, boot = here()
    own = ProcessIdentity.own()
    assert own.is_alive(lambda: not is_locked)  # a pid of this namespace is enough
    for name, namespace in (
        (host, "pid:[1]"),
        ("container", "pid:[1]"),
        ("renamed", own.namespace),
    ):
        other = ProcessIdentity(own.pid, own.started, name, boot, namespace)
        assert other.is_alive(lambda: is_locked) == is_locked, name
    assert not ProcessIdentity(own.pid, own.started, host, "old", "pid:[1]").is_alive(lambda: True)
    assert ProcessIdentity(own.pid, own.started, "far", "its own").is_alive(lambda: False)
    assert own.namespace == pid_namespace()
