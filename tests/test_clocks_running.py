"""The clocks on real programs: what they stop, and what keeps them from it."""

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rooda.agents.failure_kinds import FailureKind
from rooda.loop.outcome import Outcome, Verdict, judge
from rooda.loop.promises import Prompt, Words, scan
from rooda.process.clocks import Clock, Since
from rooda.process.events import ClockExpired, MachineSlept, Output, Tick
from rooda.process.exits import Exited, HungAfterResult, TimedOut
from rooda.process.request import Listener, ProcessResult
from rooda.process.stopwatch import Stopwatch
from rooda.text.event import Event
from rooda.workspace.state_folder import STATE_FOLDER, place_of
from rooda.workspace.work_tree import changed_within
from support.capturing import BOTH_CAPTURES, Capture, Studio, studio_in
from support.children import Nursery, until
from support.clocks import CPU, DURATION, FIRST, GRACE, IDLE, ITERATION
from support.workspace import Workspace, alive

# -- real programs -------------------------------------------------------------------------


@dataclass
class Bench:
    """A studio whose time can be made to jump."""

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
        (event,) = self.studio.told(ClockExpired)
        assert isinstance(event, ClockExpired)
        return event


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    nursery = Nursery(tmp_path)
    with studio_in(tmp_path) as studio:
        yield Bench(studio)
    nursery.clear()


WAITS = "while ! test -e go; do sleep 0.02; done"
# Without CPU time worth the name, and without a child.
SLEEPS = "import signal\nwhile True:\n    signal.pause()\n"
NOTHING = f"nothing was printed; {CPU.format(0)}; no change of a file was seen"


def after_output(act: Callable[[], None]) -> Listener:
    """Act once, when the first output has come."""
    acted: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, Output) and not acted:
            acted.append(True)
            act()

    return listen


@BOTH_CAPTURES
def test_who_prints_nothing_at_first_runs_out_of_time(bench: Bench, capture: Capture) -> None:
    clock = Clock("first_output_timeout", 0.3, Since.FIRST_OUTPUT)
    result = bench.studio.python(SLEEPS, capture, clocks=(clock,))
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("first_output_timeout", 0.3)
    assert result.exit.evidence == "nothing was printed"
    assert bench.clock_expired() == ClockExpired("first_output_timeout", 0.3, result.exit.evidence)
    assert result.duration >= 0.3
    assert not alive(bench.studio.pid)


@BOTH_CAPTURES
@pytest.mark.parametrize("stream", [1, 2])
def test_after_one_byte_on_either_stream_the_first_clock_is_off(
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
    assert bench.studio.told(ClockExpired) == []


def idle(limit: float = 0.5) -> tuple[Clock, ...]:
    return (Clock("idle_timeout", limit, Since.ACTIVITY),)


@BOTH_CAPTURES
def test_who_sleeps_is_idle(bench: Bench, capture: Capture) -> None:
    result = bench.studio.python(SLEEPS, capture, clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)
    assert result.exit.evidence == NOTHING
    assert bench.clock_expired().evidence == NOTHING
    assert not alive(bench.studio.pid)


def test_who_printed_and_then_sleeps_is_idle(bench: Bench) -> None:
    body = f"import os; os.write(1, b'hello')\n{SLEEPS}"
    result = bench.studio.python(body, "pipe", clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)
    assert result.exit.evidence.startswith("5 B printed, the last 0.")
    assert result.exit.evidence.endswith("; no change of a file was seen")


def test_who_has_stopped_itself_is_idle(bench: Bench) -> None:
    body = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    result = bench.studio.python(body, "file", clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)


@pytest.mark.slow
def test_who_worked_is_idle_only_when_it_has_slept_for_so_long(bench: Bench) -> None:
    body = f"import time\nwhile time.process_time() < 0.8: pass\n{SLEEPS}"
    result = bench.studio.python(body, "file", clocks=idle())
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("idle_timeout", 0.5)
    assert result.duration >= 1.2
    assert result.exit.evidence == NOTHING


@pytest.mark.slow
def test_a_busy_program_that_says_nothing_is_not_idle(bench: Bench) -> None:
    body = "import time\nwhile time.process_time() < 1.2: pass\nraise SystemExit(3)"
    result = bench.studio.python(body, "file", clocks=idle())
    assert result.exit == Exited(3)
    assert result.duration > 1


# The program itself sleeps until its work is done by others.
WORKERS = {
    "waited for": "subprocess.run([sys.executable, '-S', '-c', BURN])",
    "orphans": "subprocess.run(['sh', '-c', '\"$@\" & echo', 'sh', *ORPHAN], stdout=-3); wait()",
    "in other sessions": (
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "orphans" else pytest.mark.slow) for kind in WORKERS],
)
def test_grandchildren_that_come_and_go_are_work(bench: Bench, kind: str) -> None:
    body = GRANDCHILDREN.format(start=WORKERS[kind])
    result = bench.studio.python(body, "file", clocks=idle())
    assert result.exit == Exited(3)
    assert result.duration > 1


