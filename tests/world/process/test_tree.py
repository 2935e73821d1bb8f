"""Process trees: which processes belong to a program, which are kept, and how they are found."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.world.process.events import LeftoversStopped, Output, ProcessKilled
from rooda.world.process.exits import Exited, TimedOut
from rooda.world.process.interrupts import Stopwatch
from rooda.world.process.leftovers import RunTrace, find_leftovers
from rooda.world.process.tree import process_table
from rooda.world.process.tree.portable import PsutilProcessTable
from rooda.world.process.tree.processes import (
    LONGEST_NAME,
    Process,
    ProcessTable,
    descendants,
    is_named,
    title,
    without_kept,
)
from rooda.world.process.tree.stopping import send_signal
from support.capturing import BOTH_CAPTURES, Capture, Studio, studio_in
from support.children import Nursery, started_at, until
from support.workspace import Workspace, alive, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"
LOOP = "while :; do sleep 0.1; done"
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def process(pid: int, parent: int, name: str = "sh") -> Process:
    return Process(pid, parent, pid, pid, float(pid), ended=False, cpu=0.0, name=name)


# -- parents and children ------------------------------------------------------------------

# 1 ─┬ 10 ─┬ 11 ─ 13
#    │     └ 12
#    └ 20 ─ 21
FAMILY = [
    process(13, 11, "test"),
    process(1, 0, "init"),
    process(10, 1, "agent"),
    process(21, 20, "other"),
    process(11, 10, "make"),
    process(20, 1, "shell"),
    process(12, 10, "watcher"),
]


def pids(processes: list[Process]) -> set[int]:
    return {one.pid for one in processes}


@pytest.mark.parametrize(
    "roots,expected",
    [
        ({10}, {11, 12, 13}),
        ({11}, {13}),
        ({13}, set()),
        ({10, 20}, {11, 12, 13, 21}),
        ({10, 11}, {12, 13}),
        ({1}, {10, 11, 12, 13, 20, 21}),
        ({0}, {1, 10, 11, 12, 13, 20, 21}),
        ({99}, set()),
        (set(), set()),
    ],
)
def test_descendants_excludes_the_roots(roots: set[int], expected: set[int]) -> None:
    found = descendants(FAMILY, roots)
    assert pids(found) == expected
    assert len(found) == len(expected)


def test_descendants_terminates_on_a_cycle_of_parents() -> None:
    """The OS reuses pids during a scan, so two processes may seem to be each other's parent."""
    assert pids(descendants([process(2, 3), process(3, 2), process(4, 4)], {2})) == {3}
    assert pids(descendants([process(2, 3), process(3, 2), process(4, 4)], {4})) == set()


@pytest.mark.parametrize(
    "kept,never,expected",
    [
        ((), 10, {10, 11, 12, 13}),
        (("no-such-name",), 10, {10, 11, 12, 13}),
        (("watcher",), 10, {10, 11, 13}),
        (("make",), 10, {10, 12}),
        (("test",), 10, {10, 11, 12}),
        (("make", "watcher"), 10, {10}),
        (("agent",), 10, {10, 11, 12, 13}),
        (("agent", "make"), 10, {10, 12}),
        (("agent",), 99, set()),
        (("make",), 13, {10, 12, 13}),
    ],
)
def test_kept_process_protects_its_descendants_but_the_leader_is_never_kept(
    kept: tuple[str, ...], never: int, expected: set[int]
) -> None:
    members = [one for one in FAMILY if one.pid in (10, 11, 12, 13)]
    assert pids(without_kept(members, lambda one: one.name in kept, never)) == expected


