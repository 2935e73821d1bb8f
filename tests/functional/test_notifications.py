"""Notifications of real runs, to services that accept, refuse or never answer, and to desktops."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.children import Nursery, until
from support.ralphs import COMPLETE, ralph_work
from support.recorded import SUCCESS
from support.screen import Screen
from support.services import SECRET, Service, SilentService
from support.workspace import PROCEDURE, Workspace, alive, wait_for

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
NOTES = '#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n'
WITHOUT_EXTRA = """\
import sys
sys.modules["apprise"] = None
from rooda.front.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as found:
        yield found


def tells(workspace: Workspace, *urls: str, on: str = "[end]") -> None:
    """Write the addresses to the user's own config file, where no agent in a work tree is."""
    workspace.global_config(f"loop: {{notify: {{urls: {json.dumps(urls)}, on: {on}}}}}\n")


def log_of(workspace: Workspace) -> list[str]:
    """The results in the log of the run, without their times."""
    [path] = workspace.state.glob("runs/*/notify.log")
    assert path.stat().st_mode & 0o777 == 0o600
    return [line.partition(" ")[2] for line in path.read_text().splitlines()]


def desktop(workspace: Workspace, body: str = NOTES) -> Path:
    """Put a notify-send in front of the PATH, outside of the work tree; return its folder."""
    folder = workspace.home / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / ("osascript" if sys.platform == "darwin" else "notify-send")
    path.write_text(body.format(folder=folder))
    path.chmod(0o755)
    workspace.env |= {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":99"}
    return folder


@pytest.mark.long
def test_end_of_a_run_is_told_with_outcome_numbers_and_next_command(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url)
    done = workspace.work(workspace.agent(f"echo 'Wrote the basket.'; {SUCCESS}"))
    assert done.code == 0, done.err
    [message] = service.wait()
    assert message["title"] == "rooda: work: work: ended as success"
    assert message["type"] == "success"
    body = message["message"]
    assert "work: work ended as success (exit code 0)" in body
    assert "The agent signaled SUCCESS in iteration 1" in body
    assert "Iterations: 1 (1 good, 0 failed)" in body
    assert "rooda report " in body
    until(lambda: log_of(workspace) == [f"end {service.shown}: sent"], "the result is logged")


@pytest.mark.long
def test_addresses_are_in_no_output_no_record_of_the_settings_and_no_environment_of_an_agent(
    workspace: Workspace, service: Service
) -> None:
    workspace.config(PROCEDURE)
    env = {"ROODA_LOOP_NOTIFY_URLS": service.url}
    agent = workspace.agent(f"env > seen; {SUCCESS}")
    run = ("work", "--ai-cmd", agent)
    shown = [
        workspace.rooda(*run, "--log-level", "debug", env=env),
        workspace.rooda(*run, "--dry-run", env=env),
        workspace.rooda("config", "show", "--json", env=env),
        workspace.rooda("doctor", env=env),
        workspace.rooda("notify", env=env),
        workspace.rooda("show", "--json", env=env),
        workspace.rooda("why", "--json", env=env),
    ]
    service.wait()
    assert service.shown in shown[0].err
    assert f"Notify Urls: {service.shown} (env: ROODA_LOOP_NOTIFY_URLS)" in shown[1].out
    assert "go to 1 service" in shown[3].out
    assert f"To: {service.shown}\n" in shown[4].out
    for done in shown:
        assert SECRET not in done.out + done.err
    assert SECRET not in workspace.path.joinpath("seen").read_text()
    for path in workspace.state.glob("**/*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


@pytest.mark.long
def test_an_agent_that_prints_the_address_does_not_publish_it(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url)
    config = workspace.home / ".config/rooda/rooda-config.yml"
    agent = workspace.agent(f"cat {config}; {SUCCESS}")
    done = workspace.work(agent, "-v")
    assert SECRET not in done.out + done.err
    assert SECRET not in service.wait()[0]["message"]
    shown = workspace.rooda("show", "--output")
    assert "urls" in shown.out
    assert SECRET not in shown.out


@pytest.mark.real
def test_a_service_that_never_answers_does_not_delay_the_end_of_a_run(
    workspace: Workspace,
) -> None:
    silent = SilentService()
    tells(workspace, silent.url)
    done = workspace.work(workspace.agent(SUCCESS))
    # The run has ended and its pipes are closed; only now the message waits for an answer.
    assert done.code == 0, done.err
    assert b"POST" in silent.wait_for_message()
    assert silent.is_waited_for()
    silent.close()
    until(lambda: len(log_of(workspace)) == 1, "the result is logged")
    [line] = log_of(workspace)
    assert line.startswith(f"end {silent.shown}: failed: ")
    assert SECRET not in line


@pytest.mark.long
def test_a_message_that_is_refused_is_a_warning_and_other_services_get_theirs(
    workspace: Workspace, nursery: Nursery, service: Service
) -> None:
    with Service(500) as refusing:
        tells(workspace, refusing.url, service.url, on="[failure, end]")
        log = (
            "! test -e go || ! while ! grep -q failed $STATE/runs/*/notify.log; do sleep 0.02; done"
        )
        command = workspace.agent(f"{log}; test -e go && {SUCCESS}; touch go; exit 1")
        done = workspace.work(command)
        assert done.code == 0, done.err
        assert nursery.folder == workspace.path
        shown = f"A notification was not sent to={refusing.shown} about=failure"
        assert shown in done.err.replace('"', "")
        assert SECRET not in done.err
        titles = [message["title"] for message in service.wait(2)]
        assert titles == [
            "rooda: work: work: iteration 1 failed",
            "rooda: work: work: ended as success",
        ]


@pytest.mark.real
def test_a_run_that_is_ended_by_a_signal_is_told(
    workspace: Workspace, nursery: Nursery, service: Service
) -> None:
    tells(workspace, service.url)
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS))
    nursery.pid("agent")
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130
    [message] = service.wait()
    assert message["title"] == "rooda: work: work: ended as interrupted"
    assert "Continue at iteration 1: rooda resume" in message["message"]


