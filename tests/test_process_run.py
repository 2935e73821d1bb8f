"""One program from start to end, with real children that misbehave in every way."""

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

from rooda.process import events as happened
from rooda.process.clocks import Clock, Since
from rooda.process.exits import Exited, Interrupted, NotStarted, Signalled, TimedOut
from rooda.process.interrupts import SIGNALS, Interrupts
from rooda.process.request import Listener, ProcessRequest, ProcessResult
from rooda.process.runner import Runner
from rooda.text.event import Event
from support.children import Nursery, until
from support.workspace import alive

STUBBORN = "trap '' TERM; while :; do sleep 60; done"
# No child of its own, which could miss the request between its fork and its exec.
OBEDIENT = """
import os, signal, sys
def bye(*_):
    os.write(1, b"bye\\n")
    sys.exit(5)
signal.signal(signal.SIGTERM, bye)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""
DEAF = OBEDIENT.replace("    sys.exit(5)\n", "")
MEGABYTES = 3_000_000


@dataclass
class Stage:
    """A folder to run programs in, and everything that was heard of them."""

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

    def heard(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    @property
    def pid(self) -> int:
        return next(
            event.pid for event in self.events if isinstance(event, happened.ProcessStarted)
        )

    @property
    def told(self) -> list[str]:
        """The names of the events, but for output and the passing of time."""
        left_out = (happened.Output, happened.Tick)
        return [type(event).__name__ for event in self.events if not isinstance(event, left_out)]


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    """Interrupts that own this process's signals, until the test is over."""
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