@pytest.mark.parametrize(
    "name,words,patterns,expected",
    [
        ("node", ["/usr/bin/node", "server.js"], ["node"], True),
        ("node", ["/usr/bin/node", "server.js"], ["nod"], False),
        ("node", ["/usr/bin/node", "server.js"], ["*server.js"], True),
        ("node", ["/usr/bin/node", "server.js"], ["server.js"], False),
        ("node", ["/usr/bin/node", "server.js"], ["/usr/bin/node server.js"], True),
        ("node", ["/usr/bin/node", "server.js"], ["/usr/bin/node"], False),
        ("node", ["/usr/bin/node", "server.js"], ["NODE"], False),
        ("node", ["/usr/bin/node", "server.js"], ["bun", "n?de"], True),
        ("gradle-daemon-w", ["/opt/gradle-daemon-worker"], ["gradle-daemon-worker"], True),
        ("MainThread", ["python", "-m", "watch"], ["python -m watch*"], True),
        ("kworker", [], ["kworker"], True),
        ("kworker", [], ["k*"], True),
        ("sh", ["sh"], [], False),
        ("[x]", ["[x]"], ["[[]x]"], True),
    ],
)
def test_pattern_matches_name_program_or_command_line(
    name: str,
    words: list[str],
    patterns: list[str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert is_named(process(2, 1, name), words, patterns) is expected


def test_title_has_a_bounded_length() -> None:
    assert title(process(2, 1, "sh"), ["sh", "-c", "true"]) == "sh -c true"
    assert title(process(2, 1, "kworker"), []) == "kworker"
    assert len(title(process(2, 1), ["x" * 100_000])) == LONGEST_NAME


# -- /proc and psutil agree ----------------------------------------------------------------

TREE = """
import os, subprocess, sys, time
folder = sys.argv[1]
os.chdir(folder)
quiet = "import os, sys, time; open(sys.argv[1] + '.pid', 'w').write(str(os.getpid()));"
quiet += "time.sleep(60)"
def child(name, *more, **how):
    return subprocess.Popen([sys.executable, "-S", "-c", quiet, f"{folder}/{name}", *more], **how)
marked = {**os.environ, "THE_MARK": "of this test", "EMPTY": ""}
child("plain")
child("own", start_new_session=True, env=marked)
child("group", process_group=0, cwd="inside")
child("words", "two words", "", "ünïcode", "line\\nbreak", env={"OTHER": "THE_MARK=of this test"})
zombie = child("zombie")
while not os.path.exists("zombie.pid") or not open("zombie.pid").read():
    time.sleep(0.01)
zombie.kill()
os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
open("tree.pid", "w").write(str(os.getpid()))
time.sleep(60)
"""
NAMES = ("tree", "plain", "own", "group", "words", "zombie")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[dict[str, int]]:
    """A small real process tree; the pids by name."""
    (tmp_path / "inside").mkdir()
    nursery = Nursery(tmp_path)
    command = [sys.executable, "-S", "-c", TREE, str(tmp_path)]
    nursery.started.append(subprocess.Popen(command, text=True))
    try:
        yield {name: nursery.pid(name) for name in NAMES}
    finally:
        nursery.clear()


def both() -> tuple[ProcessTable, ProcessTable]:
    from rooda.world.process.tree.linux import LinuxProcessTable  # noqa: PLC0415 - there is no /proc on macOS

    return LinuxProcessTable(), PsutilProcessTable()


@pytest.mark.real(rows=3)
@linux_only
@pytest.mark.parametrize("name", NAMES)
def test_both_process_tables_agree_on_a_process(tree: dict[str, int], name: str) -> None:
    pid = tree[name]
    proc, sweep = both()
    one, other = proc.find(pid), sweep.find(pid)
    assert one is not None
    assert other is not None
    for field in set(Process.__slots__) - {"started", "cpu"}:
        assert getattr(one, field) == getattr(other, field), field
    assert one.cpu == pytest.approx(other.cpu, abs=0.2)
    assert one.ended is (name == "zombie")
    if name != "tree":
        assert one.parent == tree["tree"]
    assert (one.session == pid) is (name == "own")
    if name != "zombie":
        assert proc.command_line(pid) == sweep.command_line(pid)
        assert proc.folder(pid) == sweep.folder(pid) is not None
    for mark in ("THE_MARK=of this test", "EMPTY=", "THE_MARK=of this", "THE_MARK", "X=", ""):
        marked = name == "own" and mark in ("THE_MARK=of this test", "EMPTY=")
        assert proc.has_mark(pid, mark) is marked, mark
        assert sweep.has_mark(pid, mark) is marked, mark


@pytest.mark.real
@linux_only
def test_both_process_tables_agree_on_a_tree(tree: dict[str, int], tmp_path: Path) -> None:
    for table in both():
        processes = table.all_processes()
        below = descendants(processes, {tree["tree"]})
        assert pids(below) == set(tree.values()) - {tree["tree"]}
        assert {os.getpid(), tree["tree"]} < pids(processes)
        started = {one.pid: one.started for one in processes}
        assert all(started[one.pid] >= started[tree["tree"]] for one in below)
        assert table.folder(tree["group"]) == str(tmp_path / "inside")
        assert table.command_line(tree["words"])[5:] == ["two words", "", "ünïcode", "line\nbreak"]


@pytest.mark.real
@linux_only
def test_both_process_tables_know_that_a_process_is_gone() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for table in both():
        assert table.find(gone.pid) is None
        assert table.command_line(gone.pid) == []
        assert table.folder(gone.pid) is None
        assert not table.has_mark(gone.pid, "PATH=" + os.environ["PATH"])
        assert not table.writes_to(gone.pid, frozenset({(1, 1)}))


@pytest.mark.real
@linux_only
def test_writes_to_is_true_only_for_a_file_opened_for_writing(tmp_path: Path) -> None:
    table = both()[0]
    path = tmp_path / "file"
    path.touch()
    identity = frozenset({(path.stat().st_dev, path.stat().st_ino)})
    for mode, writes in (("rb", False), ("ab", True), ("r+b", True)):
        with path.open(mode) as file:
            child = subprocess.Popen(["sleep", "60"], stdin=file)
            try:
                assert table.writes_to(child.pid, identity) is writes, mode
                assert not table.writes_to(child.pid, frozenset({(0, 0)}))
            finally:
                child.kill()
                child.wait()


@pytest.mark.real
@linux_only
def test_process_name_may_contain_parentheses_spaces_and_invalid_utf8() -> None:
    script = "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (2 3\\xff', 0, 0, 0); "
    script += "print(flush=True); import time; time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = both()[0].find(child.pid)
        assert found is not None
        assert found.name == ") R 1 (2 3\ufffd"
        assert found.parent == os.getpid()
    finally:
        child.kill()
        child.communicate()


# -- signals and reused pids ---------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("table", [process_table(), PsutilProcessTable()], ids=["proc", "sweep"])
def test_signal_is_not_sent_to_another_process_with_the_same_pid(table: ProcessTable) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        meant = table.find(child.pid)
        assert meant is not None
        for other in (meant.started - 1, meant.started + 1, 0):
            assert not send_signal(table, started_at(meant, other), signal.SIGKILL)
        assert child.poll() is None
        assert alive(child.pid)
        assert send_signal(table, meant, signal.SIGTERM)
        assert child.wait(20) == -signal.SIGTERM
        assert not send_signal(table, meant, signal.SIGKILL), "it is gone"
    finally:
        child.kill()
        child.wait()


# -- keep_processes ------------------------------------------------------------------------


def keeper(workspace: Workspace, name: str = "keeper") -> str:
    """Write a daemon script that has one child; return the command that starts it."""
    body = f"sleep 600 & echo $! > {name}-child.pid; echo $$ > {name}.pid; wait"
    workspace.agent(body, name)
    return f"setsid ./{name} > /dev/null 2>&1 & while ! test -s {name}.pid; do sleep 0.01; done; "


# The shell's child is called `sh` until it runs exec.
IS_SLEEP = "until grep -q ^sleep /proc/$!/cmdline || [ ! -e /proc/self ]; do sleep 0.01; done; "
OTHER = f"setsid sleep 600 > /dev/null 2>&1 & echo $! > other.pid; {IS_SLEEP}"


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_kept_daemon_and_its_child_survive_while_others_are_stopped(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    still = "kill -0 $(cat keeper.pid) && kill -0 $(cat keeper-child.pid) && echo yes > lived; "
    gone = "kill -0 $(cat other.pid) 2> /dev/null || echo yes > stopped; "
    agent = workspace.agents(keeper(workspace) + OTHER, still + gone, SUCCESS)
    words = ("--keep-processes", "keeper", "--capture", capture, "--kill-grace", "2")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *words).finish()
    assert done.code == 0, done.err
    assert workspace.starts == 3
    assert (workspace.path / "lived").exists(), "between two iterations"
    assert (workspace.path / "stopped").exists()
    assert alive(nursery.pid("keeper")), "after the run"
    assert alive(nursery.pid("keeper-child"))
    assert not alive(nursery.pid("other"))
    warnings = [line for line in done.log if "left processes behind" in line]
    assert len(warnings) == 1, done.err
    assert "sleep" in warnings[0]
    assert "keeper" not in warnings[0]


@pytest.mark.real
def test_git_commands_of_rooda_do_not_stop_a_kept_daemon(
    workspace: Workspace, nursery: Nursery
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=workspace.path, check=True)
    still = "kill -0 $(cat keeper.pid) && kill -0 $(cat keeper-child.pid) && echo yes > lived; "
    agent = workspace.agents(keeper(workspace), still + SUCCESS)
    words = ("--keep-processes", "keeper", "--verify", "true", "--kill-grace", "2")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *words).finish()
    assert done.code == 0, done.err
    assert (workspace.path / "lived").exists(), "between two iterations"
    assert alive(nursery.pid("keeper")), "after the run"
    assert alive(nursery.pid("keeper-child"))


@pytest.mark.real
def test_kept_daemon_that_holds_the_output_does_not_delay_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    start = keeper(workspace).replace("> /dev/null 2>&1", "")
    agent = workspace.agent(start + SUCCESS)
    done = nursery.start(
        workspace, "work", "--ai-cmd", agent, "--keep-processes", "keeper"
    ).finish()
    assert done.code == 0, done.err
    assert done.seconds < 10
    assert alive(nursery.pid("keeper"))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("pattern", ["agent.sh", "*"])
def test_agent_itself_is_never_kept(workspace: Workspace, nursery: Nursery, pattern: str) -> None:
    agent = workspace.agent(f"trap 'exit 0' TERM; echo $$ > agent.pid; {LOOP}")
    clocks = ("-n", "1", "--iteration-timeout", "4", "--kill-grace", "2")
    words = ("--keep-processes", pattern)
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *clocks, *words).finish()
    assert done.code == 2, done.err
    assert not alive(nursery.pid("agent"))


