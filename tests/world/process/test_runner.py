"""Runner.run: one program from start to exit, with real children that misbehave."""

import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.world.process import events as happened
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.exits import Exited, Interrupted, NotStarted, Signalled, TimedOut
from rooda.world.process.interrupts import SIGNALS, Interrupts, Stopwatch
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from rooda.world.process.runner import Runner
from support.children import Nursery, until
from support.jobs import is_stopped
from support.workspace import alive

pytestmark = pytest.mark.real

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 60; done"
# This program has no child, which could miss the SIGTERM between its fork and its exec.
OBEDIENT = """
import os, signal, sys, time
def bye(*_):
    os.write(1, b"bye\\n")
    sys.exit(5)
signal.signal(signal.SIGTERM, bye)
os.write(1, b"ready\\n")
while True:
    time.sleep(0.01)  # Python's `signal.pause` misses a signal just before it
"""
DEAF = OBEDIENT.replace("    sys.exit(5)\n", "")
MEGABYTES = 3_000_000
HOUR = 3600


@dataclass
class Stage:
    """A folder to run programs in, and the events that the runner emitted."""

    folder: Path
    interrupts: Interrupts
    runner: Runner
    events: list[Event] = field(default_factory=list)

    def sh(self, body: str, listener: Listener | None = None, **bounds: Any) -> ProcessResult:
        return self.run(("sh", "-c", body), listener, **bounds)

    def python(self, body: str, listener: Listener | None = None, **bounds: Any) -> ProcessResult:
        return self.run((sys.executable, "-S", "-c", body), listener, **bounds)

    def run(
        self,
        argv: tuple[str, ...],
        listener: Listener | None = None,
        *,
        prompt: bytes = b"the prompt\n",
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float | None = None,
        **bounds: Any,
    ) -> ProcessResult:
        def listen(event: Event) -> None:
            self.events.append(event)
            if listener is not None:
                listener(event)

        file = self.folder / "prompt"
        file.write_bytes(prompt)
        with file.open("rb") as stdin:
            request = ProcessRequest(
                argv, cwd or self.folder, environ or os.environ, stdin, 10_000_000
            )
            if timeout is not None:
                bounds["clocks"] = (Clock("iteration_timeout", timeout, Since.START),)
            request = replace(request, **bounds)
            return self.runner.run(request, self.interrupts, listen)

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    @property
    def pid(self) -> int:
        return next(
            event.pid for event in self.events if isinstance(event, happened.ProcessStarted)
        )

    @property
    def event_names(self) -> list[str]:
        """The names of the events, without output and ticks."""
        ignored = (happened.Output, happened.Tick)
        return [type(event).__name__ for event in self.events if not isinstance(event, ignored)]


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    """Interrupts that handle the signals of this process during the test."""
    numbers = (*SIGNALS, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in numbers}
    wakeup = signal.set_wakeup_fd(-1)
    own = Interrupts()
    own.install()
    try:
        with own.deferred():
            yield own
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        own.close()


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    found = Nursery(tmp_path)
    yield found
    found.clear()


@pytest.fixture
def stage(tmp_path: Path, interrupts: Interrupts, nursery: Nursery) -> Iterator[Stage]:
    assert nursery.folder == tmp_path
    with Runner("test-" + tmp_path.name) as runner:
        found = Stage(tmp_path, interrupts, runner)
        yield found
    for event in found.events:
        if isinstance(event, happened.ProcessStarted):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(event.pid, signal.SIGKILL)


