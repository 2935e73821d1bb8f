"""Faults of the machine and of the agent: rooda ends cleanly, loses no outcome and never hangs.

Each test calls `check`: no traceback, the right exit code, no process left.
"""

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from rooda.world.state.folder import make_state_folder
from support.children import Nursery, until
from support.faults import (
    Stranger,
    a_stranger,
    agent_by_turns,
    check,
    limited,
    powerless,
    processes_of,
    require,
    small_disk,
    starts_with,
    turns,
)
from support.finished import Finished
from support.workspace import PROCEDURE, ROODA, Running, Workspace, alive, wait_for

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc"),
]


def rarely(*values: object) -> list[ParameterSet]:
    """Parameters that add little; only slow runs use them."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


BOTH_CAPTURES = pytest.mark.parametrize("capture", ["pipe", "file"])
CAPTURES = pytest.mark.parametrize("capture", ["file", *rarely("pipe")])
SUCCESS = "echo '<promise>SUCCESS</promise>'"
READ_THEN_SUCCESS = f'cat > "$home/got"; {SUCCESS}'
# rooda writes the note of the run while the agent starts: it would undo any earlier damage.
NOTED = 'while ! grep -q "\\[$$," $STATE/run.json; do sleep 0.01; done'
# The folder of the first iteration, and that of the next one.
KEPT, NEXT = (f"$STATE/runs/$ROODA_RUN/{iteration}" for iteration in (1, 2))
FILL = "cat /dev/zero > big 2>/dev/null || :"


@pytest.fixture
def nursery(tmp_path: Path, workspace: Workspace) -> Iterator[Nursery]:
    """Kill the processes that a failed test leaves, a stopped warden too."""
    found = Nursery(tmp_path)
    workspace.config(PROCEDURE)
    yield found
    found.clear()
    for pid in processes_of(workspace):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with a_stranger(PROCEDURE) as found:
        yield found


def begin(
    nursery: Nursery,
    workspace: Workspace,
    agent: str,
    *args: str,
    before: tuple[str, ...] = ("env",),
) -> Running:
    return nursery.start(workspace, "work", "--ai-cmd", agent, *args, before=before)


def work(
    nursery: Nursery,
    workspace: Workspace,
    agent: str,
    *args: str,
    before: tuple[str, ...] = ("env",),
) -> Finished:
    return begin(nursery, workspace, agent, *args, before=before).finish()


def got_its_prompt(workspace: Workspace) -> bool:
    return (workspace.home / "got").read_text().startswith("# OODA Loop Iteration")


# -- the state folder ------------------------------------------------------------------------


@pytest.mark.long
@BOTH_CAPTURES
def test_state_folder_deleted_during_an_iteration_does_no_harm(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    """The next iteration works, and later output counts."""
    delete = f"{NOTED}; rm -rf $STATE"
    agent = agent_by_turns(
        workspace, f"{delete}; echo said", f'cat > "$home/got"; {delete}; {SUCCESS}'
    )
    done = work(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 0)
    assert got_its_prompt(workspace)
    warnings = [line for line in done.log if line.startswith("WARN")]
    expected = ("rooda.db` was deleted or replaced", "the earlier snapshots were deleted")
    assert all(any(one in line for one in expected) for line in warnings), warnings


IN_THE_WAY = {
    "file": "echo mine > $STATE",
    "dangling link": "ln -s nowhere $STATE",
    "link to itself": "ln -s $STATE $STATE",
    "FIFO": "mkfifo $STATE",
}


@pytest.mark.long
@CAPTURES
@pytest.mark.parametrize("thing", IN_THE_WAY)
def test_other_file_in_place_of_the_state_folder_is_a_warning(
    workspace: Workspace, nursery: Nursery, thing: str, capture: str
) -> None:
    damage = f"{NOTED}; rm -rf $STATE; {IN_THE_WAY[thing]}; echo said"
    agent = agent_by_turns(workspace, damage, READ_THEN_SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 0)
    assert "WARN: The state folder can't be written; a temporary file is used instead" in done.err
    assert got_its_prompt(workspace)
    if thing == "file":
        assert (workspace.state).read_text() == "mine\n"


@pytest.mark.real(rows=1)
@CAPTURES
@pytest.mark.parametrize(
    "damage",
    [
        "chmod 000 $STATE",
        *rarely("chmod 500 $STATE/runs/$ROODA_RUN", "chmod 500 $STATE", "chmod 500 ."),
    ],
)
def test_state_folder_without_permissions_is_a_warning_at_most(
    workspace: Workspace, nursery: Nursery, damage: str, capture: str
) -> None:
    agent = agent_by_turns(workspace, f"{NOTED}; {damage}; echo said", READ_THEN_SUCCESS)
    try:
        done = work(nursery, workspace, agent, "--capture", capture, before=powerless())
    finally:
        workspace.path.chmod(0o755)
        (workspace.state).chmod(0o700)
        workspace.kept().parent.chmod(0o700)
    check(done, workspace, 0)
    assert got_its_prompt(workspace)
    if damage not in ("chmod 500 $STATE", "chmod 500 ."):  # the run's own folder stays writable
        assert "WARN: The state folder can't be written; a temporary file" in done.err
        assert "Permission denied" in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("mode", ["500", *rarely("000")])
def test_state_folder_without_permissions_at_the_start_is_named(
    workspace: Workspace, nursery: Nursery, mode: str
) -> None:
    folder = workspace.state
    make_state_folder(folder)
    folder.chmod(int(mode, 8))
    try:
        done = work(nursery, workspace, "true", before=powerless())
    finally:
        folder.chmod(0o700)
    check(done, workspace, 1)
    assert f"the record can't be written to {folder}" in done.err
    assert "Set ROODA_STATE_HOME" in done.err


# -- damage to the files in the state folder -------------------------------------------------


def replace_file(name: str, make: str) -> str:
    """Replace a file, in this iteration and in the next."""
    return f"rm {KEPT}/{name}; mkdir {NEXT}; for at in {KEPT} {NEXT}; do {make} $at/{name}; done"


DAMAGES = {
    "FIFO for the next note": "mkfifo $STATE/run.new",
    "empty transcript": f": > {KEPT}/stdout.log",
    "folder for a transcript": replace_file("stdout.log", "mkdir"),
}
MORE_DAMAGES = {
    "garbage in the note": "head -c 99999 /dev/urandom > $STATE/run.json",
    "other JSON in the note": "echo '{\"run\": [[]]}' > $STATE/run.json",
    "FIFO for the note": "rm $STATE/run.json; mkfifo $STATE/run.json",
    "folder for the note": "rm $STATE/run.json; mkdir -p $STATE/run.json/x",
    "folder for the next note": "mkdir -p $STATE/run.new/x",
    "folder for the prompt": replace_file("prompt.md", "mkdir"),
    "more in the transcript": f"echo more >> {KEPT}/stdout.log",
    "hole in the transcript": f"truncate -s 1M {KEPT}/stdout.log",
    "FIFO for a transcript": replace_file("stdout.log", "mkfifo"),
    "file for the next folder": f"echo > {NEXT}",
    "FIFO for the next folder": f"mkfifo {NEXT}",
    "file for the runs": "rm -r $STATE/runs; echo > $STATE/runs",
}


@pytest.mark.long
@CAPTURES
@pytest.mark.parametrize("damage", [*DAMAGES, *rarely(*MORE_DAMAGES)])
def test_damage_by_the_agent_to_the_state_folder_changes_nothing(
    workspace: Workspace, nursery: Nursery, damage: str, capture: str
) -> None:
    """Neither the agent's later output nor the next iterations suffer."""
    harm = f"echo before; {NOTED}; {(DAMAGES | MORE_DAMAGES)[damage]}; echo said"
    agent = agent_by_turns(workspace, harm, "echo next", SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture, "-v")
    check(done, workspace, 0)
    assert turns(workspace) == 3
    assert "said" in done.out


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "file,make",
    [
        ("run.json", os.mkfifo),
        ("run.new", os.mkfifo),
        *(
            pytest.param(file, make, marks=pytest.mark.long)
            for file in ("runs", "git", "rooda.db", "rooda.db-wal", "rooda.db-shm")
            for make in (os.mkfifo, os.mkdir, Path.touch)
        ),
    ],
)
def test_other_files_in_the_state_folder_do_not_block_a_start(
    workspace: Workspace, nursery: Nursery, file: str, make: Callable[[Path], None]
) -> None:
    make_state_folder(workspace.state)
    make(workspace.state / file)
    check(work(nursery, workspace, agent_by_turns(workspace, READ_THEN_SUCCESS)), workspace, 0)
    assert got_its_prompt(workspace)