@pytest.mark.slow
def test_who_prints_now_and_then_is_not_idle(bench: Bench) -> None:
    body = """
import os, time
for _ in range(12):
    os.write(2, b".")
    time.sleep(0.1)
raise SystemExit(3)
"""
    result = bench.studio.python(body, "file", clocks=idle())
    assert result.exit == Exited(3)
    assert result.stderr.tail == b"." * 12


# Sleeps until somebody writes.
READS = "import os; fd = os.open('way', os.O_RDONLY); os.read(fd, 9); raise SystemExit(3)"


def changing(bench: Bench, change: Callable[[int], None]) -> ProcessResult:
    """Run a sleeping program while the work tree changes, for much longer than the limit."""
    work = bench.folder / "work"
    (work / "deep" / "down").mkdir(parents=True)
    os.mkfifo(bench.folder / "way")
    numbers = itertools.count()
    end = time.monotonic() + 1.5
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
            clocks=idle(),
            tick=0.1,
            changed_within=lambda seconds: changed_within(work, seconds),
        )


@pytest.mark.slow
def test_files_that_change_in_the_work_tree_are_work(bench: Bench) -> None:
    def write(n: int) -> None:
        (bench.folder / "work" / "deep" / "down" / "notes").write_text(str(n))

    assert changing(bench, write).exit == Exited(3)


@pytest.mark.slow
def test_files_that_come_and_go_in_the_work_tree_are_work(bench: Bench) -> None:
    def come_and_go(n: int) -> None:
        (bench.folder / "work" / "deep" / str(n)).touch()
        (bench.folder / "work" / "deep" / str(n - 1)).unlink(missing_ok=True)

    assert changing(bench, come_and_go).exit == Exited(3)


def test_what_rooda_itself_writes_is_no_work(bench: Bench) -> None:
    def write(n: int) -> None:
        kept = bench.folder / "work" / STATE_FOLDER / place_of("run", 1)
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "stdout.log").write_text(str(n))

    end = changing(bench, write).exit
    assert isinstance(end, TimedOut)
    assert (end.clock, end.after) == ("idle_timeout", 0.5)


# -- the result is in ----------------------------------------------------------------------

SAYS = "echo '<promise>SUCCESS</promise>'"
WORDS = Words("SUCCESS", "FAILURE")


def grace(limit: float) -> tuple[Clock, ...]:
    return (Clock("result_grace", limit, Since.RESULT),)


def judged(result: ProcessResult) -> Outcome:
    promises = scan(result.stdout.tail, WORDS, Prompt(b"the prompt\n"))
    return judge(result.exit, promises)