@pytest.mark.real
def test_process_matched_by_a_glob_is_kept(workspace: Workspace, nursery: Nursery) -> None:
    agent = workspace.agent(keeper(workspace) + OTHER + SUCCESS)
    words = ("--keep-processes", "nothing", "--keep-processes", "*/kee?er", "--kill-grace", "2")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *words).finish()
    assert done.code == 0, done.err
    assert alive(nursery.pid("keeper"))
    assert not alive(nursery.pid("other"))


@pytest.mark.real
def test_kept_daemon_survives_sigkill_of_rooda(workspace: Workspace, nursery: Nursery) -> None:
    agent = workspace.agent(keeper(workspace) + OTHER + "echo $$ > agent.pid; sleep 600")
    running = nursery.start(workspace, "work", "--ai-cmd", agent, "--keep-processes", "keeper")
    leader = nursery.pid("agent")
    running.signal(signal.SIGKILL)
    until(lambda: not alive(leader) and not alive(nursery.pid("other")), "the others exit")
    assert alive(nursery.pid("keeper"))
    assert alive(nursery.pid("keeper-child"))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("stubborn", [False, True], ids=["obedient", "stubborn"])
def test_kept_daemon_survives_when_other_processes_are_killed(
    workspace: Workspace,
    nursery: Nursery,
    stubborn: bool,  # noqa: FBT001
) -> None:
    trap = 'trap "" TERM; ' if stubborn else ""
    other = f"sh -c '{trap}echo $$ > other.pid; while :; do sleep 0.1; done' > /dev/null 2>&1 & "
    ready = "while ! test -s other.pid; do sleep 0.01; done; "
    agent = workspace.agent(keeper(workspace) + other + ready + SUCCESS)
    words = ("--keep-processes", "keeper", "--kill-grace", "0.5")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *words).finish()
    assert done.code == 0, done.err
    assert alive(nursery.pid("keeper"))
    assert alive(nursery.pid("keeper-child"))
    assert not alive(nursery.pid("other"))