@pytest.mark.long
def test_huge_sparse_transcript_does_not_block_ctrl_c(
    workspace: Workspace, nursery: Nursery
) -> None:
    grow = f'truncate -s 4T {KEPT}/stdout.log && echo > "$home/grown"'
    agent = agent_by_turns(workspace, f"{grow}; {SUCCESS}")
    running = begin(nursery, workspace, agent, "--capture", "file", "-n", "1")
    wait_for(workspace.home / "grown")
    leader = workspace.home / "agent.sh"
    until(lambda: not _named(workspace, str(leader)), "the agent exits")
    running.signal(signal.SIGINT)
    check(running.finish(), workspace, 0, 130)


def _named(workspace: Workspace, word: str) -> list[int]:
    found = []
    for pid in processes_of(workspace):
        with contextlib.suppress(OSError):
            if os.fsencode(word) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2]:
                found.append(pid)
    return found


# -- the workspace ---------------------------------------------------------------------------


@pytest.mark.long
@CAPTURES
def test_output_after_the_workspace_was_deleted_counts(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f'{NOTED}; rm -rf "$PWD"; {SUCCESS}')
    done = work(nursery, workspace, agent, "--capture", capture, "-n", "1")
    check(done, workspace, 0)
    assert not workspace.path.exists(), "rooda does not create it again"


@pytest.mark.real(rows=1)
@CAPTURES
def test_run_without_its_workspace_ends_and_names_it(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f'{NOTED}; rm -rf "$PWD"', SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 1)
    assert f"{workspace.path}: No such file or directory" in done.err
    assert turns(workspace) == 1