def signal_self(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def on_output(word: bytes, number: signal.Signals) -> Listener:
    """Send a signal to this process as soon as the program has printed the word."""

    def listen(event: Event) -> None:
        if isinstance(event, happened.Output) and word in event.data:
            signal_self(number)

    return listen


def hour_passes(stage: Stage, word: bytes = b"ready") -> Listener:
    """Let an hour of rooda's time pass as soon as the program has printed the word."""
    hours = 0

    def listen(event: Event) -> None:
        nonlocal hours
        if isinstance(event, happened.Output) and word in event.data:
            hours = 1

    stage.interrupts.stopwatch = Stopwatch(lambda: time.monotonic() + hours * HOUR)
    return listen


# -- exit codes and signals ----------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 7, 127, 128, 130, 255])
def test_exit_code_is_reported(stage: Stage, code: int) -> None:
    assert stage.sh(f"exit {code}").exit == Exited(code)
    assert stage.event_names == ["ProcessStarted"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGHUP", "SIGABRT"])
def test_signal_that_ended_the_program_is_reported_by_name(stage: Stage, name: str) -> None:
    end = stage.sh(f"ulimit -c 0; echo partial; kill -{name[3:]} $$; sleep 60")
    assert isinstance(end.exit, Signalled)
    assert end.exit.name == name
    assert end.exit.code == 128 + signal.Signals[name]
    assert end.stdout.tail == b"partial\n"


def test_signal_without_a_name_is_reported_by_number(stage: Stage) -> None:
    number = signal.SIGRTMIN + 6
    end = stage.python(f"import os; os.kill(os.getpid(), {number})").exit
    assert isinstance(end, Signalled)
    assert end.name == f"signal {number}"


def _missing(folder: Path) -> tuple[str, ...]:
    return (str(folder / "missing"),)


def _not_executable(folder: Path) -> tuple[str, ...]:
    file = folder / "plain"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o644)
    return (str(file),)


def _no_hashbang(folder: Path) -> tuple[str, ...]:
    file = folder / "script"
    file.write_text("echo hello\n")
    file.chmod(0o755)
    return (str(file),)


def _no_interpreter(folder: Path) -> tuple[str, ...]:
    file = folder / "lost"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)
    return (str(file),)


def _a_folder(folder: Path) -> tuple[str, ...]:
    return (str(folder),)


def _null_byte(folder: Path) -> tuple[str, ...]:
    return ("sh", "-c", f"cd {folder}\0")


def _too_long(folder: Path) -> tuple[str, ...]:
    return ("sh", "-c", f"cd {folder}; true", "x" * 40_000_000)


@pytest.mark.parametrize(
    "command,words",
    [
        (_missing, "missing: No such file or directory"),
        (_not_executable, "plain: Permission denied"),
        (_no_hashbang, "script: Exec format error"),
        (_no_interpreter, "lost: No such file or directory"),
        (_a_folder, "Permission denied"),
        (_null_byte, "sh: embedded null byte"),
        (_too_long, "sh: Argument list too long"),
    ],
)
def test_failed_start_is_reported_with_its_reason(
    stage: Stage, command: Callable[[Path], tuple[str, ...]], words: str
) -> None:
    result = stage.run(command(stage.folder))
    assert isinstance(result.exit, NotStarted)
    assert words in result.exit.reason
    assert (result.stdout.total, result.stderr.total) == (0, 0)
    assert stage.events == []


def test_missing_working_folder_is_named(stage: Stage) -> None:
    folder = stage.folder / "gone"
    end = stage.run(("sh", "-c", "exit 0"), cwd=folder).exit
    assert end == NotStarted(f"{folder}: No such file or directory")


def test_invalid_environment_variable_name_is_a_failed_start(stage: Stage) -> None:
    end = stage.run(("sh", "-c", "exit 0"), environ={"A=B": "x", "PATH": os.environ["PATH"]}).exit
    assert isinstance(end, NotStarted)


# -- input, environment and session --------------------------------------------------------


@pytest.mark.parametrize(
    "body,stdout",
    [
        ("cat", b"p" * 5_000_000),
        ("head -c 1000000 /dev/zero | tr '\\0' x; wc -c | tr -d ' '", b"x" * 10**6 + b"5000000\n"),
        ("echo unread", b"unread\n"),
        ("cat > /dev/null; echo end", b"end\n"),
        ("exec < /dev/null; echo closed", b"closed\n"),
        ("head -c 3", b"ppp"),
    ],
    ids=["reads at once", "reads last", "never reads", "discards", "closes", "reads 3 bytes"],
)
def test_program_may_read_all_or_some_or_none_of_a_large_prompt(
    stage: Stage, body: str, stdout: bytes
) -> None:
    result = stage.sh(body, prompt=b"p" * 5_000_000)
    assert result.exit == Exited(0)
    assert result.stdout.tail == stdout