# -- without a subreaper: process group and sweep, as on macOS -----------------------------


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    nursery = Nursery(tmp_path)
    try:
        with studio_in(tmp_path, contain="sweep") as found:
            yield found
    finally:
        nursery.clear()


# Each is a background process that writes its pid when it is ready.
CHILDREN = {
    "group": f"sh -c 'echo $$ > left.pid; {LOOP}' &",
    "session": f"setsid sh -c 'echo $$ > left.pid; {LOOP}' &",
    "stubborn": f"sh -c 'trap \"\" TERM; echo $$ > left.pid; {LOOP}' &",
    "stubborn session": f"setsid sh -c 'trap \"\" TERM; echo $$ > left.pid; {LOOP}' &",
    "daemon": f"setsid sh -c \"sh -c 'echo \\$\\$ > left.pid; {LOOP}' &\";",
    "closed streams": f"sh -c 'exec >&- 2>&- <&-; echo $$ > left.pid; {LOOP}' &",
    "stopped": "sh -c 'echo $$ > left.pid; kill -STOP $$; sleep 60' &",
}
READY = "while ! test -s left.pid; do sleep 0.01; done; "
KINDS = pytest.mark.parametrize("kind", CHILDREN)
FIRST_KINDS = pytest.mark.parametrize(
    "kind",
    [
        kind
        if kind in ("group", "session", "stubborn session")
        else pytest.param(kind, marks=pytest.mark.long)
        for kind in CHILDREN
    ],
)


