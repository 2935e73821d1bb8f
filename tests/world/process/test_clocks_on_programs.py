"""Clocks on real programs: what they stop, and what counts as activity."""

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rooda.base.event import Event
from rooda.loop.outcome import Outcome, Verdict, judge
from rooda.loop.stages.promises import Prompt, Words, scan
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.git.work_tree import changed_within
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import ClockExpired, MachineSlept, Output, Tick
from rooda.world.process.exits import Exited, HungAfterResult, TimedOut
from rooda.world.process.interrupts import Stopwatch
from rooda.world.process.request import Listener, ProcessResult
from rooda.world.state.folder import place_of
from support.capturing import BOTH_CAPTURES, Capture, Studio, studio_in
from support.children import Nursery, until
from support.clocks import CPU, DURATION, FIRST, GRACE, IDLE, ITERATION
from support.states import state_of
from support.workspace import Workspace, alive

pytestmark = pytest.mark.real

# -- real programs -------------------------------------------------------------------------


@dataclass
class Bench:
    """A studio with a clock that a test can set forward."""

    studio: Studio
    ahead: float = 0.0
    asleep: float = 0.0

    def __post_init__(self) -> None:
        self.studio.interrupts.stopwatch = Stopwatch(
            lambda: time.monotonic() + self.ahead,
            lambda: time.monotonic() + self.ahead + self.asleep,
        )

    @property
    def folder(self) -> Path:
        return self.studio.folder

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def clock_expired(self) -> ClockExpired:
        (event,) = self.studio.events_of(ClockExpired)
        assert isinstance(event, ClockExpired)
        return event


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    nursery = Nursery(tmp_path)
    with studio_in(tmp_path) as studio:
        yield Bench(studio)
    nursery.clear()


WAITS = "while ! test -e go; do sleep 0.02; done"
# Uses hardly any CPU time, and has no child.
SLEEPS = "import signal\nwhile True:\n    signal.pause()\n"
NOTHING = f"nothing was printed; {CPU.format(0)}; no file changed"


def after_output(act: Callable[[], None]) -> Listener:
    """Call `act` once, at the first output."""
    acted: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, Output) and not acted:
            acted.append(True)
            act()

    return listen


@BOTH_CAPTURES
def test_first_output_timeout_stops_a_silent_program(bench: Bench, capture: Capture) -> None:
    clock = Clock("first_output_timeout", 0.3, Since.FIRST_OUTPUT)
    result = bench.studio.python(SLEEPS, capture, clocks=(clock,))
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("first_output_timeout", 0.3)
    assert result.exit.evidence == "nothing was printed"
    assert bench.clock_expired() == ClockExpired("first_output_timeout", 0.3, result.exit.evidence)
    assert result.duration >= 0.3
    assert not alive(bench.studio.pid)


@pytest.mark.real(rows=3)
@BOTH_CAPTURES
@pytest.mark.parametrize("stream", [1, 2])
def test_one_byte_on_either_stream_disarms_first_output_timeout(
    bench: Bench, capture: Capture, stream: int
) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Output):
            bench.ahead = 10_000
        elif isinstance(event, Tick) and bench.ahead:
            bench.let_go()

    clock = Clock("first_output_timeout", 600, Since.FIRST_OUTPUT)
    body = f"printf x >&{stream}; {WAITS}; exit 3"
    result = bench.studio.sh(body, capture, listen, clocks=(clock,), tick=0.05)
    assert result.exit == Exited(3)
    assert result.duration > 10_000
    assert bench.studio.events_of(ClockExpired) == []


def idle(limit: float = 0.5) -> tuple[Clock, ...]:
    return (Clock("idle_timeout", limit, Since.ACTIVITY),)


@BOTH_CAPTURES
def test_sleeping_program_is_idle(bench: Bench, capture: Capture) -> None:
    result = bench.studio.python(SLEEPS, capture, clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)
    assert result.exit.evidence == NOTHING
    assert bench.clock_expired().evidence == NOTHING
    assert not alive(bench.studio.pid)


def test_program_that_printed_and_then_sleeps_is_idle(bench: Bench) -> None:
    body = f"import os; os.write(1, b'hello')\n{SLEEPS}"
    result = bench.studio.python(body, "pipe", clocks=idle(1.5))
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 1.5)
    assert result.exit.evidence.startswith("5 B printed, the last ")
    assert result.exit.evidence.endswith("; no file changed")


def test_stopped_program_is_idle(bench: Bench) -> None:
    body = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    result = bench.studio.python(body, "file", clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)