@pytest.mark.real
def test_a_run_whose_rooda_is_killed_is_told_all_the_same(
    workspace: Workspace, nursery: Nursery, service: Service
) -> None:
    tells(workspace, service.url)
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS))
    agent = nursery.pid("agent")
    running.signal(signal.SIGKILL)
    running.finish()
    [message] = service.wait()
    assert message["title"] == "rooda: work: work: ended without a result"
    assert "rooda resume " in message["message"]
    until(lambda: not alive(agent), "the warden stops the agent")


@pytest.mark.long
def test_an_agent_that_kills_its_parent_does_not_stop_the_messages(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url)
    done = workspace.work(workspace.agent("kill -9 $PPID; sleep 600"), "-n", "1")
    assert "warden is gone" in done.err
    [message] = service.wait()
    assert message["title"] == "rooda: work: work: ended as max-iters"


@pytest.mark.long
def test_runs_of_ralph_are_told_too(workspace: Workspace, service: Service) -> None:
    with ralph_work(workspace) as work:
        work.plan()
        work.agent_does(f"date > made; {COMPLETE}")
        env = {"ROODA_LOOP_NOTIFY_URLS": service.url}
        assert work.ralph("build", "1", env=env).code == 0
        [message] = service.wait()
        assert message["title"].endswith(": ralph build: ended as success, 0 of 2 tasks")


@pytest.mark.real
def test_a_program_that_takes_a_run_step_by_step_tells_its_user_itself(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url, on="[end, failure]")
    assert workspace.work(workspace.agent("exit 1"), "--pause-after", "1").code == 0
    assert not list(workspace.state.glob("runs/*/notify.log"))
    assert service.got == []


@pytest.mark.long
def test_without_addresses_the_desktop_shows_the_message(workspace: Workspace) -> None:
    folder = desktop(workspace)
    done = workspace.work(workspace.agent(SUCCESS), "--notify-on", "end,failure")
    assert done.code == 0, done.err
    words = wait_for(folder / "arguments").splitlines()
    assert "rooda: work: work: ended as success" in words
    assert "\a" not in done.err  # standard error is no terminal


@pytest.mark.real
def test_a_program_for_the_desktop_in_the_work_tree_is_not_run(workspace: Workspace) -> None:
    folder = desktop(workspace)
    trap = workspace.write("bin/notify-send", "#!/bin/sh\ntouch trapped\n")
    trap.chmod(0o755)
    workspace.env["PATH"] = f"{trap.parent}:{workspace.env['PATH']}"
    workspace.work(workspace.agent(SUCCESS), "--notify-on", "end")
    wait_for(folder / "arguments")
    assert not (workspace.path / "trapped").exists()