@pytest.mark.long
@BOTH_CAPTURES
def test_workspace_that_was_deleted_and_created_again_is_used(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(
        workspace, f'{NOTED}; d=$PWD; rm -rf "$d"; mkdir "$d"', READ_THEN_SUCCESS
    )
    done = work(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 0)
    assert got_its_prompt(workspace)


@pytest.mark.real
def test_working_folder_deleted_between_iterations_is_named(
    workspace: Workspace, nursery: Nursery
) -> None:
    folder = workspace.path / "sub"
    folder.mkdir()
    agent = agent_by_turns(workspace, 'rmdir "$PWD"', SUCCESS)
    done = work(nursery, workspace, agent, "--working-dir", "sub")
    check(done, workspace, 1)
    assert f"{folder}: No such file or directory" in done.err


@pytest.mark.long
@CAPTURES
@pytest.mark.parametrize(
    "name",
    [
        b"with spaces \xff\xfe no utf-8",
        b"/".join([b"x" * 250] * 12),
        *rarely(
            "grüße 🎉 日本".encode(),
            b'quote\'s "and" $HOME `x`',
            b"\x1b[31mred\nline",
            b"/".join([b"x" * 120] * 2),
        ),
    ],
    ids=["bytes", "3000", "unicode", "quotes", "controls", "240"],
)
def test_workspace_may_have_any_path(
    workspace: Workspace, nursery: Nursery, name: bytes, capture: str
) -> None:
    path = workspace.path / os.fsdecode(name)
    path.mkdir(parents=True)
    other = Workspace(path, workspace.home)
    other.config(PROCEDURE)
    agent = other.agent(f'cat > "{other.home}/got"; sleep 300 & {SUCCESS}')
    done = work(nursery, other, agent, "--capture", capture, "--log-file", "run.log")
    check(done, other, 0)
    assert got_its_prompt(other)
    assert "they were stopped processes=" in done.err
    assert "\x1b" not in done.err
    check(work(nursery, other, "./gone"), other, 1)


def start_together(
    nursery: Nursery, workspace: Workspace, number: int, agent: str
) -> list[Running]:
    """Start `number` runs, which all wait for the same file."""
    wait = ("sh", "-c", 'while ! test -e "$HOME/start"; do :; done; exec "$@"', "sh")
    started = [begin(nursery, workspace, agent, before=wait) for _ in range(number)]
    (workspace.home / "start").touch()
    return started


@pytest.mark.long
@pytest.mark.parametrize("number", [2, pytest.param(6, marks=pytest.mark.long)])
def test_exactly_one_of_several_simultaneous_starts_runs(
    workspace: Workspace, nursery: Nursery, number: int
) -> None:
    agent = agent_by_turns(workspace, f'while ! test -e "$home/go"; do sleep 0.02; done; {SUCCESS}')
    runs = start_together(nursery, workspace, number, agent)
    until(lambda: sum(one.process.poll() is None for one in runs) == 1, "all but one exit")
    (workspace.home / "go").touch()
    ends = sorted((one.finish() for one in runs), key=lambda one: one.code)
    assert turns(workspace) == 1
    check(ends[0], workspace, 0)
    for refused in ends[1:]:
        check(refused, workspace, 1)
        assert "another run is at work in" in refused.err
        assert "pid unknown" not in refused.err


# -- a full disk -----------------------------------------------------------------------------

TEMPORARY = pytest.mark.parametrize("temporary", ["work/tmp", *rarely("home")])
NO_ROOM = "no space left on"


def on_a_small_disk(
    nursery: Nursery,
    workspace: Workspace,
    agent: str,
    *args: str,
    size: str = "256k",
    then: str = ":",
    temporary: str = "home",
) -> Finished:
    (workspace.path / "tmp").mkdir(exist_ok=True)
    workspace.env["TMPDIR"] = str(workspace.path.parent / temporary)
    return work(nursery, workspace, agent, *args, before=small_disk(workspace, size, then))


@pytest.mark.real(rows=1)
@TEMPORARY
@CAPTURES
def test_full_disk_at_the_start_is_reported(
    workspace: Workspace, nursery: Nursery, capture: str, temporary: str
) -> None:
    args = ("--capture", capture)
    done = on_a_small_disk(nursery, workspace, "true", *args, then=FILL, temporary=temporary)
    check(done, workspace, 1)
    assert NO_ROOM in done.err.lower()
    assert "None" not in done.err
    assert "Free some disk space" in done.err, "the advice is not about the folder's mode"


@pytest.mark.long
def test_start_on_a_full_disk_leaves_nothing_that_stops_the_next_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    agent = agent_by_turns(workspace, SUCCESS)
    start = f"{shlex.quote(str(ROODA))} work --ai-cmd true 2>/dev/null"
    done = on_a_small_disk(nursery, workspace, agent, then=f"{FILL}; {start}; rm big")
    check(done, workspace, 0)


@pytest.mark.real(rows=1)
@TEMPORARY
@CAPTURES
def test_promise_after_the_agent_filled_its_disk_counts(
    workspace: Workspace, nursery: Nursery, capture: str, temporary: str
) -> None:
    agent = agent_by_turns(workspace, f"{FILL}; {SUCCESS}")
    args = ("--capture", capture, "-n", "1")
    done = on_a_small_disk(nursery, workspace, agent, *args, temporary=temporary)
    check(done, workspace, 0)


@pytest.mark.real(rows=1)
@TEMPORARY
@CAPTURES
def test_next_iteration_works_after_the_agent_filled_its_disk(
    workspace: Workspace, nursery: Nursery, capture: str, temporary: str
) -> None:
    agent = agent_by_turns(workspace, f"{FILL}; exit 0", READ_THEN_SUCCESS)
    args = ("--capture", capture, "-n", "2")
    done = on_a_small_disk(nursery, workspace, agent, *args, temporary=temporary)
    check(done, workspace, 0)
    assert got_its_prompt(workspace)


@pytest.mark.long
@TEMPORARY
@BOTH_CAPTURES
def test_next_iteration_works_without_space_for_a_state_folder(
    workspace: Workspace, nursery: Nursery, capture: str, temporary: str
) -> None:
    agent = agent_by_turns(workspace, f"{NOTED}; rm -rf $STATE; {FILL}; exit 0", READ_THEN_SUCCESS)
    args = ("--capture", capture, "-n", "2")
    done = on_a_small_disk(nursery, workspace, agent, *args, temporary=temporary)
    check(done, workspace, 0)
    if capture == "pipe":  # with files, rooda frees the space that it reserved
        assert "WARN: The state folder can't be written; a temporary file is used" in done.err
    assert NO_ROOM in done.err.lower()
    assert got_its_prompt(workspace)


@pytest.mark.long
@BOTH_CAPTURES
def test_disk_with_free_space_again_is_used_again(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    copy = f'cp $STATE/runs/$ROODA_RUN/3/prompt.md "$home/got"; {SUCCESS}'
    agent = agent_by_turns(workspace, f"{NOTED}; rm -rf $STATE; {FILL}; exit 0", "rm big", copy)
    done = on_a_small_disk(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 0)
    assert turns(workspace) == 3
    assert got_its_prompt(workspace)


@pytest.mark.real(rows=1)
@BOTH_CAPTURES
def test_disk_filled_by_others_during_an_iteration_loses_no_outcome(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    wait = 'echo > "$home/up"; while ! test -e "$home/full"; do sleep 0.02; done'
    agent = agent_by_turns(workspace, f"{wait}; {SUCCESS}")
    running = begin(
        nursery,
        workspace,
        agent,
        *("--capture", capture, "-n", "1"),
        before=small_disk(workspace, "256k"),
    )
    wait_for(workspace.home / "up")
    # The disk is mounted for this process only: open it through /proc.
    inside = Path(f"/proc/{running.process.pid}/root/{workspace.path}")
    with contextlib.suppress(OSError), (inside / "big").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    (workspace.home / "full").touch()
    check(running.finish(), workspace, 0)


@pytest.mark.long
@BOTH_CAPTURES
def test_transcript_without_disk_space_is_reported(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    flood = "head -c 3000000 /dev/zero | tr '\\0' x 2>/dev/null; echo"
    agent = agent_by_turns(workspace, f"{flood}; {SUCCESS}")
    args = ("--capture", capture, "-n", "1")
    done = on_a_small_disk(nursery, workspace, agent, *args)
    check(done, workspace, *((0,) if capture == "pipe" else (0, 2)))
    log = done.err.partition("Iteration 1/1 starting")[2]
    assert NO_ROOM in log.lower(), "only rooda can report it"


# -- descriptors and processes ---------------------------------------------------------------

LEAVES_A_CHILD = (
    "import os, signal, sys, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    time.sleep(300)\n"
    "print('<promise>SUCCESS</promise>')\n"
)


def few_descriptors(
    nursery: Nursery, workspace: Workspace, number: int, *args: str, agent: str | None = None
) -> None:
    if not starts_with(number):
        pytest.skip("Python does not start")
    before = limited(f"nofile={number}")
    command = agent or agent_by_turns(workspace, SUCCESS)
    done = work(nursery, workspace, command, "-n", "1", *args, before=before)
    check(done, workspace, 0, 1)
    if done.code == 1:
        assert "Too many open files" in done.err
        assert "disk" not in done.err, "the disk is not full"


@pytest.mark.long
@pytest.mark.usefixtures("unmeasured")
@CAPTURES
@pytest.mark.parametrize("number", [5, 6, 8, 11, *rarely(4, 7, 9, 10, 12, 13, 14, 15)])
def test_run_with_few_descriptors_works_or_reports_it(
    workspace: Workspace, nursery: Nursery, number: int, capture: str
) -> None:
    few_descriptors(nursery, workspace, number, "--capture", capture)


@pytest.mark.real(rows=1)
@CAPTURES
@pytest.mark.parametrize("number", [4, 5, 6, 8, 10, 12, 14, 17, 20, 24, 28, 32])
def test_busy_run_with_few_descriptors_works_or_reports_it(
    workspace: Workspace, nursery: Nursery, number: int, capture: str
) -> None:
    agent = workspace.python_agent(LEAVES_A_CHILD)
    args = ("--capture", capture, "-v", "--log-file", "run.log", "--kill-grace", "0.2")
    few_descriptors(nursery, workspace, number, *args, "--idle-timeout", "9", agent=agent)


@pytest.mark.real
def test_32_descriptors_are_enough(workspace: Workspace, nursery: Nursery) -> None:
    before = limited("nofile=32")
    done = work(nursery, workspace, agent_by_turns(workspace, SUCCESS), before=before)
    check(done, workspace, 0)
    assert "WARN" not in done.err


PARENT_OF_PARENT = "rooda=$(cut -d' ' -f4 /proc/$PPID/stat)"


@pytest.mark.real(rows=1)
@pytest.mark.usefixtures("unmeasured")
@CAPTURES
def test_running_out_of_descriptors_ends_the_run_with_a_message(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    require("prlimit")
    limit = f"{PARENT_OF_PARENT}; prlimit --pid $rooda --nofile=4:4"
    agent = agent_by_turns(workspace, f"{limit}; echo said", SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture)
    check(done, workspace, 1)
    assert "Too many open files" in done.err
    assert "Iteration 1/5 completed" in done.err


@pytest.mark.long
@pytest.mark.usefixtures("unmeasured")
@CAPTURES
@pytest.mark.parametrize("process", ["$PPID", *rarely("$rooda")], ids=["warden", "rooda"])
def test_running_out_of_descriptors_leaves_no_process_and_loses_no_outcome(
    workspace: Workspace, nursery: Nursery, process: str, capture: str
) -> None:
    require("prlimit", "setsid")
    stubborn = "trap '' TERM; echo > \\\"$home/up\\\"; while :; do sleep 1; done"
    leave = f'home="$home" setsid sh -c "{stubborn}" > /dev/null 2>&1 &'
    wait = 'while ! test -e "$home/up"; do sleep 0.02; done'
    limit = f"{PARENT_OF_PARENT}; prlimit --pid {process} --nofile=3:3"
    agent = agent_by_turns(workspace, f"{leave} {wait}; {limit}; {SUCCESS}")
    args = ("--capture", capture, "-n", "1", "--kill-grace", "0.3")
    check(work(nursery, workspace, agent, *args), workspace, 0)


@pytest.mark.real(rows=1)
@pytest.mark.usefixtures("unmeasured")
@CAPTURES
@pytest.mark.parametrize("number", [1, *rarely(2)])
def test_start_without_room_for_another_process_is_refused(
    stranger: Stranger, nursery: Nursery, number: int, capture: str
) -> None:
    """The first process is rooda, the second its warden."""
    workspace, before = stranger.workspace, (*stranger.before, *limited(f"nproc={number}"))
    agent = agent_by_turns(workspace, SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture, before=before)
    check(done, workspace, 1)
    assert "Resource temporarily unavailable" in done.err
    assert "check its limits" in done.err
    assert turns(workspace) == 0


@pytest.mark.long
@pytest.mark.usefixtures("unmeasured")
def test_three_processes_are_enough(stranger: Stranger, nursery: Nursery) -> None:
    before = (*stranger.before, *limited("nproc=3"))
    agent = stranger.workspace.agent(SUCCESS)
    check(work(nursery, stranger.workspace, agent, before=before), stranger.workspace, 0)


@pytest.mark.long
@pytest.mark.usefixtures("unmeasured")
@BOTH_CAPTURES
def test_running_out_of_processes_ends_the_run_with_a_message(
    stranger: Stranger, nursery: Nursery, capture: str
) -> None:
    require("prlimit")
    workspace = stranger.workspace
    agent = agent_by_turns(workspace, "echo said; prlimit --pid $PPID --nproc=1:1", SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture, before=stranger.before)
    check(done, workspace, 1)
    assert "Resource temporarily unavailable" in done.err
    assert "Iteration 1/5 completed" in done.err


# -- the program -----------------------------------------------------------------------------


DAMAGED_PROGRAMS = {
    'rm "$0"': "No such file or directory",
    'chmod -x "$0"': "Permission denied",
    'rm "$0"; mkdir "$0"': "Permission denied",
    'rm "$0"; mkfifo "$0"': "Permission denied",
    'rm "$0"; ln -s "$0" "$0"': "Too many levels of symbolic links",
    'rm "$0"; : > "$0"; chmod +x "$0"': "Exec format error",
    'rm "$0"; echo "#!/no/such" > "$0"; chmod +x "$0"': "No such file or directory",
    'rm "$0"; printf "\\177ELF" > "$0"; chmod +x "$0"': "Exec format error",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "damage", [*list(DAMAGED_PROGRAMS)[:2], *rarely(*list(DAMAGED_PROGRAMS)[2:])]
)
def test_program_damaged_between_iterations_is_named(
    workspace: Workspace, nursery: Nursery, damage: str
) -> None:
    agent = agent_by_turns(workspace, f"{damage}; exit 0", SUCCESS)
    done = work(nursery, workspace, agent)
    check(done, workspace, 1)
    assert f"agent.sh: {DAMAGED_PROGRAMS[damage]}" in done.err
    assert "Iteration 1/5 completed" in done.err
    assert turns(workspace) == 1


@pytest.mark.real
def test_missing_interpreter_is_a_clear_message(workspace: Workspace, nursery: Nursery) -> None:
    agent = workspace.write("agent", "#!/no/such/interpreter\n")
    agent.chmod(0o755)
    done = work(nursery, workspace, "./agent")
    check(done, workspace, 1)
    assert "./agent: No such file or directory" in done.err
    assert "#! line" in done.err


@pytest.mark.long
@CAPTURES
def test_environment_of_a_megabyte_is_passed_on(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    workspace.env |= {f"LARGE_{n}": "x" * 100_000 for n in range(10)}
    count = "env | wc -c | tr -d ' ' > \"$home/got\""
    done = work(
        nursery, workspace, agent_by_turns(workspace, f"{count}; {SUCCESS}"), "--capture", capture
    )
    check(done, workspace, 0)
    assert int((workspace.home / "got").read_text()) > 1_000_000


@pytest.mark.long
@BOTH_CAPTURES
def test_command_line_of_a_megabyte_is_passed_on(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f'echo "$*" | wc -c > "$home/got"; {SUCCESS}')
    words = " ".join(["x" * 100_000] * 10)
    workspace.config(f"loop:\n  ai_cmd: '{agent} {words}'\n{PROCEDURE}")
    done = nursery.start(workspace, "work", "--capture", capture).finish()
    check(done, workspace, 0)
    assert int((workspace.home / "got").read_text()) > 1_000_000


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    ["x" * 140_000, *rarely(" ".join(["x" * 100_000] * 9))],
    ids=["one long word", "many words"],
)
def test_too_long_command_line_is_a_short_message(
    workspace: Workspace, nursery: Nursery, words: str
) -> None:
    workspace.config(f"loop:\n  ai_cmd: 'true {words}'\n{PROCEDURE}")
    # Linux allows a quarter of the stack in total, and 128 kB for one word.
    before = limited(f"stack={2 * 1024 * 1024}")
    done = nursery.start(workspace, "work", before=before).finish()
    check(done, workspace, 1)
    assert "Argument list too long" in done.err
    assert len(done.err) < 5000, "the message must not repeat the command line"


@pytest.mark.long
@CAPTURES
def test_agent_that_hits_its_memory_limit_is_an_ordinary_failure(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    grow = "import os; x = [bytes(10**7)]\nwhile True: x.append(bytes(10**7))"
    grown = f"ulimit -v 300000; exec {shlex.quote(sys.executable)} -S -c '{grow}'"
    crash = "ulimit -c 0; ulimit -v 300000; kill -SEGV $$"
    agent = agent_by_turns(workspace, grown, crash, SUCCESS)
    done = work(nursery, workspace, agent, "--capture", capture)
    assert "Reason: exit code 1" in done.err
    assert "MemoryError" in done.err
    assert "Reason: killed by SIGSEGV" in done.err
    # rooda quotes the agent's own traceback; there must be none of rooda.
    quoted = [line for line in done.err.splitlines() if "Traceback" in line]
    assert all(line.startswith("    | ") for line in quoted)
    own = "".join(f"{line}\n" for line in done.err.splitlines() if line not in quoted)
    check(Finished(done.code, done.out, own, done.seconds), workspace, 0)


# -- the warden ------------------------------------------------------------------------------

DAEMON = (
    '(setsid sh -c \'trap "" TERM; echo > "$home/up"; while :; do sleep 1; done\' &'
    ' ) > /dev/null 2>&1; while ! test -e "$home/up"; do sleep 0.02; done'
)


@pytest.mark.long
@BOTH_CAPTURES
@pytest.mark.parametrize("then", ["sleep 300", *rarely("exit 0", "kill -KILL $$")])
def test_agent_that_kills_the_warden_fails_and_the_next_iteration_works(
    workspace: Workspace, nursery: Nursery, then: str, capture: str
) -> None:
    body = f"export home; {DAEMON}; echo said; {SUCCESS}; kill -KILL $PPID; {then}"
    agent = agent_by_turns(workspace, body, READ_THEN_SUCCESS)
    args = ("--capture", capture, "--kill-grace", "0.3", "-n", "2")
    done = work(nursery, workspace, agent, *args)
    check(done, workspace, 0)
    assert "Iteration 1/2 completed" in done.err
    assert "(failure, consecutive: 1/3)" in done.err
    assert "rooda's warden is gone" in done.err
    assert got_its_prompt(workspace)
    assert turns(workspace) == 2


# It has no mark in its environment, a session of its own, no output, and no folder of the run.
HIDDEN_DAEMON = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.chdir("/")
    os.closerange(0, 100)
    program = "import os, time; open(os.sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
    os.execve(sys.executable, [sys.executable, "-c", program, sys.argv[1]], {})
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")
def test_hidden_daemon_of_an_agent_that_kills_the_warden_is_stopped(
    workspace: Workspace, nursery: Nursery
) -> None:
    pid_file = workspace.home / "daemon.pid"
    hidden = workspace.write("hidden.py", HIDDEN_DAEMON)
    start = shlex.join([sys.executable, "-S", str(hidden), str(pid_file)])
    wait = f"while ! test -s {shlex.quote(str(pid_file))}; do sleep 0.02; done"
    agent = agent_by_turns(workspace, f"{start}; {wait}; kill -KILL $PPID; sleep 300", SUCCESS)
    before = (
        "sh",
        "-c",
        'sleep 300 > /dev/null 2>&1 & echo $! > "$HOME/other.pid"; exec "$@"',
        "sh",
    )
    running = begin(nursery, workspace, agent, "--kill-grace", "0.3", "-n", "2", before=before)
    done = running.finish(30)
    other = int(wait_for(workspace.home / "other.pid"))
    assert alive(other), "rooda stopped a process that it had not started"
    os.kill(other, signal.SIGKILL)
    assert done.code == 0, done.err
    assert "rooda's warden is gone" in done.err
    assert not alive(int(pid_file.read_text()))


@pytest.mark.long
def test_agent_that_always_kills_the_warden_reaches_the_threshold(
    workspace: Workspace, nursery: Nursery
) -> None:
    agent = agent_by_turns(workspace, "echo said; kill -KILL $PPID; sleep 300")
    done = work(nursery, workspace, agent)
    check(done, workspace, 1)
    assert "Aborting after 3 consecutive failures" in done.err
    assert turns(workspace) == 3


@pytest.mark.long
def test_agent_is_started_once_although_the_warden_is_killed_at_its_start(
    workspace: Workspace, nursery: Nursery
) -> None:
    """The warden dies before it can confirm the start: a retry would start a second agent."""
    count = shlex.quote(str(workspace.home / "starts"))
    agent = workspace.agent(f"kill -KILL $PPID; echo start >> {count}; exec sleep 300")
    args = ("-n", "4", "--failure-threshold", "9", "--kill-grace", "0.3")
    done = work(nursery, workspace, agent, *args)
    check(done, workspace, 2)
    assert done.err.count("rooda's warden is gone") >= 4
    starts = workspace.home / "starts"
    assert not starts.exists() or len(starts.read_text().splitlines()) <= 4


@pytest.mark.long
def test_agent_of_a_killed_warden_is_found_by_its_mark_in_a_large_environment(
    workspace: Workspace, nursery: Nursery
) -> None:
    workspace.env |= {f"LARGE_{n}": "x" * 100_000 for n in range(14)}
    body = f"export home; {DAEMON}; kill -KILL $PPID; sleep 300"
    args = ("-n", "1", "--kill-grace", "0.3")
    done = work(nursery, workspace, agent_by_turns(workspace, body), *args)
    check(done, workspace, 2)
    assert "rooda's warden is gone" in done.err


STOPS_THE_WARDEN = 'echo $PPID > "$home/warden.pid"; echo said; kill -STOP $PPID'


@pytest.mark.long
@CAPTURES
def test_ctrl_c_ends_a_run_with_a_stopped_warden(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    body = f'{STOPS_THE_WARDEN}; echo > "$home/stopped"; sleep 300'
    args = ("--capture", capture, "--kill-grace", "1")
    running = begin(nursery, workspace, agent_by_turns(workspace, body), *args)
    wait_for(workspace.home / "stopped")
    began = time.monotonic()
    running.signal(signal.SIGINT)
    done = running.finish(timeout=20)
    check(done, workspace, 130)
    assert time.monotonic() - began < 7


@pytest.mark.long
@BOTH_CAPTURES
def test_timeout_ends_an_iteration_with_a_stopped_warden(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f"{STOPS_THE_WARDEN}; sleep 300", SUCCESS)
    args = ("--capture", capture, "--kill-grace", "1", "--iteration-timeout", "2")
    done = work(nursery, workspace, agent, *args)
    check(done, workspace, 0)
    assert turns(workspace) == 2


@pytest.mark.real(rows=1)
@CAPTURES
def test_exit_of_an_agent_that_stopped_the_warden_is_seen(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f"{STOPS_THE_WARDEN}; {SUCCESS}")
    running = begin(nursery, workspace, agent, "--capture", capture, "-n", "1")
    check(running.finish(timeout=30), workspace, 0, 2)


ATTACK = """
import ctypes, os, sys
warden, garbage = os.getppid(), {garbage!r}
for name in os.listdir(f"/proc/{{warden}}/fd"):
    try:
        fd = os.open(f"/proc/{{warden}}/fd/{{name}}", os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, garbage)
    except OSError:
        pass
    if {copy}:
        # The socket can't be opened, but a process that may trace the warden can copy it.
        taken = ctypes.CDLL(None).syscall(438, os.pidfd_open(warden), int(name), 0)
        if taken >= 0 and os.readlink(f"/proc/self/fd/{{taken}}").startswith("socket:"):
            os.write(taken, garbage)
print("<promise>SUCCESS</promise>")
"""
GARBAGE = {
    "not a message": b"\0\0\0\4nope",
    "huge length": b"\xff" * 64,
    "empty message": b"\0\0\0\0",
    "number": b"\0\0\0\5i\1\0\0\0",
    "empty tuple": b"\0\0\0\2)\0",
    "tuple of a number": b"\0\0\0\7)\1i\1\0\0\0",
    "too few words": b"\0\0\0\x0a)\1z\6exited",
}


@pytest.mark.long
@pytest.mark.parametrize("garbage", [*list(GARBAGE)[:1], *rarely(*list(GARBAGE)[1:])])
def test_garbage_in_the_descriptors_of_the_warden_is_a_failure_at_most(
    workspace: Workspace, nursery: Nursery, garbage: str
) -> None:
    body = ATTACK.format(garbage=GARBAGE[garbage], copy=True)
    args = ("-n", "1", "--kill-grace", "0.3")
    done = work(nursery, workspace, workspace.python_agent(body), *args)
    check(done, workspace, 0, 2)


@pytest.mark.long
@BOTH_CAPTURES
def test_descriptors_of_the_warden_can_not_be_opened_by_the_agent(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    body = ATTACK.format(garbage=b"\xff" * 64, copy=False)
    agent = workspace.python_agent(body)
    check(work(nursery, workspace, agent, "--capture", capture, "-n", "1"), workspace, 0)


# -- signals from the agent ------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["CONT", *rarely("WINCH", "PIPE", "URG", "CHLD")])
@pytest.mark.parametrize("target", ["$PPID", "$rooda"], ids=["warden", "rooda"])
def test_harmless_signal_from_the_agent_changes_nothing(
    workspace: Workspace, nursery: Nursery, target: str, name: str
) -> None:
    agent = agent_by_turns(
        workspace, f"{PARENT_OF_PARENT}; kill -{name} {target}; sleep 0.1", SUCCESS
    )
    done = work(nursery, workspace, agent)
    check(done, workspace, 0)
    assert turns(workspace) == 2
    assert "ERROR" not in done.err


@pytest.mark.long
@pytest.mark.parametrize("name", ["USR2", *rarely("ALRM", "VTALRM", "PROF", "XCPU")])
def test_signal_without_a_handler_leaves_no_process(
    workspace: Workspace, nursery: Nursery, name: str
) -> None:
    body = f"{PARENT_OF_PARENT}; ulimit -c 0; kill -{name} $rooda; sleep 300"
    before = limited("core=0")
    args = ("--iteration-timeout", "5", "-n", "1")
    done = work(nursery, workspace, agent_by_turns(workspace, body, SUCCESS), *args, before=before)
    check(done, workspace, 130, -signal.Signals[f"SIG{name}"])
    check(work(nursery, workspace, SUCCESS), workspace, 0)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["USR1", "TERM", *rarely("HUP", "INT", "QUIT", "ALRM")])
def test_signal_to_the_warden_costs_one_iteration_at_most(
    workspace: Workspace, nursery: Nursery, name: str
) -> None:
    before = limited("core=0")
    agent = agent_by_turns(workspace, f"kill -{name} $PPID; sleep 0.3", SUCCESS)
    check(work(nursery, workspace, agent, before=before), workspace, 0)
    assert turns(workspace) == 2


@pytest.mark.long
def test_agent_that_stops_the_parent_of_rooda_does_not_block_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    body = f"{PARENT_OF_PARENT}; shell=$(cut -d' ' -f4 /proc/$rooda/stat); kill -STOP $shell"
    agent = agent_by_turns(workspace, f'{body}; echo $rooda > "$home/rooda.pid"', SUCCESS)
    shell = ("sh", "-c", '"$@"; echo $? > "$HOME/code"', "sh")
    running = begin(nursery, workspace, agent, before=shell)
    rooda = int(wait_for(workspace.home / "rooda.pid"))
    until(lambda: not alive(rooda), "rooda exits")
    running.signal(signal.SIGCONT)
    done = running.finish()
    check(done, workspace, 0)
    assert (workspace.home / "code").read_text() == "0\n"


@pytest.mark.real(rows=1)
@CAPTURES
@pytest.mark.skipif(sys.platform != "linux", reason="the warden reads process states from /proc")
def test_time_limit_ends_an_agent_that_stopped_rooda(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    agent = agent_by_turns(workspace, f"{PARENT_OF_PARENT}; kill -STOP $rooda; sleep 300", SUCCESS)
    args = ("--capture", capture, "--iteration-timeout", "2", "--kill-grace", "0.3")
    done = begin(nursery, workspace, agent, *args).finish(30)
    check(done, workspace, 0)
    assert "timeout" in done.err
    assert turns(workspace) == 2


@pytest.mark.long
@CAPTURES
@pytest.mark.skipif(sys.platform != "linux", reason="the warden reads process states from /proc")
def test_agent_that_stops_rooda_and_exits_does_not_leave_rooda_stopped(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    body = f"{PARENT_OF_PARENT}; kill -STOP $rooda; {SUCCESS}"
    running = begin(nursery, workspace, agent_by_turns(workspace, body), "--capture", capture)
    check(running.finish(), workspace, 0)
    assert turns(workspace) == 1


# -- the demo --------------------------------------------------------------------------------


@pytest.mark.long
def test_demo_works_with_few_descriptors(workspace: Workspace, nursery: Nursery) -> None:
    workspace.env["TMPDIR"] = str(workspace.home)
    done = nursery.start(workspace, "demo", before=limited("nofile=32")).finish(timeout=50)
    check(done, workspace, 0)


@pytest.mark.long
def test_demo_works_without_a_home(workspace: Workspace, nursery: Nursery) -> None:
    workspace.env["TMPDIR"] = str(workspace.home)
    before = ("env", "-u", "HOME")
    check(nursery.start(workspace, "demo", before=before).finish(timeout=50), workspace, 0)


@pytest.mark.real
def test_run_works_without_a_home(workspace: Workspace, nursery: Nursery) -> None:
    before = ("env", "-u", "HOME")
    check(work(nursery, workspace, agent_by_turns(workspace, SUCCESS), before=before), workspace, 0)


@pytest.mark.real
def test_run_works_for_a_user_without_a_home_and_a_name(
    stranger: Stranger, nursery: Nursery
) -> None:
    before = (*stranger.before, "env", "-u", "HOME")
    agent = stranger.workspace.agent(SUCCESS)
    check(work(nursery, stranger.workspace, agent, before=before), stranger.workspace, 0)