def test_program_gets_the_given_environment_and_folder(stage: Stage) -> None:
    folder = stage.folder / "a folder"
    folder.mkdir()
    environ = {"PATH": os.environ["PATH"], "GREETING": "grüße\n"}
    result = stage.run(("sh", "-c", 'pwd; printf %s "$GREETING$HOME"'), cwd=folder, environ=environ)
    assert result.stdout.tail == f"{folder}\ngrüße\n".encode()


def test_program_gets_its_own_session_without_a_terminal(stage: Stage) -> None:
    body = "import os; print(os.getpid(), os.getsid(0), os.getpgid(0)); open('/dev/tty')"
    result = stage.python(body)
    assert result.stdout.tail.split() == [str(stage.pid).encode()] * 3
    assert b"/dev/tty" in result.stderr.tail


def test_program_inherits_no_ignored_or_blocked_signals_and_no_descriptors(stage: Stage) -> None:
    body = (
        "import os, signal as s; print(s.getsignal(s.SIGPIPE) == s.SIG_IGN, "
        "sum(s.getsignal(n) == s.SIG_DFL for n in (s.SIGTERM, s.SIGHUP, s.SIGCHLD)), "
        "s.pthread_sigmask(s.SIG_BLOCK, []), "
        "[n for n in range(3, 200) if not os.system(f'true <&{n} 2>/dev/null')])"
    )
    assert stage.python(body).stdout.tail == b"True 3 set() []\n"  # Python ignores SIGPIPE itself


# -- output --------------------------------------------------------------------------------


def test_megabytes_on_both_streams_at_once_are_read(stage: Stage) -> None:
    flood = f"head -c {MEGABYTES} /dev/zero"
    result = stage.sh(f"{flood} & {flood} >&2; wait; printf out; printf err >&2")
    assert result.exit == Exited(0)
    assert (result.stdout.total, result.stderr.total) == (MEGABYTES + 3, MEGABYTES + 3)
    assert result.stdout.tail.endswith(b"\0out")
    assert result.stderr.tail.endswith(b"\0err")


def test_events_and_result_have_every_byte_of_a_stream_in_order(stage: Stage) -> None:
    result = stage.sh("for n in 1 2 3 4 5 6 7 8 9; do echo $n; echo e$n >&2; done")
    for stream, captured in (("stdout", result.stdout), ("stderr", result.stderr)):
        received = [e.data for e in stage.events if isinstance(e, happened.Output)
                 and e.stream == stream]  # fmt: skip
        assert b"".join(received) == captured.tail
    assert result.stdout.tail.split() == [str(n).encode() for n in range(1, 10)]
    assert result.stderr.tail.split() == [f"e{n}".encode() for n in range(1, 10)]


def test_result_keeps_first_and_last_bytes_and_the_total(stage: Stage) -> None:
    result = stage.sh("seq 1 100000; echo short >&2", output_limit=1024)
    whole = b"".join(b"%d\n" % n for n in range(1, 100_001))
    assert result.stdout.tail == whole[-1024:]
    assert result.stdout.head == whole[:4096]
    assert result.stdout.total == len(whole)
    assert result.stdout.truncated
    assert result.stderr.tail == b"short\n"
    assert not result.stderr.truncated


def test_flood_without_newline_is_cut_to_the_limit(stage: Stage) -> None:
    result = stage.sh("head -c 30000000 /dev/zero; printf end", output_limit=2048)
    assert result.stdout.total == 30_000_003
    assert result.stdout.tail == b"\0" * 2045 + b"end"


def test_output_just_before_the_exit_is_complete(stage: Stage) -> None:
    for _ in range(20):
        result = stage.sh("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2; kill -KILL $$")
        assert (result.stdout.total, result.stderr.total) == (60_000, 60_000)


def test_waiting_for_a_program_that_closed_its_streams_uses_no_cpu(stage: Stage) -> None:
    used: list[float] = []
    go = stage.folder / "go"

    def listen(event: Event) -> None:
        if isinstance(event, happened.Tick) and (stage.folder / "closed").exists():
            used.append(time.process_time())
            if len(used) == 10:
                go.touch()

    body = "exec >&- 2>&-; echo > closed; while ! test -e go; do sleep 0.02; done; exit 3"
    result = stage.sh(body, listen, tick=0.05)
    assert result.exit == Exited(3)
    assert used[9] - used[0] < 0.3  # CPU seconds during half a second: the runner does not spin