def left(folder: Path) -> int:
    return int(wait_for(folder / "left.pid"))


@pytest.mark.real(rows=1)
@KINDS
def test_sweep_stops_background_processes_after_a_clean_exit(studio: Studio, kind: str) -> None:
    body = f"{CHILDREN[kind]} {READY} echo done; exit 3"
    capture: Capture = "file" if "session" in kind else "pipe"
    result = studio.sh(body, capture, kill_grace=0.4 if "stubborn" in kind else 20)
    assert result.exit == Exited(3)
    assert result.stdout.tail == b"done\n"
    pid = left(studio.folder)
    assert not alive(pid)
    assert pid in {named.pid for named in result.cleaned_up}
    assert len(studio.events_of(LeftoversStopped)) == 1
    assert len(studio.events_of(ProcessKilled)) == ("stubborn" in kind)
    assert result.survivors == ()


@pytest.mark.real(rows=1)
@FIRST_KINDS
def test_sweep_stops_all_processes_on_timeout(studio: Studio, kind: str) -> None:
    hours = 0.0
    studio.interrupts.stopwatch = Stopwatch(lambda: time.monotonic() + hours * 3600)

    def let_time_pass(event: Event) -> None:
        nonlocal hours
        hours += isinstance(event, Output)

    body = f"{CHILDREN[kind]} {READY} echo ready; exec sleep 60"
    result = studio.sh(body, "pipe", let_time_pass, timeout=3600, kill_grace=0.4)
    assert isinstance(result.exit, TimedOut)
    assert (result.exit.clock, result.exit.after) == ("iteration_timeout", 3600)
    assert not alive(left(studio.folder))
    assert not alive(studio.pid)
    assert result.survivors == ()


RUNNER = """
import os, sys
from pathlib import Path
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest
from rooda.world.process.runner import Runner
with Runner("killed", contain="sweep") as runner, open(os.devnull, "rb") as stdin:
    request = ProcessRequest(("sh", "-c", sys.argv[1]), Path.cwd(), os.environ, stdin, 1024)
    runner.run(request, Interrupts(), lambda event: None)
"""


@pytest.mark.real(rows=1)
@FIRST_KINDS
def test_sweep_stops_all_processes_when_the_runner_is_killed(tmp_path: Path, kind: str) -> None:
    nursery = Nursery(tmp_path)
    body = f"{CHILDREN[kind]} {READY} echo $PPID > warden.pid; echo $$ > agent.pid; exec sleep 60"
    command = [sys.executable, "-c", RUNNER, body]
    nursery.started.append(subprocess.Popen(command, cwd=tmp_path, text=True))
    try:
        agent, child, warden = (nursery.pid(name) for name in ("agent", "left", "warden"))
        os.kill(nursery.started[0].pid, signal.SIGKILL)
        until(lambda: not any(map(alive, (agent, child, warden))), "all of them exit")
    finally:
        nursery.clear()