def ourselves(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def on_output(word: bytes, number: signal.Signals) -> Listener:
    """Send ourselves a signal as soon as the program has said the word."""

    def listen(event: Event) -> None:
        if isinstance(event, happened.Output) and word in event.data:
            ourselves(number)

    return listen


# -- how it ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 7, 127, 128, 130, 255])
def test_an_exit_code_is_told_as_it_is(stage: Stage, code: int) -> None:
    assert stage.sh(f"exit {code}").exit == Exited(code)
    assert stage.told == ["ProcessStarted"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGHUP", "SIGABRT"])
def test_a_signal_is_told_by_its_name(stage: Stage, name: str) -> None:
    end = stage.sh(f"ulimit -c 0; echo partial; kill -{name[3:]} $$; sleep 60")
    assert isinstance(end.exit, Signalled)
    assert end.exit.name == name
    assert end.exit.code == 128 + signal.Signals[name]
    assert end.stdout.tail == b"partial\n"


def test_a_signal_without_a_name_has_its_number(stage: Stage) -> None:
    number = signal.SIGRTMIN + 6
    end = stage.python(f"import os; os.kill(os.getpid(), {number})").exit
    assert isinstance(end, Signalled)
    assert end.name == f"signal {number}"


def _missing(folder: Path) -> tuple[str, ...]:
    return (str(folder / "nobody"),)


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
        (_missing, "nobody: No such file or directory"),
        (_not_executable, "plain: Permission denied"),
        (_no_hashbang, "script: Exec format error"),
        (_no_interpreter, "lost: No such file or directory"),
        (_a_folder, "Permission denied"),
        (_null_byte, "sh: embedded null byte"),
        (_too_long, "sh: Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_told_with_its_reason(
    stage: Stage, command: Callable[[Path], tuple[str, ...]], words: str
) -> None:
    result = stage.run(command(stage.folder))
    assert isinstance(result.exit, NotStarted)
    assert words in result.exit.reason
    assert (result.stdout.total, result.stderr.total) == (0, 0)
    assert stage.events == []


def test_a_working_folder_that_is_gone_is_named(stage: Stage) -> None:
    folder = stage.folder / "gone"
    end = stage.run(("sh", "-c", "exit 0"), cwd=folder).exit
    assert end == NotStarted(f"{folder}: No such file or directory")


def test_a_variable_that_no_process_can_have_is_a_failed_start(stage: Stage) -> None:
    end = stage.run(("sh", "-c", "exit 0"), environ={"A=B": "x", "PATH": os.environ["PATH"]}).exit
    assert isinstance(end, NotStarted)


# -- what it is given ----------------------------------------------------------------------


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
    ids=["at once", "last", "never", "to its end", "closed", "a little"],
)
def test_five_megabytes_of_prompt_are_read_as_the_program_likes(
    stage: Stage, body: str, stdout: bytes
) -> None:
    result = stage.sh(body, prompt=b"p" * 5_000_000)
    assert result.exit == Exited(0)
    assert result.stdout.tail == stdout


def test_it_has_the_environment_and_the_folder_it_was_given(stage: Stage) -> None:
    folder = stage.folder / "a folder"
    folder.mkdir()
    environ = {"PATH": os.environ["PATH"], "GREETING": "grüße\n"}
    result = stage.run(("sh", "-c", 'pwd; printf %s "$GREETING$HOME"'), cwd=folder, environ=environ)
    assert result.stdout.tail == f"{folder}\ngrüße\n".encode()


def test_it_has_a_session_of_its_own_without_a_terminal(stage: Stage) -> None:
    body = "import os; print(os.getpid(), os.getsid(0), os.getpgid(0)); open('/dev/tty')"
    result = stage.python(body)
    assert result.stdout.tail.split() == [str(stage.pid).encode()] * 3
    assert b"/dev/tty" in result.stderr.tail


def test_it_inherits_no_signals_that_we_catch_and_no_descriptors(stage: Stage) -> None:
    body = (
        "import os, signal as s; print(s.getsignal(s.SIGPIPE) == s.SIG_IGN, "
        "sum(s.getsignal(n) == s.SIG_DFL for n in (s.SIGTERM, s.SIGHUP, s.SIGCHLD)), "
        "s.pthread_sigmask(s.SIG_BLOCK, []), "
        "[n for n in range(3, 200) if not os.system(f'true <&{n} 2>/dev/null')])"
    )
    assert stage.python(body).stdout.tail == b"True 3 set() []\n"  # Python ignores SIGPIPE itself


# -- what it prints ------------------------------------------------------------------------


def test_megabytes_on_both_streams_at_once_are_drained(stage: Stage) -> None:
    flood = f"head -c {MEGABYTES} /dev/zero"
    result = stage.sh(f"{flood} & {flood} >&2; wait; printf out; printf err >&2")
    assert result.exit == Exited(0)
    assert (result.stdout.total, result.stderr.total) == (MEGABYTES + 3, MEGABYTES + 3)
    assert result.stdout.tail.endswith(b"\0out")
    assert result.stderr.tail.endswith(b"\0err")


def test_every_byte_is_heard_and_kept_per_stream_in_order(stage: Stage) -> None:
    result = stage.sh("for n in 1 2 3 4 5 6 7 8 9; do echo $n; echo e$n >&2; done")
    for stream, captured in (("stdout", result.stdout), ("stderr", result.stderr)):
        heard = [e.data for e in stage.events if isinstance(e, happened.Output)
                 and e.stream == stream]  # fmt: skip
        assert b"".join(heard) == captured.tail
    assert result.stdout.tail.split() == [str(n).encode() for n in range(1, 10)]
    assert result.stderr.tail.split() == [f"e{n}".encode() for n in range(1, 10)]


def test_the_last_bytes_are_kept_and_the_first_and_how_many_there_were(stage: Stage) -> None:
    result = stage.sh("seq 1 100000; echo short >&2", output_limit=1024)
    whole = b"".join(b"%d\n" % n for n in range(1, 100_001))
    assert result.stdout.tail == whole[-1024:]
    assert result.stdout.head == whole[:4096]
    assert result.stdout.total == len(whole)
    assert result.stdout.truncated
    assert result.stderr.tail == b"short\n"
    assert not result.stderr.truncated


def test_a_flood_without_a_newline_is_only_a_number(stage: Stage) -> None:
    result = stage.sh("head -c 30000000 /dev/zero; printf end", output_limit=2048)
    assert result.stdout.total == 30_000_003
    assert result.stdout.tail == b"\0" * 2045 + b"end"


def test_what_was_printed_just_before_the_end_is_not_lost(stage: Stage) -> None:
    for _ in range(20):
        result = stage.sh("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2; kill -KILL $$")
        assert (result.stdout.total, result.stderr.total) == (60_000, 60_000)


def test_closed_streams_are_no_end_and_cost_nothing(stage: Stage) -> None:
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
    assert used[9] - used[0] < 0.3  # of half a second: nothing spins


def test_time_passes_only_for_who_asked(stage: Stage) -> None:
    stage.sh("sleep 0.2")
    assert stage.heard(happened.Tick) == 0


# -- running out of time -------------------------------------------------------------------


@pytest.mark.slow
def test_an_obedient_program_is_asked_to_stop(stage: Stage) -> None:
    result = stage.python(OBEDIENT, timeout=1, kill_grace=30)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 1)
    assert stage.told == ["ProcessStarted", "ClockExpired"]
    assert result.stdout.tail == b"ready\nbye\n"
    assert result.duration >= 1
    assert not alive(stage.pid)


@pytest.mark.parametrize("stream", [1, 2])
def test_the_clock_is_looked_at_under_a_flood(stage: Stage, stream: int) -> None:
    body = f"trap '' TERM; yes >&{stream}"
    result = stage.sh(body, timeout=0.3, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 0.3)
    assert result.duration < 10