def test_no_ticks_without_a_tick_interval(stage: Stage) -> None:
    stage.sh("sleep 0.2")
    assert stage.count(happened.Tick) == 0


# -- timeout -------------------------------------------------------------------------------


def test_timeout_sends_sigterm_first(stage: Stage) -> None:
    result = stage.python(OBEDIENT, hour_passes(stage), timeout=HOUR, kill_grace=30)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", HOUR)
    assert stage.event_names == ["ProcessStarted", "ClockExpired"]
    assert result.stdout.tail == b"ready\nbye\n"
    assert result.duration >= HOUR
    assert not alive(stage.pid)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("stream", [1, 2])
def test_timeout_expires_during_a_flood_of_output(stage: Stage, stream: int) -> None:
    body = f"trap '' TERM; yes >&{stream}"
    result = stage.sh(body, timeout=0.3, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 0.3)
    assert result.duration < 10


def test_timeout_kills_program_that_ignores_sigterm_after_the_grace(stage: Stage) -> None:
    result = stage.sh(STUBBORN, hour_passes(stage), timeout=HOUR, kill_grace=0.5)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", HOUR)
    assert stage.event_names == ["ProcessStarted", "ClockExpired", "ProcessKilled"]
    assert HOUR + 0.5 <= result.duration < HOUR + 20
    assert not result.survivors
    assert not alive(stage.pid)


def test_timeout_without_grace_kills_at_once(stage: Stage) -> None:
    result = stage.sh(STUBBORN, timeout=0.2, kill_grace=0)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 0.2)
    assert result.duration < 10


