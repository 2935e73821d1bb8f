"""`rooda web` as a user starts it."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.workspace import ROODA, Workspace


@contextmanager
def started(workspace: Workspace, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(ROODA), "web", *words],
        cwd=workspace.path,
        env=workspace.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_page_is_there_until_a_signal_and_names_the_tunnel(
    workspace: Workspace, number: signal.Signals
) -> None:
    with started(workspace) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Open (http://127\.0\.0\.1:(\d+)/)#([\w-]{43})\n", line)
        assert found, line
        address, _, token = found.groups()
        assert process.stderr.readline().startswith("From another machine: ssh -L ")
        assert token not in _arguments_of(process.pid)
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{address}api/live/runs", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as stream:
            assert b"No run is at work" in stream.readline()
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(20) == 0
            assert time.monotonic() - began < 4  # 2 s, on a machine with nothing else to do
        assert token not in process.stderr.read()


def _arguments_of(pid: int) -> str:
    done = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_port_in_use_gets_one_message_if_the_user_chose_it(workspace: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = workspace.rooda("web", "--port", str(port))
    assert done.code == 1
    assert f"port {port} is in use by another program" in done.err
    assert "--port" in done.err
    assert "Traceback" not in done.err


@pytest.mark.real
def test_missing_extra_is_named_with_the_command_that_installs_it(workspace: Workspace) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name: None if name == 'uvicorn' else find(name)\n"
        "from rooda.front.cli.main import main; sys.argv = ['rooda', 'web']; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "pip install 'rooda[web]'" in done.stderr