@pytest.mark.long
def test_on_a_terminal_the_bell_rings(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    assert nursery.folder == workspace.path
    env = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "DBUS_SESSION_BUS_ADDRESS": ""}
    workspace.env |= env
    screen.start(workspace, "work", "--ai-cmd", workspace.agent(SUCCESS), "--notify-on", "end")
    assert screen.finish() == 0
    assert screen.sent.count(b"\a") == 1


def without_extra(workspace: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA, *words],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.real
def test_without_the_extra_a_run_warns_at_its_start_and_the_desktop_shows_the_message(
    workspace: Workspace, service: Service
) -> None:
    workspace.config(PROCEDURE)
    tells(workspace, service.url)
    folder = desktop(workspace)
    done = without_extra(workspace, "work", "--ai-cmd", workspace.agent(SUCCESS))
    assert done.returncode == 0, done.stderr
    assert "Install it: pip install 'rooda[notify]'" in done.stderr
    assert "ended as success" in wait_for(folder / "arguments")
    assert service.got == []
    assert SECRET not in done.stderr


@pytest.mark.long
def test_without_the_extra_the_command_and_doctor_name_what_installs_it(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url)
    refused = without_extra(workspace, "notify", "--test")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Install them: pip install 'rooda[notify]'" in refused.stderr
    assert "pip install 'rooda[notify]'" in without_extra(workspace, "doctor").stdout


# -- rooda notify --------------------------------------------------------------------------


@pytest.mark.long
def test_the_test_says_for_each_service_whether_the_message_was_delivered(
    workspace: Workspace, service: Service
) -> None:
    tells(workspace, service.url)
    done = workspace.rooda("notify", "--test")
    assert (done.code, done.out, done.err) == (0, f"{service.shown}: delivered\n", "")
    assert service.wait()[0]["title"] == "rooda: test"
    with Service(403) as refusing:
        tells(workspace, service.url, refusing.url)
        done = workspace.rooda("notify", "--test")
        assert done.code == 1
        first, second = done.out.splitlines()
        assert first == f"{service.shown}: delivered"
        assert second.startswith(f"{refusing.shown}: failed: ")
        assert "403" in second
        assert SECRET not in done.out + done.err


@pytest.mark.long
def test_an_address_that_can_not_be_used_is_refused_by_every_check(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    tells(workspace, f"discrod://{SECRET}/x")
    agent = workspace.agent("exit 0")
    refused = [
        workspace.rooda("notify", "--test"),
        workspace.rooda("config", "check"),
        workspace.rooda("work", "--ai-cmd", agent, "--dry-run"),
        workspace.rooda("doctor"),
    ]
    for done in refused:
        assert done.code == 1
        assert "address 1 (discrod://...) can't be used" in done.out + done.err
        assert SECRET not in done.out + done.err


def test_without_any_setting_the_command_says_what_to_set(workspace: Workspace) -> None:
    done = workspace.rooda("notify", "--test")
    assert (done.code, done.out) == (1, "")
    assert "no notifications are configured" in done.err
    assert "ROODA_LOOP_NOTIFY_URLS" in done.err


def test_without_a_desktop_and_a_terminal_nothing_can_be_shown(workspace: Workspace) -> None:
    workspace.global_config("loop: {notify: {on: [end]}}\n")
    workspace.env |= {"DISPLAY": "", "WAYLAND_DISPLAY": "", "DBUS_SESSION_BUS_ADDRESS": ""}
    done = workspace.rooda("notify", "--test")
    assert (done.code, done.out) == (1, "")
    assert "no desktop" in done.err


@pytest.mark.long
def test_the_test_shows_a_message_on_the_desktop(workspace: Workspace) -> None:
    folder = desktop(workspace)
    workspace.global_config("loop: {notify: {on: [end]}}\n")
    done = workspace.rooda("notify", "--test")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(": delivered\n")
    assert "rooda: test" in (folder / "arguments").read_text().splitlines()
    desktop(workspace, "#!/bin/sh\necho 'no bus' >&2; exit 1\n")
    done = workspace.rooda("notify", "--test")
    assert done.code == 1
    assert done.out.endswith(": failed: no bus\n")


def test_settings_of_a_procedure_decide_for_its_runs(workspace: Workspace) -> None:
    desktop(workspace)
    workspace.config(f"{PROCEDURE}    notify: {{on: [blocked]}}\n")
    assert workspace.rooda("notify").code == 1
    assert workspace.rooda("notify", "work").out.startswith("Messages about: blocked\n")