@pytest.mark.slow
def test_who_ignores_the_request_is_killed_after_the_grace(stage: Stage) -> None:
    result = stage.sh(STUBBORN, timeout=0.6, kill_grace=0.5)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 0.6)
    assert stage.told == ["ProcessStarted", "ClockExpired", "ProcessKilled"]
    assert 1.1 <= result.duration < 10
    assert not result.survivors
    assert not alive(stage.pid)


def test_without_grace_it_is_killed_at_once(stage: Stage) -> None:
    result = stage.sh(STUBBORN, timeout=0.2, kill_grace=0)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 0.2)
    assert result.duration < 10


@pytest.mark.slow
def test_a_grandchild_that_ignores_the_request_is_killed_too(
    stage: Stage, nursery: Nursery
) -> None:
    body = f"sh -c 'echo $$ > stubborn.pid; {STUBBORN.replace(chr(39), chr(34))}' & wait"
    result = stage.sh(body, timeout=0.8, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert stage.told == ["ProcessStarted", "ClockExpired", "ProcessKilled"]
    assert not alive(nursery.pid("stubborn"))


@pytest.mark.slow
def test_a_stopped_program_still_hears_the_request(stage: Stage) -> None:
    body = OBEDIENT.replace("while True", "os.kill(os.getpid(), signal.SIGSTOP)\nwhile True")
    result = stage.python(body, timeout=1, kill_grace=30)
    assert isinstance(result.exit, TimedOut)
    assert result.stdout.tail == b"ready\nbye\n"
    assert stage.heard(happened.ProcessKilled) == 0


def test_a_stopped_stubborn_program_is_killed(stage: Stage) -> None:
    result = stage.sh("trap '' TERM; while :; do kill -STOP $$; done", timeout=0.3, kill_grace=0.3)
    assert isinstance(result.exit, TimedOut)
    assert not alive(stage.pid)


@pytest.mark.slow
def test_who_ended_in_time_did_not_run_out_of_it(stage: Stage) -> None:
    """A reader that holds us up, or Ctrl+Z, is no fault of the program."""

    def listen(event: Event) -> None:
        if isinstance(event, happened.Output):
            (stage.folder / "heard").touch()
            over = time.monotonic() + 1.1
            while alive(stage.pid) or time.monotonic() < over:
                time.sleep(0.01)

    body = "echo done; while ! test -e heard; do sleep 0.01; done"
    result = stage.sh(body, listen, timeout=1)
    assert result.exit == Exited(0)


# -- what it leaves behind -----------------------------------------------------------------


def test_a_background_process_of_a_clean_end_is_stopped(stage: Stage, nursery: Nursery) -> None:
    result = stage.sh("sleep 60 & echo $! > left.pid; echo done")
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"done\n"
    assert stage.told == ["ProcessStarted", "LeftoversStopped"]
    assert not alive(nursery.pid("left"))


def test_a_stubborn_background_process_of_a_clean_end_is_killed(
    stage: Stage, nursery: Nursery
) -> None:
    stubborn = STUBBORN.replace("while", "echo > up; while", 1)
    wait = "while ! test -e up; do sleep 0.01; done"
    body = f"({stubborn}) > /dev/null 2>&1 & echo $! > left.pid; {wait}; exit 3"
    result = stage.sh(body, kill_grace=0.3)
    assert result.exit == Exited(3)
    assert stage.told == ["ProcessStarted", "ProcessKilled", "LeftoversStopped"]
    assert not alive(nursery.pid("left"))


def test_a_background_process_of_a_crash_is_stopped(stage: Stage, nursery: Nursery) -> None:
    result = stage.sh("sleep 60 & echo $! > left.pid; kill -KILL $$")
    assert result.exit == Signalled(signal.SIGKILL)
    assert stage.heard(happened.LeftoversStopped) == 1
    assert not alive(nursery.pid("left"))


@pytest.mark.parametrize("doing", ["time.sleep(60)", "[os.write(1, b'x' * 9999) for _ in I]"])
def test_who_holds_the_pipes_from_another_session_is_not_waited_for(
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


def test_a_filter_may_finish_what_it_has_in_hand(stage: Stage) -> None:
    """`exec > >(tee log)`, as wrapper scripts do: the last words come after the leader's end."""
    start = "mkfifo way; (sleep 0.1; exec cat) < way & exec > way"
    result = stage.sh(f"{start}; echo the last words")
    assert result.exit == Exited(0)
    assert result.stdout.tail == b"the last words\n"
    assert stage.told == ["ProcessStarted"]


def test_no_zombie_is_left(stage: Stage) -> None:
    stage.sh("sleep 60 & exit 0")
    stage.sh(STUBBORN, timeout=0.1, kill_grace=0)
    started = [event.pid for event in stage.events if isinstance(event, happened.ProcessStarted)]
    assert len(started) == 2
    for pid in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


@pytest.mark.slow
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


def test_an_error_of_ours_leaves_nothing_behind(stage: Stage) -> None:
    """Whatever ends the iteration, a failing listener included, nothing of the tree is left."""

    def listen(event: Event) -> None:
        if event == happened.Output("stdout", b"hello\n"):
            raise RuntimeError("a view is broken")

    with pytest.raises(RuntimeError, match="a view is broken"):
        stage.sh("echo hello; exec sleep 60", listen)
    assert not alive(stage.pid)


# -- signals to ourselves ------------------------------------------------------------------


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_us_stops_it(stage: Stage, number: signal.Signals) -> None:
    result = stage.python(OBEDIENT, on_output(b"ready", number), kill_grace=30)
    assert result.exit == Interrupted(number)
    assert result.stdout.tail == b"ready\nbye\n"
    assert stage.told == ["ProcessStarted", "InterruptSeen", "ProcessStopping", "ProcessStopped"]
    assert happened.InterruptSeen(number.name) in stage.events
    assert not alive(stage.pid)


def test_a_signal_to_us_kills_who_ignores_it(stage: Stage) -> None:
    body = STUBBORN.replace("while", "echo ready; while", 1)
    result = stage.sh(body, on_output(b"ready", signal.SIGINT), kill_grace=0.3)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.told == [
        "ProcessStarted",
        "InterruptSeen",
        "ProcessStopping",
        "ProcessKilled",
        "ProcessStopped",
    ]


def test_a_second_signal_kills_at_once(stage: Stage) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, happened.Output) and len(stage.interrupts.received) < 2:
            ourselves(signal.SIGINT)  # at "ready", and again at "bye"

    result = stage.python(DEAF, listen, kill_grace=60)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.told == [
        "ProcessStarted",
        "InterruptSeen",
        "ProcessStopping",
        "InterruptSeen",
        "ProcessKilled",
        "ProcessStopped",
    ]
    assert result.duration < 10
    assert not alive(stage.pid)


def test_a_signal_that_came_before_it_started_stops_it(stage: Stage) -> None:
    ourselves(signal.SIGTERM)
    result = stage.sh("exec sleep 60")
    assert result.exit == Interrupted(signal.SIGTERM)
    assert result.duration < 10


@pytest.mark.slow
def test_a_signal_while_it_runs_out_of_time_is_the_stronger_reason(stage: Stage) -> None:
    result = stage.python(DEAF, on_output(b"bye", signal.SIGINT), timeout=1, kill_grace=0.5)
    assert result.exit == Interrupted(signal.SIGINT)


def test_a_signal_during_the_cleaning_up_does_not_undo_a_clean_end(
    stage: Stage, nursery: Nursery
) -> None:
    # Its own parent is gone when it has said that it is ready, so it is the rest of a clean end.
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


# -- the edges of ownership ------------------------------------------------------------------


def test_an_error_of_the_listener_leaves_nothing_running(stage: Stage) -> None:
    def fail(_: Event) -> None:
        raise LookupError("a view broke")

    with pytest.raises(LookupError, match="a view broke"):
        stage.sh("sleep 60", fail)
    assert not alive(stage.pid)


def test_a_wish_during_the_cleaning_up_of_a_timeout_wins_and_is_told_once(stage: Stage) -> None:
    def interrupt_once(event: Event) -> None:
        if isinstance(event, happened.Output) and not stage.interrupts.received:
            ourselves(signal.SIGINT)

    body = f"({STUBBORN}) & trap 'echo leader gone; exit 0' TERM; while :; do sleep 0.05; done"
    result = stage.sh(body, interrupt_once, timeout=0.3, kill_grace=0.5)
    assert result.exit == Interrupted(signal.SIGINT)
    assert stage.heard(happened.InterruptSeen) == 1


def test_who_has_ended_is_not_called_interrupted(stage: Stage) -> None:
    def hold_up(event: Event) -> None:
        """As a slow terminal does: when it is done, the program has long ended."""
        if isinstance(event, happened.Output) and b"SUCCESS" in event.data:
            # The program is a child of the warden's, so this process can't wait for it.
            until(lambda: not alive(stage.pid), "the end of the program")
            ourselves(signal.SIGINT)

    assert stage.sh("echo SUCCESS", hold_up).exit == Exited(0)
    assert stage.told == ["ProcessStarted"]


def test_signals_that_were_dealt_with_stop_no_later_program(stage: Stage) -> None:
    ourselves(signal.SIGINT)
    assert isinstance(stage.sh("sleep 60").exit, Interrupted)
    stage.interrupts.acknowledge()
    assert stage.sh("exit 3").exit == Exited(3)


def test_an_end_is_seen_although_nobody_took_over_the_signals(tmp_path: Path) -> None:
    with Runner() as runner:
        stage = Stage(tmp_path, Interrupts(), runner)
        assert stage.sh("exec >&- 2>&-; sleep 0.2; exit 4").exit == Exited(4)
