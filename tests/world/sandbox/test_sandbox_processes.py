"""Processes in the sandbox end as without it: signals, time limits, leftovers, output."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import LeftoversStopped, ProcessLost
from rooda.world.process.exits import Exited, Lost, NotStarted, TimedOut
from rooda.world.process.warden.client import WardenClient
from rooda.world.sandbox.sandbox import Sandbox
from support.sandboxes import Inside, require_bwrap, until_gone
from support.workspace import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    require_bwrap()
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    return Inside(tmp_path / "work", tmp_path / "home", environ)


@pytest.fixture
def sandbox(inside: Inside) -> Iterator[Sandbox]:
    with inside.sandbox() as found:
        yield found


def sh(script: str) -> tuple[str, ...]:
    return ("bash", "-c", script)


def within(seconds: float) -> tuple[Clock, ...]:
    return (Clock("timeout", seconds, Since.START, seconds),)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "script,code", [("exit 0", 0), ("exit 1", 1), ("exit 127", 127), ("kill -SEGV $$", 139)]
)
def test_exit_code_is_that_of_the_program(
    inside: Inside, sandbox: Sandbox, script: str, code: int
) -> None:
    assert inside.run(sh(script), sandbox).exit == Exited(code)


@pytest.mark.real
def test_program_that_is_not_in_the_sandbox_has_not_started(
    inside: Inside, sandbox: Sandbox
) -> None:
    end = inside.run(("no-such-program",), sandbox).exit
    assert isinstance(end, NotStarted)
    assert end.reason.startswith("no-such-program is not in the sandbox")


@pytest.mark.real
def test_sandbox_that_cannot_be_set_up_is_told_apart_from_a_program_that_fails(
    inside: Inside, sandbox: Sandbox
) -> None:
    jail = ("bwrap", "--ro-bind", "/nowhere", "/x", "--")
    end = inside.run(sh("exit 1"), sandbox, jail=jail).exit
    assert isinstance(end, NotStarted)
    assert end.reason.startswith("the sandbox could not be set up: Can't find source path /nowhere")
    assert not end.is_about_files


@pytest.mark.real
def test_timeout_sends_sigterm_to_the_program_itself_and_gives_it_the_grace(
    inside: Inside, sandbox: Sandbox
) -> None:
    script = "trap 'sleep 0.3; echo cleaned > marker; exit 9' TERM; echo up; sleep 60 & wait"
    result = inside.run(sh(script), sandbox, clocks=within(1), kill_grace=10)
    assert isinstance(result.exit, TimedOut)
    assert result.exit.code == 9
    assert (inside.tree / "marker").read_text() == "cleaned\n"
    assert [one.name for one in result.cleaned_up] == ["sleep 60"]


@pytest.mark.real
def test_program_that_ignores_sigterm_is_killed_with_all_that_it_started(
    inside: Inside, sandbox: Sandbox
) -> None:
    mark = f"61.{os.getpid()}"
    script = f"trap '' TERM; setsid sleep {mark} & nohup sleep {mark} & while :; do sleep 1; done"
    result = inside.run(sh(script), sandbox, clocks=within(1), kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert all("sleep" in one.name for one in result.cleaned_up)
    until_gone(f"sleep {mark}")


@pytest.mark.real
def test_leftovers_are_stopped_and_named_and_the_sandbox_itself_is_not(
    inside: Inside, sandbox: Sandbox
) -> None:
    result = inside.run(sh("sleep 62 > /dev/null 2>&1 & setsid sleep 63 & echo done"), sandbox)
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"done\n"
    assert sorted(one.name for one in result.cleaned_up) == ["sleep 62", "sleep 63"]
    assert any(isinstance(one, LeftoversStopped) for one in inside.events)


@pytest.mark.real
def test_filter_in_the_background_can_print_the_end_of_the_output(
    inside: Inside, sandbox: Sandbox
) -> None:
    script = "exec > >(sleep 0.2; cat); echo late; exit 4"
    result = inside.run(sh(script), sandbox)
    assert (result.exit, result.stdout.tail) == (Exited(4), b"late\n")
    assert result.cleaned_up == ()


@pytest.mark.real
def test_signal_to_its_whole_group_does_not_end_the_sandbox(
    inside: Inside, sandbox: Sandbox
) -> None:
    result = inside.run(sh("trap 'echo got' TERM; kill 0; echo after"), sandbox)
    assert (result.exit, result.stdout.tail) == (Exited(0), b"got\nafter\n")


@pytest.mark.real
def test_killed_warden_takes_the_sandbox_with_it(inside: Inside, sandbox: Sandbox) -> None:
    mark = f"64.{os.getpid()}"
    inside.runner.name = f"killed-{mark}"

    def kill() -> None:
        wait_for(inside.tree / "up")
        warden = inside.runner._warden  # noqa: SLF001 - nothing else knows its pid
        assert warden is not None
        os.kill(warden.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    result = inside.run(sh(f"setsid sleep {mark} & echo up > up; sleep {mark}"), sandbox)
    thread.join()
    assert isinstance(result.exit, Lost)
    assert any(isinstance(one, ProcessLost) for one in inside.events)
    until_gone(f"sleep {mark}")


@pytest.mark.real
def test_pause_halts_everything_inside_until_it_resumes(inside: Inside, sandbox: Sandbox) -> None:
    script = "while :; do echo x >> ticks; sleep 0.02; done"
    wrapped = sandbox.wrap(sh(script), inside.tree, inside.environ)
    warden = WardenClient("adopt", os.environ)
    ticks = inside.tree / "ticks"
    try:
        with Path(os.devnull).open("r+b") as null:
            files = (null.fileno(),) * 3
            argv, environ = wrapped.program, wrapped.environ
            warden.start(argv, inside.tree, environ, files, (), "", jail=wrapped.jail)
        wait_for(ticks)
        warden.pause()
        size = ticks.stat().st_size
        time.sleep(0.3)  # time in which the program would write
        assert ticks.stat().st_size == size
        warden.resume()
        wait_for_growth(ticks, size)
    finally:
        warden.close()
    until_gone("echo x >> ticks")


def wait_for_growth(path: Path, size: int) -> None:
    end = time.monotonic() + 20
    while path.stat().st_size <= size:
        assert time.monotonic() < end, "it does not go on"
        time.sleep(0.01)


@pytest.mark.real
def test_program_inherits_no_descriptor(inside: Inside, sandbox: Sandbox) -> None:
    with (inside.tree / "open").open("w") as other:
        os.set_inheritable(other.fileno(), True)  # noqa: FBT003 - the signature of os
        result = inside.run(("ls", "/proc/self/fd"), sandbox)
    assert result.stdout.tail.split() == [b"0", b"1", b"2", b"3"]  # 3: the folder that ls reads
