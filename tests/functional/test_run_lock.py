"""One run per work tree: which starts are refused, and what an agent can't do about it."""

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rooda.base.event import Event
from rooda.base.problems import InvalidInput, problems_text
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import KEEP_PROCESSES
from rooda.run.lock import hold_run_lock
from rooda.world.git.work_tree import work_tree
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import make_state_folder
from rooda.world.state.lock import Lock, LockHeldError
from rooda.world.state.lock_note import LockNote, here, read_note
from support.children import Nursery, until
from support.finished import Finished
from support.gitrepo import git
from support.states import state_of
from support.workspace import PROCEDURE, Running, Workspace, alive, wait_for

HANGS = "echo $$ > agent.pid; exec sleep 60"
DONE = "echo '<promise>SUCCESS</promise>'"
WAITS = f"echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done; {DONE}"
# rooda writes the note while the agent starts: it would undo any earlier damage by the agent.
NOTED = "while ! grep -q $$ $STATE/run.json; do sleep 0.01; done"
BROKEN = re.compile(r"Traceback|Internal error")


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    workspace.config(PROCEDURE)
    found = Nursery(workspace.path.parent)
    yield found
    found.clear()


def running_run(workspace: Workspace, nursery: Nursery, body: str = HANGS, *args: str) -> Running:
    """Start a run, and wait until its agent is running."""
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(body), *args)
    wait_for(workspace.path / "agent.pid")
    return running


def second(workspace: Workspace, *args: str) -> Finished:
    """Start a second run, which should end soon."""
    command = workspace.agent(DONE, "second.sh")
    return workspace.rooda("work", "--ai-cmd", command, *args, timeout=30)


def is_free(folder: Path) -> bool:
    """Whether no process holds the lock; the note stays as it is."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def folder_of(workspace: Workspace, path: Path) -> Workspace:
    """A workspace in a folder that may already exist."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "rooda-config.yml").write_text(PROCEDURE)
    return Workspace(path, workspace.home)


def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    return folder


# -- the second start ----------------------------------------------------------------------


@pytest.mark.long
def test_refused_start_names_the_running_run_and_its_start_time(
    workspace: Workspace, nursery: Nursery
) -> None:
    before = time.strftime("%Y-%m-%d %H:%M")
    running = running_run(workspace, nursery)
    pid = running.process.pid
    refusal = second(workspace)
    after = time.strftime("%Y-%m-%d %H:%M")
    assert refusal.code == 1
    assert refusal.out == ""
    found = re.fullmatch(
        r"Error: another run is at work in (\S+): work, pid (\d+) on (\S+) since "
        r"(\d{4}-\d\d-\d\d \d\d:\d\d):\d\d\S*\n"
        r"  Wait until it has ended, or end it with `rooda stop` in that folder "
        r"\(--now: at once\)\n",
        refusal.err,
    )
    assert found is not None, refusal.err
    assert found.group(1, 2, 3) == (str(workspace.path), str(pid), socket.gethostname())
    assert before <= found[4] <= after
    running.signal(signal.SIGINT)
    assert running.finish().code == 130