def test_timeout_kills_grandchild_that_ignores_sigterm(stage: Stage, nursery: Nursery) -> None:
    stubborn = STUBBORN.replace("'", '"').replace("echo", "echo $$ > stubborn.pid; echo")
    body = f"sh -c '{stubborn}' & wait"
    result = stage.sh(body, hour_passes(stage), timeout=HOUR, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert stage.event_names == ["ProcessStarted", "ClockExpired", "ProcessKilled"]
    assert not alive(nursery.pid("stubborn"))


def test_timeout_wakes_a_stopped_program_so_that_it_gets_sigterm(stage: Stage) -> None:
    def stop_seen(event: Event) -> None:
        if isinstance(event, happened.Output) and b"ready" in event.data:
            until(lambda: is_stopped(stage.pid), "the program stops itself")
        expire(event)

    expire = hour_passes(stage)
    body = OBEDIENT.replace("while True", "os.kill(os.getpid(), signal.SIGSTOP)\nwhile True")
    result = stage.python(body, stop_seen, timeout=HOUR, kill_grace=30)
    assert isinstance(result.exit, TimedOut)
    assert result.stdout.tail == b"ready\nbye\n"
    assert stage.count(happened.ProcessKilled) == 0


def test_timeout_kills_a_stopped_program_that_ignores_sigterm(stage: Stage) -> None:
    result = stage.sh("trap '' TERM; while :; do kill -STOP $$; done", timeout=0.3, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert not alive(stage.pid)


def test_program_that_exited_in_time_has_not_timed_out(stage: Stage) -> None:
    """A slow listener or Ctrl+Z may delay rooda; the program's own exit time counts."""

    def block(event: Event) -> None:
        if isinstance(event, happened.Output):
            (stage.folder / "go").touch()
            until(lambda: not alive(stage.pid), "the program exits")
        expire(event)

    expire = hour_passes(stage, b"done")
    body = "echo done; while ! test -e go; do sleep 0.01; done"
    result = stage.sh(body, block, timeout=HOUR)
    assert result.exit == Exited(0)


# -- background processes ------------------------------------------------------------------


def test_background_process_is_stopped_after_a_clean_exit(stage: Stage, nursery: Nursery) -> None:
    result = stage.sh("sleep 60 & echo $! > left.pid; echo done")
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"done\n"
    assert stage.event_names == ["ProcessStarted", "LeftoversStopped"]
    assert not alive(nursery.pid("left"))


def test_background_process_that_ignores_sigterm_is_killed_after_the_exit(
    stage: Stage, nursery: Nursery
) -> None:
    stubborn = STUBBORN.replace("echo ready", "echo > up")
    wait = "while ! test -e up; do sleep 0.01; done"
    body = f"({stubborn}) > /dev/null 2>&1 & echo $! > left.pid; {wait}; exit 3"
    result = stage.sh(body, kill_grace=0.3)
    assert result.exit == Exited(3)
    assert stage.event_names == ["ProcessStarted", "ProcessKilled", "LeftoversStopped"]
    assert not alive(nursery.pid("left"))


def test_background_process_is_stopped_after_a_crash(stage: Stage, nursery: Nursery) -> None:
    result = stage.sh("sleep 60 & echo $! > left.pid; kill -KILL $$")
    assert result.exit == Signalled(signal.SIGKILL)
    assert stage.count(happened.LeftoversStopped) == 1
    assert not alive(nursery.pid("left"))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("doing", ["time.sleep(60)", "[os.write(1, b'x' * 9999) for _ in I]"])
def test_runner_does_not_wait_for_a_process_of_another_session_that_holds_the_pipes(
    stage: Stage, nursery: Nursery, doing: str
) -> None:
    body = f"""
import itertools, os, time
I = itertools.repeat(0)
print("the last word", flush=True)
if os.fork() == 0:
    os.setsid()
    with open("held.pid", "w") as file:
        file.write(str(os.getpid()))
    {doing}
while not os.path.exists("held.pid"):
    time.sleep(0.01)
"""
    result = stage.python(body)
    assert result.exit == Exited(0)
    assert result.stdout.head.startswith(b"the last word\n")
    assert result.duration < 10
    assert nursery.pid("held")


def test_output_filter_may_finish_after_the_leader_exited(stage: Stage) -> None:
    """Wrapper scripts use `exec > >(tee log)`: the filter prints after the leader's exit."""
    start = "mkfifo way; (sleep 0.1; exec cat) < way & exec > way"
    result = stage.sh(f"{start}; echo the last words")
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"the last words\n"
    assert stage.event_names == ["ProcessStarted"]


def test_no_zombie_is_left(stage: Stage) -> None:
    stage.sh("sleep 60 & exit 0")
    stage.sh(STUBBORN, timeout=0.1, kill_grace=0)
    started = [event.pid for event in stage.events if isinstance(event, happened.ProcessStarted)]
    assert len(started) == 2
    for pid in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_fifty_runs_leave_no_descriptor_open(stage: Stage) -> None:
    def descriptors() -> int:
        gc.collect()
        return len(list(Path("/dev/fd").iterdir()))

    stage.sh("echo warm")
    before = descriptors()
    for _ in range(24):
        stage.sh("echo x; echo y >&2")
    for _ in range(25):
        stage.run(_missing(stage.folder))
    stage.sh(STUBBORN, timeout=0.1, kill_grace=0)
    assert descriptors() == before


def test_failing_listener_during_output_leaves_no_process(stage: Stage) -> None:

    def listen(event: Event) -> None:
        if event == happened.Output("stdout", b"hello\n"):
            raise RuntimeError("a view is broken")

    with pytest.raises(RuntimeError, match="a view is broken"):
        stage.sh("echo hello; exec sleep 60", listen)
    assert not alive(stage.pid)


# -- signals to rooda ----------------------------------------------------------------------


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_to_rooda_stops_the_program(stage: Stage, number: signal.Signals) -> None:
    result = stage.python(OBEDIENT, on_output(b"ready", number), kill_grace=30)
    assert result.exit == Interrupted(number)
    assert result.stdout.tail == b"ready\nbye\n"
    assert stage.event_names == [
        "ProcessStarted",
        "InterruptSeen",
        "ProcessStopping",
        "ProcessStopped",
    ]
    assert happened.InterruptSeen(number.name) in stage.events
    assert not alive(stage.pid)


def test_signal_to_rooda_kills_a_program_that_ignores_sigterm(stage: Stage) -> None:
    result = stage.sh(STUBBORN, on_output(b"ready", signal.SIGINT), kill_grace=0.3)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.event_names == [
        "ProcessStarted",
        "InterruptSeen",
        "ProcessStopping",
        "ProcessKilled",
        "ProcessStopped",
    ]


def test_second_signal_kills_at_once(stage: Stage) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, happened.Output) and len(stage.interrupts.received) < 2:
            signal_self(signal.SIGINT)  # first at "ready", then at "bye"

    result = stage.python(DEAF, listen, kill_grace=60)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.event_names == [
        "ProcessStarted",
        "InterruptSeen",
        "ProcessStopping",
        "InterruptSeen",
        "ProcessKilled",
        "ProcessStopped",
    ]
    assert result.duration < 10
    assert not alive(stage.pid)


def test_signal_before_the_start_stops_the_program(stage: Stage) -> None:
    signal_self(signal.SIGTERM)
    result = stage.sh("exec sleep 60")
    assert result.exit == Interrupted(signal.SIGTERM)
    assert result.duration < 10


def test_signal_during_a_timeout_makes_the_exit_interrupted(stage: Stage) -> None:
    def listen(event: Event) -> None:
        expire(event)
        interrupt(event)

    expire, interrupt = hour_passes(stage), on_output(b"bye", signal.SIGINT)
    result = stage.python(DEAF, listen, timeout=HOUR, kill_grace=2)
    assert result.exit == Interrupted(signal.SIGINT)


def test_signal_during_cleanup_keeps_a_clean_exit(stage: Stage, nursery: Nursery) -> None:
    # The child writes "ready" and only then its parent exits: the child is a leftover.
    body = DEAF.replace("while True", "open('ready', 'w')\nwhile True")
    start = f'{sys.executable} -S -c "$BODY" & echo $! > left.pid; '
    end = "while ! test -e ready; do sleep 0.01; done"
    result = stage.sh(
        start + end,
        on_output(b"bye", signal.SIGINT),
        kill_grace=0.3,
        environ={**os.environ, "BODY": body},
    )
    assert result.exit == Exited(0)
    assert not alive(nursery.pid("left"))


# -- edge cases ----------------------------------------------------------------------------


def test_listener_that_always_fails_leaves_no_process(stage: Stage) -> None:
    def fail(_: Event) -> None:
        raise LookupError("a view broke")

    with pytest.raises(LookupError, match="a view broke"):
        stage.sh("sleep 60", fail)
    assert not alive(stage.pid)


def test_signal_during_the_cleanup_of_a_timeout_wins_and_is_reported_once(stage: Stage) -> None:
    def listen(event: Event) -> None:
        expire(event)
        interrupt(event)

    expire, interrupt = hour_passes(stage), on_output(b"leader gone", signal.SIGINT)
    leader = f"trap 'echo leader gone; exit 0' TERM; ({STUBBORN}) &"
    result = stage.sh(f"{leader} while :; do sleep 0.05; done", listen, timeout=HOUR, kill_grace=2)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.count(happened.InterruptSeen) == 1


def test_program_that_has_exited_is_not_reported_as_interrupted(stage: Stage) -> None:
    def block(event: Event) -> None:
        """Block as a slow terminal does, until the program has exited."""
        if isinstance(event, happened.Output) and b"SUCCESS" in event.data:
            # The program is a child of the warden, so this process can't wait for it.
            until(lambda: not alive(stage.pid), "the program exits")
            signal_self(signal.SIGINT)

    assert stage.sh("echo SUCCESS", block).exit == Exited(0)
    assert stage.event_names == ["ProcessStarted"]


def test_acknowledged_signals_do_not_stop_a_later_program(stage: Stage) -> None:
    signal_self(signal.SIGINT)
    assert isinstance(stage.sh("sleep 60").exit, Interrupted)
    stage.interrupts.acknowledge()
    assert stage.sh("exit 3").exit == Exited(3)


def test_exit_is_seen_without_signal_handlers(tmp_path: Path) -> None:
    with Runner() as runner:
        stage = Stage(tmp_path, Interrupts(), runner)
        assert stage.sh("exec >&- 2>&-; sleep 0.2; exit 4").exit == Exited(4)