@pytest.mark.real
def test_sweep_keeps_matching_processes(studio: Studio) -> None:
    (studio.folder / "keeper").write_text(f"#!/bin/sh\necho $$ > keeper.pid; {LOOP}\n")
    (studio.folder / "keeper").chmod(0o755)
    start = "setsid ./keeper & while ! test -s keeper.pid; do sleep 0.01; done; "
    result = studio.sh(f"{start} {CHILDREN['group']} {READY}", "pipe", keep=("keeper",))
    assert result.exit == Exited(0)
    assert not alive(left(studio.folder))
    assert alive(int((studio.folder / "keeper.pid").read_text()))


@pytest.mark.real
def test_sweep_ignores_unmarked_processes_and_those_of_other_runs(studio: Studio) -> None:
    environ = {**os.environ, "ROODA_RUN": "another"}
    strangers = [subprocess.Popen(["sleep", "60"], env=env) for env in (None, environ)]
    try:
        studio.sh(f"{CHILDREN['session']} {READY}", "pipe")
        assert not alive(left(studio.folder))
        assert [stranger.poll() for stranger in strangers] == [None, None]
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()


# -- leftovers of an earlier run -----------------------------------------------------------

FINDER = """
import json, os, sys
from rooda.world.process.leftovers import RunTrace, find_leftovers
from rooda.world.process.tree import process_table
found = find_leftovers(RunTrace(sys.argv[1], os.getcwd()), process_table())
print(json.dumps({"found": [p.pid for p in found], "self": os.getpid(), "parent": os.getppid()}))
"""


@pytest.mark.real
def test_find_leftovers_excludes_rooda_and_its_ancestors(tmp_path: Path) -> None:
    """The agent of an earlier run may have started this rooda."""
    mark = f"ROODA_RUN=find-{os.getpid()}-{tmp_path.name}"
    name, _, value = mark.partition("=")
    body = 'sleep 60 & echo $! > left.pid; "$@" & wait $!; kill $(cat left.pid); true'
    done = subprocess.run(
        ["sh", "-c", body, "sh", sys.executable, "-c", FINDER, mark],
        cwd=tmp_path,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    seen = json.loads(done.stdout)
    assert seen["found"] == [int((tmp_path / "left.pid").read_text())]
    assert seen["self"] not in seen["found"]
    assert seen["parent"] not in seen["found"]


def is_sleep(pid: int) -> bool:
    """Whether the process has its final name: a shell's child is called `sh` before its exec."""
    found = process_table().find(pid)
    return found is not None and found.name == "sleep"


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    """A leader that has exited, and an unmarked process that it left in its session."""
    nursery = Nursery(tmp_path)
    body = "sleep 60 & echo $! > left.pid; echo $$ > leader.pid; read line"
    leader = subprocess.Popen(
        ["sh", "-c", body],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    nursery.started.append(leader)
    try:
        until(lambda: is_sleep(nursery.pid("left")), "the child runs sleep")
        first = process_table().find(nursery.pid("leader"))
        left_over = process_table().find(nursery.pid("left"))
        assert first is not None
        assert left_over is not None
        leader.communicate("go\n", timeout=20)
        yield first, left_over
    finally:
        nursery.clear()


@pytest.mark.real
def test_session_of_a_dead_leader_is_found_only_in_its_folder(
    orphan: tuple[Process, Process], tmp_path: Path
) -> None:
    leader, child = orphan
    trace = RunTrace("ROODA_RUN=no-such-run", str(tmp_path), (leader.key,))
    assert pids(find_leftovers(trace, process_table())) == {child.pid}
    assert pids(find_leftovers(replace(trace, keep=("sleep",)), process_table())) == set()
    elsewhere = replace(trace, folder=str(tmp_path / "inside"))
    assert find_leftovers(elsewhere, process_table()) == []
    beside = replace(trace, folder=str(tmp_path)[:-1])
    assert find_leftovers(beside, process_table()) == [], "a folder with the same prefix"


@pytest.mark.real
def test_leader_is_found_by_pid_and_start_time_and_never_by_pid_alone(
    orphan: tuple[Process, Process],
) -> None:
    _, child = orphan
    trace = RunTrace("ROODA_RUN=no-such-run", "/nowhere", (child.key,))
    assert pids(find_leftovers(trace, process_table())) == {child.pid}
    for started in (child.started - 1, child.started + 1):
        other = replace(trace, leaders=((child.pid, started),))
        assert find_leftovers(other, process_table()) == []
    assert find_leftovers(replace(trace, leaders=()), process_table()) == []