@pytest.mark.parametrize(
    "capture,after",
    [
        ("file", "exec sleep 60"),
        ("pipe", "exec sleep 60"),
        ("file", "trap 'exit 9' TERM; while :; do sleep 0.02; done"),
        ("pipe", "trap '' TERM; while :; do sleep 60; done"),
        ("file", "while :; do echo more; sleep 0.02; done"),
    ],
    ids=["obeys", "obeys (pipe)", "fails", "ignores the request", "goes on talking"],
)
def test_who_lingers_after_its_result_is_stopped_and_the_result_counts(
    bench: Bench, capture: Capture, after: str
) -> None:
    said: list[bool] = []
    result = bench.studio.sh(
        f"{SAYS}; {after}",
        capture,
        after_output(lambda: said.append(True)),
        clocks=grace(0.3),
        kill_grace=0.3,
        result_is_in=lambda: bool(said),
    )
    assert result.exit == HungAfterResult("result_grace", 0.3)
    assert judged(result) == Outcome(Verdict.COMPLETE)
    assert bench.clock_expired().evidence == "its result was in, and it did not exit"
    assert result.duration >= 0.3
    assert not alive(bench.studio.pid)


def test_a_result_without_a_signal_is_a_good_iteration(bench: Bench) -> None:
    result = bench.studio.sh("exec sleep 60", "file", clocks=grace(0.2), result_is_in=lambda: True)
    assert result.exit == HungAfterResult("result_grace", 0.2)
    assert judged(result) == Outcome(Verdict.CONTINUE)


def test_failure_that_was_said_with_the_result_counts_as_well(bench: Bench) -> None:
    said: list[bool] = []
    result = bench.studio.sh(
        "echo '<promise>FAILURE</promise>'; exec sleep 60",
        "file",
        after_output(lambda: said.append(True)),
        clocks=grace(0.2),
        result_is_in=lambda: bool(said),
    )
    assert isinstance(result.exit, HungAfterResult)
    assert judged(result).verdict is Verdict.FAILURE
    assert judged(result).kind is FailureKind.SIGNAL


def test_who_exits_within_the_grace_has_its_own_exit(bench: Bench) -> None:
    result = bench.studio.sh("exit 7", "file", clocks=grace(30), result_is_in=lambda: True)
    assert result.exit == Exited(7)


def test_without_a_result_the_grace_never_begins(bench: Bench) -> None:
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
        Clock("idle_timeout", 0.5, Since.ACTIVITY),
        Clock("iteration_timeout", 1, Since.START),
    ],
    ids=lambda clock: clock.name,
)
def test_a_result_that_is_in_counts_whichever_clock_runs_out(bench: Bench, other: Clock) -> None:
    """An idle_timeout of 10 s must not throw away what a grace of 30 s would have kept."""
    said: list[bool] = []
    result = bench.studio.sh(
        f"{SAYS}; exec sleep 60",
        "file",
        after_output(lambda: said.append(True)),
        clocks=(other, *grace(30)),
        result_is_in=lambda: bool(said),
    )
    assert bench.clock_expired().clock == other.name
    assert judged(result) == Outcome(Verdict.COMPLETE)


# -- several at once, and a machine that slept ---------------------------------------------


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
def test_of_several_that_ran_out_unseen_the_first_is_named(
    bench: Bench, clocks: tuple[Clock, ...], name: str
) -> None:
    """A reader held us up, and when we look again, all of them are late.

    That a program is idle needs proof, and for that there was no time.
    """

    def listen(event: Event) -> None:
        if isinstance(event, Tick) and bench.studio.heard():
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


def test_the_sleep_of_the_machine_is_told_and_no_clock_counts_it(bench: Bench) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Output):
            bench.asleep = 8 * 3600
        elif isinstance(event, MachineSlept):
            bench.let_go()

    clocks = (ITERATION, DURATION, IDLE)
    result = bench.studio.sh(f"echo x; {WAITS}; exit 3", "file", listen, clocks=clocks, tick=0.05)
    assert result.exit == Exited(3)
    (slept,) = bench.studio.told(MachineSlept)
    assert isinstance(slept, MachineSlept)
    assert slept.seconds == pytest.approx(8 * 3600, abs=1)


# -- through the installed command ---------------------------------------------------------