@pytest.mark.long
def test_running_run_is_not_disturbed_by_a_refused_start(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = running_run(workspace, nursery, WAITS)
    assert second(workspace).code == 1
    workspace.write("go", "")
    done = running.finish()
    assert done.code == 0
    assert "WARN" not in done.err


@pytest.mark.long
def test_refused_start_in_json_names_the_running_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = running_run(workspace, nursery)
    refusal = second(workspace, "--log-format", "json")
    assert refusal.code == 1
    for part in (str(running.process.pid), socket.gethostname(), str(workspace.path)):
        assert part in refusal.err


@pytest.mark.long
def test_exactly_one_of_several_simultaneous_starts_runs(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo $$ >> started; {WAITS}")
    runs = [nursery.start(workspace, "work", "--ai-cmd", command) for _ in range(4)]
    until(lambda: sum(run.process.poll() is None for run in runs) == 1, "three are refused")
    wait_for(workspace.path / "started")
    workspace.write("go", "")
    assert sorted(run.finish().code for run in runs) == [0, 1, 1, 1]
    assert len((workspace.path / "started").read_text().split()) == 1


@pytest.mark.long
def test_next_run_may_start_after_a_clean_end(workspace: Workspace, nursery: Nursery) -> None:
    assert nursery.folder.is_dir()
    for _ in range(2):
        done = second(workspace)
        assert done.code == 0
        assert "WARN" not in done.err
        assert not (workspace.state / "run.json").exists()


@pytest.mark.long
def test_sigkill_of_rooda_releases_the_lock_at_once(workspace: Workspace, nursery: Nursery) -> None:
    running = running_run(workspace, nursery, f"trap '' TERM; {HANGS.replace('exec ', '')}")
    agent = int((workspace.path / "agent.pid").read_text())
    running.process.kill()
    running.process.wait()
    # The warden and the agent may still run for a moment, but they do not hold the lock.
    assert is_free(workspace.path)
    done = second(workspace)
    assert done.code == 0
    assert not alive(agent)


@pytest.mark.long
def test_background_process_of_the_agent_does_not_hold_the_lock(
    workspace: Workspace, nursery: Nursery
) -> None:
    keep = ("--keep-processes", "sleep")
    # The shell's child is called `sh` until it runs exec: only then the pattern matches it.
    is_sleep = "until grep -q ^sleep /proc/$!/cmdline || [ ! -e /proc/self ]; do sleep 0.01; done"
    body = f"sleep 60 > /dev/null 2>&1 & echo $! > kept.pid; {is_sleep}; {DONE}"
    command = workspace.agent(body)
    assert workspace.rooda("work", "--ai-cmd", command, *keep).code == 0
    assert alive(int(wait_for(workspace.path / "kept.pid")))
    assert second(workspace).code == 0
    assert nursery.folder.is_dir()


@pytest.mark.long
def test_commands_that_start_no_run_are_not_refused(workspace: Workspace, nursery: Nursery) -> None:
    running = running_run(workspace, nursery, f"{NOTED}; {HANGS}")
    note = (workspace.state / "run.json").read_text()
    assert second(workspace, "--dry-run").code == 0
    assert workspace.rooda("config", "show").code == 0
    assert (workspace.state / "run.json").read_text() == note
    assert running.process.poll() is None


# -- damage by the agent -------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("rm -rf $STATE", id="deleted"),
        pytest.param(
            "rm -f $STATE/run.json; mkdir $STATE/run.json", id="replaced", marks=pytest.mark.long
        ),
    ],
)
def test_lock_survives_damage_to_the_note(
    workspace: Workspace, nursery: Nursery, damage: str
) -> None:
    running = running_run(workspace, nursery, f"{NOTED}; {damage}; {HANGS}")
    refusal = second(workspace)
    assert refusal.code == 1
    assert "another run is at work" in refusal.err
    if sys.platform == "linux":  # the kernel also knows the pid
        assert f"pid {running.process.pid}" in refusal.err
    running.signal(signal.SIGINT)
    assert running.finish().code == 130


