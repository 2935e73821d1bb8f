"""`keep_awake`: the machine does not sleep during a run; stand-ins play the programs for that."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from rooda.run.services import keep_awake
from support.children import Nursery, until
from support.recorded import SUCCESS, versioned
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace, alive, wait_for

LINE = "The machine stays awake during the run ({})"
WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
# It notes its arguments and its pid, runs the command behind its options, and notes its end.
HELPER = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/arguments"
echo $$ > "{folder}/helper.pid"
while [ "${{1#-}}" != "$1" ]; do shift; done
"$@"
echo ended > "{folder}/ended"
"""


def stand_in(workspace: Workspace, name: str, body: str = HELPER) -> Path:
    """Put a program in front of the PATH, outside of the work tree; return its folder."""
    folder = workspace.home / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(body.format(folder=folder))
    program.chmod(0o755)
    workspace.env["PATH"] = f"{folder}:/usr/bin:/bin"
    return folder


def few_programs(workspace: Workspace) -> Path:
    """Return a folder with the programs that a test needs, and no systemd-inhibit."""
    folder = workspace.home / "few"
    folder.mkdir()
    for name in ("sh", "cat", "git", "env", "sleep"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["systemd-inhibit", "caffeinate"])
def test_machine_stays_awake_from_the_start_of_a_run_to_its_end(
    workspace: Workspace, nursery: Nursery, name: str
) -> None:
    folder = stand_in(workspace, name)
    if name == "caffeinate":  # and no systemd-inhibit, as on macOS
        workspace.env["PATH"] = f"{folder}:{few_programs(workspace)}"
    command = workspace.agent(f"{WAITS}; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--keep-awake", "true")
    nursery.pid("agent")
    helper = int(wait_for(folder / "helper.pid"))
    arguments = wait_for(folder / "arguments").splitlines()
    if name == "caffeinate":
        assert arguments[0] == "-i"
    else:
        assert arguments[:2] == ["--what=idle:sleep", "--who=rooda"]
        assert re.fullmatch(r"--why=work is at work \(run \S+\)", arguments[2])
        assert arguments[3] == "--mode=block"
    # In a session of its own: the keys of the terminal don't reach it.
    assert os.getsid(helper) == helper
    assert alive(helper)
    workspace.write("go", "")
    done = running.finish()
    assert done.code == 0, done.err
    assert done.err.count(LINE.format(name)) == 1, done.err
    assert "stopped" not in done.err  # it is no leftover of the agent
    assert wait_for(folder / "ended") == "ended\n"
    until(lambda: not alive(helper), "the helper ends")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_machine_may_sleep_again_however_rooda_ends(
    workspace: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    folder = stand_in(workspace, "systemd-inhibit")
    command = workspace.agent(WAITS)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--keep-awake", "true")
    nursery.pid("agent")
    helper = int(wait_for(folder / "helper.pid"))
    running.signal(number)
    running.finish()
    assert wait_for(folder / "ended") == "ended\n"
    until(lambda: not alive(helper), "the helper ends")


@pytest.mark.real
def test_ctrl_c_reaches_rooda_and_not_the_helper(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    folder = stand_in(
        workspace, "systemd-inhibit", f"#!/bin/sh\ntrap 'echo > {{folder}}/hit' INT\n{HELPER[10:]}"
    )
    nursery.folder.joinpath("rooda-config.yml").write_text(PROCEDURE)
    screen.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS), "--keep-awake", "true")
    screen.wait_for("stays awake")
    nursery.pid("agent")
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert wait_for(folder / "ended") == "ended\n"
    assert not (folder / "hit").exists()


@pytest.mark.long
def test_program_that_refuses_is_a_warning_only_if_the_user_demands_it(
    workspace: Workspace,
) -> None:
    refuses = "#!/bin/sh\necho 'Failed to inhibit: Access denied' >&2; exit 1\n"
    stand_in(workspace, "systemd-inhibit", refuses)
    command = workspace.agent(f"sleep 0.1; {SUCCESS}")
    done = workspace.work(command, "--keep-awake", "true")
    assert done.code == 0
    reason = '"systemd-inhibit refuses: Failed to inhibit: Access denied"'
    assert f"WARN: rooda can't keep the machine awake reason={reason}" in done.err
    quiet = workspace.work(command, "--keep-awake", "auto")
    assert quiet.code == 0
    assert "awake" not in quiet.err


@pytest.mark.real
def test_program_that_hangs_does_not_outlive_the_run(workspace: Workspace) -> None:
    hangs = "#!/bin/sh\necho $$ > {folder}/helper.pid; trap '' TERM PIPE\nsleep 60\n"
    folder = stand_in(workspace, "systemd-inhibit", hangs)
    pid = f"{folder}/helper.pid"
    command = workspace.agent(f"while ! test -s {pid}; do sleep 0.02; done; {SUCCESS}")
    assert workspace.work(command, "--keep-awake", "true").code == 0
    assert not alive(int(Path(pid).read_text()))


@pytest.mark.long
def test_nothing_is_started_if_nothing_is_wanted(workspace: Workspace) -> None:
    folder = stand_in(workspace, "systemd-inhibit")
    command = workspace.agent(SUCCESS)
    for flags in (("--keep-awake", "false"), ("--preset", "v1", "-n", "1", "--no-push")):
        done = workspace.work(command, *flags)
        assert done.code == 0, done.err
        assert "awake" not in done.err
    assert workspace.work(command, "--keep-awake", "true", "--dry-run").code == 0
    assert not (folder / "arguments").exists()


@pytest.mark.long
def test_program_of_the_work_tree_is_not_used(workspace: Workspace) -> None:
    versioned(workspace)
    planted = workspace.write("bin/systemd-inhibit", "#!/bin/sh\ntouch ../planted\n")
    planted.chmod(0o755)
    workspace.env["PATH"] = f"{planted.parent}:{few_programs(workspace)}"
    done = workspace.work(workspace.agent(SUCCESS), "--keep-awake", "true")
    assert done.code == 0, done.err
    assert "there is no systemd-inhibit or caffeinate that works here" in done.err
    assert not (workspace.path / "planted").exists()


def test_systemd_must_run_and_answer_before_rooda_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SYSTEM_BUS_ADDRESS", raising=False)
    monkeypatch.setattr(keep_awake, "_SYSTEMD", tmp_path / "systemd")
    monkeypatch.setattr(keep_awake, "_BUS", tmp_path / "bus")
    assert not keep_awake.has_systemd()
    (tmp_path / "systemd").mkdir()
    assert not keep_awake.has_systemd()
    (tmp_path / "bus").touch()
    assert keep_awake.has_systemd()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere,guid=1")
    assert not keep_awake.has_systemd()