HANGS = "echo $$ > agent.pid; exec sleep 60"


@pytest.mark.slow
def test_max_duration_ends_the_run_in_the_middle_of_an_iteration(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo working; {HANGS}")
    done = workspace.work(command, "--max-duration", "1", "--failure-threshold", "1")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))
    (expiry,) = [line for line in done.log if "clock=max_duration" in line]
    assert "8 B printed, the last " in expiry
    assert done.log[-1].startswith("ERROR: Aborting: max_duration of 1.0s reached (1 iteration")
    assert done.seconds >= 1


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def between_iterations(workspace: Workspace, nursery: Nursery, last: str) -> list[str]:
    """A run that is held up while its agent ends, until its time is over; the log, and the code."""
    # Its parent is the warden, and the parent of that is rooda.
    stop = "kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat)"
    command = workspace.agent(f"{stop}; echo x >> starts; echo $$ > agent.pid; {last}")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--max-duration", "1")
    agent, rooda = nursery.pid("agent"), running.process.pid
    until(lambda: stopped(rooda) and not alive(agent), "the end of the agent")
    over = time.monotonic() + 1.1
    until(lambda: time.monotonic() > over, "the end of the time")
    running.signal(signal.SIGCONT)
    done = running.finish()
    assert (workspace.path / "starts").read_text() == "x\n"
    return [*done.log, str(done.code)]


@pytest.mark.slow
def test_max_duration_ends_the_run_between_two_iterations(
    workspace: Workspace, nursery: Nursery
) -> None:
    *log, code = between_iterations(workspace, nursery, "exit 0")
    assert code == "1"
    assert log[-2].startswith("Iteration 1/5 completed in ")
    assert "max_duration of 1.0s reached" in log[-1]
    assert not any("clock=" in line for line in log)


@pytest.mark.slow
def test_who_is_done_when_the_time_is_over_is_done(workspace: Workspace, nursery: Nursery) -> None:
    *log, code = between_iterations(workspace, nursery, SAYS)
    assert code == "0"
    assert log[-1].startswith("Completed: AI signaled SUCCESS")


@pytest.mark.slow
def test_a_run_that_took_too_long_is_aborted_for_programs_too(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(HANGS)
    done = workspace.work(command, "--max-duration", "1", "--log-format", "json")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))
    last = json.loads(done.err.splitlines()[-1])
    assert (last["event"], last["status"], last["exit_code"]) == ("run_ended", "aborted", 1)
    assert last["rule"] == "max-duration"


@pytest.mark.slow
def test_max_duration_counts_all_iterations_together(
    workspace: Workspace, nursery: Nursery
) -> None:
    assert nursery.folder == workspace.path
    command = workspace.agents("sleep 0.4", "sleep 0.4", "sleep 0.4", "sleep 0.4")
    done = workspace.work(command, "--max-duration", "1", "-u")
    assert done.code == 1
    assert "max_duration of 1.0s reached" in done.log[-1]
    assert workspace.starts in (2, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flag,limit,words",
    [
        ("first_output_timeout", "0.2", "nothing was printed"),
        ("idle_timeout", "0.5", NOTHING),
        pytest.param("iteration_timeout", "1", "nothing was printed", marks=pytest.mark.slow),
    ],
)
def test_each_expiry_names_its_clock_and_the_evidence(
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


@pytest.mark.slow
def test_success_said_before_a_clock_ran_out_is_not_believed(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"{SAYS}; {HANGS}")
    done = workspace.work(command, "--max-duration", "1")
    assert done.code == 1
    assert not alive(nursery.pid("agent"))


@pytest.mark.parametrize("option", ["--iteration-timeout", "--idle-timeout"])
@pytest.mark.slow
def test_a_clock_of_years_is_no_error(workspace: Workspace, nursery: Nursery, option: str) -> None:
    assert nursery.folder == workspace.path
    done = workspace.work(workspace.agent(SAYS), option, "9999d", "--max-duration", "9999d")
    assert done.code == 0