def test_idle_time_starts_when_the_cpu_work_ends(bench: Bench) -> None:
    body = f"import time\nwhile time.process_time() < 0.8: pass\n{SLEEPS}"
    result = bench.studio.python(body, "file", clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)
    assert result.duration >= 1.2
    assert result.exit.evidence == NOTHING


@pytest.mark.long
def test_busy_silent_program_is_not_idle(bench: Bench) -> None:
    body = "import time\nwhile time.process_time() < 1.2: pass\nraise SystemExit(3)"
    result = bench.studio.python(body, "file", clocks=idle())
    assert result.exit == Exited(3)
    assert result.duration > 1


# The program sleeps while other processes do its work.
WORKERS = {
    "children": "subprocess.run([sys.executable, '-S', '-c', BURN])",
    "orphans": "subprocess.run(['sh', '-c', '\"$@\" & echo', 'sh', *ORPHAN], stdout=-3); wait()",
    "other sessions": (
        "subprocess.run([sys.executable, '-S', '-c', BURN], start_new_session=True)"
    ),
}
GRANDCHILDREN = """
import os, subprocess, sys, time
BURN = "import time\\nwhile time.process_time() < 0.12: pass"
ORPHAN = [sys.executable, "-S", "-c", BURN + "\\nopen('burnt', 'w')"]
def wait():
    while not os.path.exists("burnt"):
        time.sleep(0.02)
    os.unlink("burnt")
for _ in range(8):
    {start}
raise SystemExit(3)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "orphans" else pytest.mark.long) for kind in WORKERS],
)
def test_short_lived_grandchildren_count_as_activity(bench: Bench, kind: str) -> None:
    body = GRANDCHILDREN.format(start=WORKERS[kind])
    result = bench.studio.python(body, "file", clocks=idle())
    assert result.exit == Exited(3)
    assert result.duration > 1


def test_program_that_prints_regularly_is_not_idle(bench: Bench) -> None:
    body = """
import os, time
for _ in range(12):
    os.write(2, b".")
    time.sleep(0.2)