@pytest.mark.long
def test_note_is_written_again_in_the_next_iteration(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agents(f"{NOTED}; rm -rf $STATE", f"{NOTED}; {HANGS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    wait_for(workspace.path / "agent.pid")
    refusal = second(workspace)
    assert refusal.code == 1
    assert f"work, pid {running.process.pid} on {socket.gethostname()} since " in refusal.err


# -- which folders exclude each other ------------------------------------------------------


@pytest.mark.long
def test_two_folders_of_one_repository_exclude_each_other(
    workspace: Workspace, nursery: Nursery
) -> None:
    top = repository(workspace.path.parent / "repo")
    one, two = folder_of(workspace, top / "one"), folder_of(workspace, top / "deep" / "two")
    running = running_run(one, nursery)
    refusal = second(two)
    assert refusal.code == 1
    assert f"at work in {top}: work, pid {running.process.pid} on " in refusal.err
    for folder in (top, one.path, two.path):
        assert excludes(folder)


def excludes(folder: Path) -> bool:
    """Whether another process holds the lock of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        Lock(folder, state=state_of(folder)).close()
    except LockHeldError:
        return True
    return False


@pytest.mark.git
def test_two_work_trees_of_one_repository_do_not_exclude_each_other(tmp_path: Path) -> None:
    top = repository(tmp_path / "repo")
    git(top, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(top, "worktree", "add", "-q", str(top / "inside"))
    with contextlib.closing(Lock(top, state=state_of(top))):
        assert not excludes(tmp_path / "linked")
        assert not excludes(top / "inside" / "src")
        assert excludes(top / "src")
    with contextlib.closing(Lock(top / "inside", state=state_of(top / "inside"))):
        assert not excludes(top)
        assert excludes(top / "inside" / "src")


@pytest.mark.git
def test_submodule_is_its_own_work_tree(tmp_path: Path) -> None:
    top, library = repository(tmp_path / "repo"), repository(tmp_path / "library")
    git(top, "submodule", "--quiet", "add", str(library), "lib")
    assert (top / "lib" / ".git").is_file()
    with contextlib.closing(Lock(top / "lib", state=state_of(top / "lib"))):
        assert excludes(top / "lib" / "src")
        assert not excludes(top)
        assert not excludes(library)


def test_two_unrelated_folders_do_not_exclude_each_other(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with contextlib.closing(Lock(work, state=state_of(work))):
        assert excludes(work)
        assert not excludes(tmp_path / "other")
        # Without git, a folder inside of a locked folder has its own lock.
        assert not excludes(work / "below")
        assert not excludes(tmp_path)


def test_symlink_and_dots_lead_to_the_same_lock(tmp_path: Path) -> None:
    work, link = tmp_path / "work", tmp_path / "link"
    work.mkdir()
    link.symlink_to(work)
    with contextlib.closing(Lock(work, state=state_of(work))):
        assert excludes(link)
        assert excludes(work / "below" / "..")


@pytest.mark.parametrize(
    "make",
    [
        lambda git: git.mkdir(),
        lambda git: git.touch(),
        lambda git: git.write_text("gitdi"),
        lambda git: git.write_bytes(b"\xff" * 100),
        lambda git: git.symlink_to("nowhere"),
        lambda git: git.symlink_to(git),
        os.mkfifo,
    ],
    ids=["empty folder", "empty", "cut off", "garbage", "dangling", "loop", "fifo"],
)
def test_broken_git_entry_is_no_repository(tmp_path: Path, make: Callable[[Path], object]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    make(folder / ".git")
    assert work_tree(folder) == folder


# -- stale notes ---------------------------------------------------------------------------


def note_of(workspace: Workspace, /, **values: Any) -> dict[str, Any]:
    """A note as an earlier run of this boot would leave it."""
    host, boot = here()
    return {
        "run": "20200101-000000-abcdef",
        "procedure": "work",
        "pid": 4_000_000,
        "started": 1.5,
        "since": "2020-01-01T00:00:00+00:00",
        "workspace": str(workspace.path),
        "host": host,
        "boot": boot,
        "agents": [],
        "keep": [],
        **values,
    }


def start_events(workspace: Workspace) -> list[Event]:
    """The events of a start, from taking the lock to the begin of the loop."""
    values = {KEEP_PROCESSES: ()}
    names = ("workspace", "root", "working_dir", "started_in")
    folders = dict.fromkeys(names, workspace.path)
    more = {"values": values, "environ": {}, "state": workspace.state}
    plan = SimpleNamespace(**folders, **more, procedure="work")
    events: list[Event] = []
    with hold_run_lock(cast("Plan", plan)) as lock:
        lock.clear_what_is_left(events.append)
    return events


@pytest.fixture
def bystander(nursery: Nursery) -> Iterator[tuple[int, float]]:
    """An unrelated process that a note may name; its pid and start time."""
    assert nursery.folder.is_dir()
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    started = start_time(process.pid)
    assert started is not None
    yield process.pid, started
    process.kill()
    process.wait()


def write_note(workspace: Workspace, note: object) -> Path:
    return workspace.write(f"{workspace.state}/run.json", json.dumps(note))


@pytest.mark.real
def test_agent_named_in_a_stale_note_is_stopped(
    workspace: Workspace, bystander: tuple[int, float]
) -> None:
    """Without this, the tests below would prove nothing."""
    write_note(workspace, note_of(workspace, agents=[bystander]))
    done = second(workspace)
    assert done.code == 0
    assert "An earlier run was killed here" in done.err
    assert f"sleep 60 (pid {bystander[0]})" in done.err
    assert not alive(bystander[0])


@pytest.mark.real
def test_agent_of_a_killed_run_that_made_its_folder_a_repository_is_stopped(
    workspace: Workspace, bystander: tuple[int, float]
) -> None:
    write_note(workspace, note_of(workspace, agents=[bystander]))
    nested = folder_of(workspace, workspace.path / "nested")
    nested.write(".git/HEAD", "ref: refs/heads/main\n")
    nested.write(f"{nested.state}/rooda.db", "")
    assert len(start_events(nested)) == 1
    assert not alive(bystander[0])


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "values",
    [
        {"boot": "00000000-0000-0000-0000-000000000000"},
        {"boot": ""},
        {"host": "elsewhere"},
        {"host": ""},
    ],
    ids=["another boot", "no boot", "another host", "no host"],
)
def test_note_of_another_boot_or_host_is_ignored(
    workspace: Workspace, bystander: tuple[int, float], values: dict[str, str]
) -> None:
    write_note(workspace, note_of(workspace, agents=[bystander], **values))
    assert start_events(workspace) == []
    assert alive(bystander[0])


@pytest.mark.long
def test_start_after_a_reboot_stops_no_process(
    workspace: Workspace, bystander: tuple[int, float]
) -> None:
    write_note(workspace, note_of(workspace, agents=[bystander], boot="another"))
    done = second(workspace)
    assert done.code == 0
    assert "earlier run" not in done.err
    assert alive(bystander[0])


@pytest.mark.real
def test_reused_pid_is_not_stopped(workspace: Workspace, bystander: tuple[int, float]) -> None:
    pid, started = bystander
    write_note(workspace, note_of(workspace, agents=[(pid, started - 1)], pid=pid))
    assert start_events(workspace) == []
    assert alive(pid)


GARBAGE = {
    "empty": b"",
    "not JSON": b"not json",
    "cut off": b'{"run": "a", "pid": 1',
    "binary": bytes(range(256)),
    "null": b"null",
    "list": b"[1, 2]",
    "string": b'"run"',
    "number": b"4711",
    "empty object": b"{}",
    "deep": b"[" * 30_000,
    "huge": b"x" * 5_000_000,
    "huge and valid": b'{"run": "' + b"x" * 1_000_000 + b'"}',
    "zeros": b"\0" * 100_000,
}


def refusal(workspace: Workspace, note: object) -> str:
    """The error message of a second start that finds this note."""
    with contextlib.closing(Lock(workspace.path, state=workspace.state)):
        write_note(workspace, note)
        with pytest.raises(InvalidInput) as found:
            start_events(workspace)
    return problems_text(found.value.problems)


def test_control_codes_in_a_note_do_not_reach_the_terminal(workspace: Workspace) -> None:
    note = note_of(workspace, procedure="\x1b[2J\x07wiped", host="\x9b2J\rhere")
    message = refusal(workspace, note)
    assert "another run is at work" in message
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", message)


@pytest.mark.parametrize("pid", [-1, 0])
def test_invalid_pid_in_a_note_gives_no_dangerous_advice(workspace: Workspace, pid: int) -> None:
    """`kill -1` would kill all processes of the user."""
    assert not re.search(r"kill (-|0)", refusal(workspace, note_of(workspace, pid=pid)))


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_in_the_note_is_ignored(workspace: Workspace, kind: str) -> None:
    workspace.write(f"{workspace.state}/run.json", GARBAGE[kind])
    assert read_note(workspace.state) is None
    assert start_events(workspace) == []


@pytest.mark.parametrize("kind", GARBAGE)
def test_second_start_is_refused_despite_garbage_in_the_note(
    workspace: Workspace, kind: str
) -> None:
    lock = Lock(workspace.path, state=workspace.state)
    workspace.write(f"{workspace.state}/run.json", GARBAGE[kind])
    with pytest.raises(InvalidInput):
        start_events(workspace)
    lock.close()


@pytest.mark.real
def test_run_starts_despite_garbage_in_the_note(workspace: Workspace, nursery: Nursery) -> None:
    assert nursery.folder.is_dir()
    workspace.write(f"{workspace.state}/run.json", GARBAGE["huge"])
    done = second(workspace)
    assert done.code == 0
    assert not BROKEN.search(done.err)


INVALID: dict[str, dict[str, Any]] = {
    "infinite pid": {"pid": float("inf")},
    "pid is not a number": {"pid": float("nan")},
    "pid of a hundred digits": {"pid": 10**100},
    "infinite pid of an agent": {"agents": [[float("inf"), 0]]},
    "start time of four hundred digits": {"agents": [[1, 10**400]]},
    "agent of three parts": {"agents": [[1, 2, 3]]},
    "agents are a string": {"agents": "ab"},
    "agents are a number": {"agents": 5},
    "negative pid of an agent": {"agents": [[-1, 0]]},
    "run that can't be encoded": {"run": "\ud800"},
    "null byte in the run": {"run": "a\0b"},
    "null byte in the folder": {"workspace": "/a\0b"},
    "folder that can't be encoded": {"workspace": "/\ud800"},
    "folder that is too long": {"workspace": "/" + "x" * 5000},
    "empty folder": {"workspace": ""},
    "empty run": {"run": ""},
    "patterns are a number": {"keep": 5},
    "invalid patterns": {"keep": ["[", None, 3]},
    "lists instead of strings": {key: [] for key in ("run", "procedure", "since", "workspace")},
}


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("kind", INVALID)
def test_note_with_invalid_values_changes_nothing(
    workspace: Workspace, bystander: tuple[int, float], kind: str
) -> None:
    write_note(workspace, note_of(workspace, **INVALID[kind]))
    assert start_events(workspace) == []
    assert alive(bystander[0])


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").touch()


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def _precious(path: Path) -> None:
    path.symlink_to(path.parent.parent / "precious")


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        # The address of a socket is limited to about 100 bytes: bind by a short name.
        fd = os.open(path.parent, os.O_RDONLY)
        try:
            end.bind(f"/proc/self/fd/{fd}/{path.name}")
        finally:
            os.close(fd)


def _unreadable(path: Path) -> None:
    path.touch(0o000)


KINDS = [_folder, _loop, _dangling, _precious, _endless, _unreadable]
if sys.platform == "linux":
    KINDS.append(_socket)


@pytest.mark.parametrize("name", ["run.json", "run.new"])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__.strip("_"))
def test_other_file_in_place_of_the_note_does_no_harm(
    workspace: Workspace, make: Callable[[Path], None], name: str
) -> None:
    precious = workspace.write("precious", "do not touch\n")
    make_state_folder(workspace.state)
    make(workspace.state / name)
    assert start_events(workspace) == []
    assert precious.read_text() == "do not touch\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["run.json", "run.new"])
def test_fifo_in_place_of_the_note_does_not_block_a_start(
    workspace: Workspace, nursery: Nursery, name: str
) -> None:
    make_state_folder(workspace.state)
    os.mkfifo(workspace.state / name)
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(DONE))
    assert running.finish(timeout=20).code == 0


@pytest.mark.long
def test_fifo_in_place_of_the_note_does_not_block_a_refused_start(
    workspace: Workspace, nursery: Nursery
) -> None:
    replaced = "rm -f $STATE/run.json; mkfifo $STATE/run.json"
    running_run(workspace, nursery, f"{NOTED}; {replaced}; {HANGS}")
    refusal = nursery.start(workspace, "work", "--ai-cmd", "true").finish(timeout=20)
    assert refusal.code == 1
    assert "another run is at work" in refusal.err


# -- the lock itself -----------------------------------------------------------------------


def test_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    run, pid = "20200101-000000-abcdef", os.getpid()
    started = start_time(pid) or 0.0
    note = LockNote(run, "work", pid, started, "now", str(tmp_path), *here(), ((1, 2.5),), ("x*",))
    lock = Lock(tmp_path, state=state_of(tmp_path))
    lock.write(note)
    with pytest.raises(LockHeldError) as taken:
        Lock(tmp_path, state=state_of(tmp_path))
    assert taken.value.top == tmp_path
    assert taken.value.note == note == read_note(state_of(tmp_path))
    if sys.platform == "linux":
        assert taken.value.pid == os.getpid()
    lock.close()
    Lock(tmp_path, state=state_of(tmp_path)).close()
    assert read_note(state_of(tmp_path)) is None


@pytest.mark.real
def test_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path, state=state_of(tmp_path))
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock.close()
        Lock(tmp_path, state=state_of(tmp_path)).close()
    finally:
        child.kill()
        child.wait()


def test_missing_folder_can_not_be_locked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lock(tmp_path / "nowhere", state=state_of(tmp_path / "nowhere"))