raise SystemExit(3)
"""
    result = bench.studio.python(body, "file", clocks=idle(1.5))
    assert result.exit == Exited(3)
    assert result.stderr.tail == b"." * 12


# Sleeps until the test writes to the pipe.
READS = "import os; fd = os.open('way', os.O_RDONLY); os.read(fd, 9); raise SystemExit(3)"


def changing(bench: Bench, change: Callable[[int], None]) -> ProcessResult:
    """Run a sleeping program for longer than the limit, and call `change` at every tick."""
    work = bench.folder / "work"
    (work / "deep" / "down").mkdir(parents=True)
    os.mkfifo(bench.folder / "way")
    numbers = itertools.count()
    end = time.monotonic() + 4
    with os.fdopen(os.open(bench.folder / "way", os.O_RDWR), "wb", buffering=0) as way:

        def listen(event: Event) -> None:
            if isinstance(event, Tick):
                change(next(numbers))
                if time.monotonic() > end:
                    way.write(b"enough")

        return bench.studio.python(
            READS,
            "file",
            listen,
            clocks=idle(1.5),
            tick=0.1,
            changed_within=lambda seconds: changed_within(work, seconds),
        )


def test_changed_file_in_the_work_tree_counts_as_activity(bench: Bench) -> None:
    def write(n: int) -> None:
        (bench.folder / "work" / "deep" / "down" / "notes").write_text(str(n))

    assert changing(bench, write).exit == Exited(3)


def test_created_and_deleted_files_in_the_work_tree_count_as_activity(bench: Bench) -> None:
    def come_and_go(n: int) -> None:
        (bench.folder / "work" / "deep" / str(n)).touch()
        (bench.folder / "work" / "deep" / str(n - 1)).unlink(missing_ok=True)

    assert changing(bench, come_and_go).exit == Exited(3)


def test_files_written_by_rooda_do_not_count_as_activity(bench: Bench) -> None:
    def write(n: int) -> None:
        kept = state_of(bench.folder / "work") / place_of("run", 1)
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "stdout.log").write_text(str(n))

    end = changing(bench, write).exit
    assert isinstance(end, TimedOut)
    assert (end.clock, end.after) == ("idle_timeout", 1.5)


# -- result_grace --------------------------------------------------------------------------

SAYS = "echo '<promise>SUCCESS</promise>'"
WORDS = Words("SUCCESS", "FAILURE")


def grace(limit: float) -> tuple[Clock, ...]:
    return (Clock("result_grace", limit, Since.RESULT),)


def judged(result: ProcessResult) -> Outcome:
    promises = scan(result.stdout.tail, WORDS, Prompt(b"the prompt\n"))
    return judge(result.exit, promises)


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "capture,after",
    [
        ("file", "exec sleep 60"),
        ("pipe", "exec sleep 60"),
        ("file", "trap 'exit 9' TERM; while :; do sleep 0.02; done"),
        ("pipe", "trap '' TERM; while :; do sleep 60; done"),
        ("file", "while :; do echo more; sleep 0.02; done"),
    ],
    ids=["obeys", "obeys (pipe)", "fails", "ignores SIGTERM", "keeps printing"],
)
def test_program_that_hangs_after_its_result_is_stopped_and_the_result_counts(
    bench: Bench, capture: Capture, after: str
) -> None:
    printed: list[bool] = []
    result = bench.studio.sh(
        f"{SAYS}; {after}",
        capture,
        after_output(lambda: printed.append(True)),
        clocks=grace(0.3),
        kill_grace=0.3,
        result_is_in=lambda: bool(printed),
    )
    assert result.exit == HungAfterResult("result_grace", 0.3)
    assert judged(result) == Outcome(Verdict.COMPLETE)
    assert bench.clock_expired().evidence == "it printed its result, but did not exit"
    assert result.duration >= 0.3
    assert not alive(bench.studio.pid)


def test_hang_after_a_result_without_signal_is_no_failure(bench: Bench) -> None:
    result = bench.studio.sh("exec sleep 60", "file", clocks=grace(0.2), result_is_in=lambda: True)
    assert result.exit == HungAfterResult("result_grace", 0.2)
    assert judged(result) == Outcome(Verdict.CONTINUE)


def test_hang_after_a_failure_signal_is_a_failure(bench: Bench) -> None:
    printed: list[bool] = []
    result = bench.studio.sh(
        "echo '<promise>FAILURE</promise>'; exec sleep 60",
        "file",
        after_output(lambda: printed.append(True)),
        clocks=grace(0.2),
        result_is_in=lambda: bool(printed),
    )
    assert isinstance(result.exit, HungAfterResult)
    assert judged(result).verdict is Verdict.FAILURE
    assert judged(result).kind is FailureKind.SIGNAL


def test_program_that_exits_within_result_grace_keeps_its_exit_code(bench: Bench) -> None:
    result = bench.studio.sh("exit 7", "file", clocks=grace(30), result_is_in=lambda: True)
    assert result.exit == Exited(7)


def test_result_grace_does_not_start_without_a_result(bench: Bench) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Output):
            bench.ahead = 10_000
        elif isinstance(event, Tick) and bench.ahead:
            bench.let_go()

    body = f"{SAYS}; {WAITS}; exit 3"
    result = bench.studio.sh(body, "file", listen, clocks=grace(0.1), tick=0.05)
    assert result.exit == Exited(3)


@pytest.mark.parametrize(
    "other",
    [
        Clock("idle_timeout", 2, Since.ACTIVITY),
        Clock("iteration_timeout", 2, Since.START),
    ],
    ids=lambda clock: clock.name,
)
def test_result_counts_whichever_clock_expires(bench: Bench, other: Clock) -> None:
    """An idle_timeout of 10 s must not discard a result that a grace of 30 s would keep."""
    printed: list[bool] = []
    result = bench.studio.sh(
        f"{SAYS}; exec sleep 60",
        "file",
        after_output(lambda: printed.append(True)),
        clocks=(other, *grace(30)),
        result_is_in=lambda: bool(printed),
    )
    assert bench.clock_expired().clock == other.name
    assert judged(result) == Outcome(Verdict.COMPLETE)


# -- several clocks, and a machine that slept ----------------------------------------------


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "clocks,name",
    [
        ((ITERATION, DURATION), "iteration_timeout"),
        ((DURATION, ITERATION), "iteration_timeout"),
        ((IDLE, ITERATION), "iteration_timeout"),
        ((GRACE, DURATION), "result_grace"),
        ((FIRST, DURATION), "max_duration"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(c.name[:5] for c in value),
)
def test_of_several_expired_clocks_the_earliest_is_reported(
    bench: Bench, clocks: tuple[Clock, ...], name: str
) -> None:
    """All clocks have expired because a slow listener delayed rooda.

    Idle needs a fresh measurement, and there was no time for one.
    """

    def listen(event: Event) -> None:
        if isinstance(event, Tick) and bench.studio.output():
            bench.ahead = 10_000

    result = bench.studio.python(
        f"import os; os.write(1, b'x')\n{SLEEPS}",
        "pipe",
        listen,
        clocks=clocks,
        tick=0.05,
        result_is_in=lambda: True,
    )
    assert not isinstance(result.exit, Exited)
    assert bench.clock_expired().clock == name


def test_machine_sleep_is_reported_and_no_clock_counts_it(bench: Bench) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Output):
            bench.asleep = 8 * 3600
        elif isinstance(event, MachineSlept):
            bench.let_go()

    clocks = (ITERATION, DURATION, IDLE)
    result = bench.studio.sh(f"echo x; {WAITS}; exit 3", "file", listen, clocks=clocks, tick=0.05)
    assert result.exit == Exited(3)
    (slept,) = bench.studio.events_of(MachineSlept)
    assert isinstance(slept, MachineSlept)
    assert slept.seconds == pytest.approx(8 * 3600, abs=1)


# -- through the installed command ---------------------------------------------------------

HANGS = "echo $$ > agent.pid; exec sleep 60"


def test_max_duration_ends_the_run_during_an_iteration(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo working; {HANGS}")
    done = workspace.work(command, "--max-duration", "3", "--failure-threshold", "1")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))
    (expiry,) = [line for line in done.log if "clock=max_duration" in line]
    assert "8 B printed, the last " in expiry
    assert done.log[-1].startswith("ERROR: Aborting: max_duration of 3.0s reached (1 iteration")
    assert done.seconds >= 3


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def between_iterations(workspace: Workspace, nursery: Nursery, last: str) -> list[str]:
    """Stop rooda until its agent has exited and the time is over; return the log and the code."""
    # The agent's parent is the warden, and the warden's parent is rooda. A warden that runs would
    # continue rooda.
    stop = "echo $PPID > warden.pid; kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat) $PPID"
    command = workspace.agent(f"{stop}; echo x >> starts; echo $$ > agent.pid; {last}")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--max-duration", "3")
    agent, rooda = nursery.pid("agent"), running.process.pid
    until(lambda: stopped(rooda) and not alive(agent), "the agent exits")
    over = time.monotonic() + 3.1
    until(lambda: time.monotonic() > over, "max_duration passes")
    for pid in (nursery.pid("warden"), rooda):
        os.kill(pid, signal.SIGCONT)
    done = running.finish()
    assert (workspace.path / "starts").read_text() == "x\n"
    return [*done.log, str(done.code)]


def test_max_duration_ends_the_run_between_iterations(
    workspace: Workspace, nursery: Nursery
) -> None:
    *log, code = between_iterations(workspace, nursery, "exit 0")
    assert code == "1"
    assert log[-2].startswith("Iteration 1/5 completed in ")
    assert "max_duration of 3.0s reached" in log[-1]
    assert not any("clock=" in line for line in log)


def test_success_in_the_last_iteration_wins_over_max_duration(
    workspace: Workspace, nursery: Nursery
) -> None:
    *log, code = between_iterations(workspace, nursery, SAYS)
    assert code == "0"
    assert log[-1].startswith("Completed: AI signaled SUCCESS")


def test_max_duration_is_reported_as_aborted_in_json(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(HANGS)
    done = workspace.work(command, "--max-duration", "3", "--log-format", "json")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))
    last = json.loads(done.err.splitlines()[-1])
    assert (last["event"], last["status"], last["exit_code"]) == ("run_ended", "aborted", 1)
    assert last["rule"] == "max-duration"


def test_max_duration_counts_all_iterations(workspace: Workspace, nursery: Nursery) -> None:
    assert nursery.folder == workspace.path
    command = workspace.agents("sleep 1.2")
    done = workspace.work(command, "--max-duration", "3", "-u")
    assert done.code == 1
    assert "max_duration of 3.0s reached" in done.log[-1]
    assert workspace.starts in (2, 3)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "flag,limit,words",
    [
        ("first_output_timeout", "2", "nothing was printed"),
        ("idle_timeout", "2", NOTHING),
        pytest.param("iteration_timeout", "2", "nothing was printed", marks=pytest.mark.long),
    ],
)
def test_expiry_names_its_clock_and_the_evidence(
    workspace: Workspace, nursery: Nursery, flag: str, limit: str, words: str
) -> None:
    option = "--" + flag.replace("_", "-")
    command = workspace.agent(HANGS)
    done = workspace.work(command, option, limit, "--failure-threshold", "1")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))
    (expiry,) = [line for line in done.log if f"clock={flag}" in line]
    assert f"timeout={limit}s" in expiry
    assert words in expiry


def test_success_before_a_timeout_does_not_count(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(f"{SAYS}; {HANGS}")
    done = workspace.work(command, "--max-duration", "3")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("option", ["--iteration-timeout", "--idle-timeout"])
def test_timeout_of_years_is_accepted(workspace: Workspace, nursery: Nursery, option: str) -> None:
    assert nursery.folder == workspace.path
    done = workspace.work(workspace.agent(SAYS), option, "9999d", "--max-duration", "9999d")
    assert done.code == 0
