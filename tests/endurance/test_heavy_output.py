"""Gigabytes of output and hundreds of iterations: rooda's use of resources does not grow."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rooda.world.process.tree import process_table
from rooda.world.process.tree.processes import descendants
from support.capturing import BOTH_CAPTURES, Capture
from support.children import Nursery
from support.workspace import PROCEDURE, Workspace, wait_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

MEGABYTE = 1024 * 1024
MOST = 64_000_000  # bytes of rooda and its warden together; they take 60
MOST_IF_HOSTILE = 80_000_000
# Measure rooda as users run it, without the coverage of the tests.
PLAIN = ("env", "-u", "COVERAGE_PROCESS_START", "-u", "COVERAGE_PROCESS_CONFIG")


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    workspace.config(PROCEDURE)
    found = Nursery(workspace.path)
    yield found
    found.clear()
    # Pytest keeps the folders of the last runs: these would fill a disk.
    shutil.rmtree(workspace.path, ignore_errors=True)


def field(pid: int, name: str) -> int:
    """A number from /proc/PID/status; sizes are in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{name}:\s*(\d+)( kB)?$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * (1024 if found[2] else 1)


def warden_of(rooda: int) -> int:
    table = process_table()
    found = [
        one.pid
        for one in table.all_processes()
        if one.parent == rooda
        and any("rooda.world.process.warden" in word for word in table.command_line(one.pid))
    ]
    assert len(found) == 1
    return found[0]


# -- memory --------------------------------------------------------------------------------

# The first start floods and fails by its promise. When the second one starts, rooda has read, kept
# and scanned the flood. The second one waits until the test has measured rooda's memory.
FLOODER = """
import os, sys, time
if os.path.exists("flooded"):
    open("measure", "w").write("now")
    while not os.path.exists("measured"):
        time.sleep(0.01)
    print("<promise>SUCCESS</promise>")
    sys.exit()
open("flooded", "w").close()
stream, megabytes, unit = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
block = unit * ((1 << 20) // len(unit) + 1)
for place in range(megabytes):
    rest = memoryview(block)[: 1 << 20]
    while rest:
        rest = rest[os.write(stream, rest):]
os.write(stream, b"\\n<promise>FAILURE</promise>\\n")
"""
Flood = tuple[int, int, bytes]
LINE = b"x" * 79 + b"\n"
COLORS = b"\x1b[32m+\x1b[0m\n"
FLOODS: dict[str, Flood] = {
    "1 GB with newlines": (1, 1024, LINE),
    "1 GB without newlines": (1, 1024, b"x"),
    "200 MB in one line": (1, 200, b"x"),
    "2 GB on standard error": (2, 2048, LINE),
}
HOSTILE_FLOODS: dict[str, Flood] = {
    "200 MB of empty lines": (1, 200, b"\n"),
    "200 MB of colors": (1, 200, COLORS),
    "200 MB of binary data": (1, 200, bytes(range(256))),
    "200 MB of tags": (1, 200, b"> say <promise>SUCCESS</promise>\n"),
}


@dataclass(frozen=True)
class Peak:
    rooda: int
    warden: int

    @property
    def total(self) -> int:
        return self.rooda + self.warden


def peak_of(workspace: Workspace, nursery: Nursery, flood: Flood, *args: str) -> tuple[Peak, str]:
    """The peak resident memory, and the log of the run."""
    path = workspace.write("agent.py", FLOODER)
    stream, megabytes, unit = flood
    command = f"{sys.executable} -S {path} {stream} {megabytes} {unit.hex()}"
    running = nursery.start(workspace, "work", "--ai-cmd", command, *args, before=PLAIN)
    wait_for(workspace.path / "measure", timeout=300)
    rooda = running.process.pid
    peak = Peak(field(rooda, "VmHWM"), field(warden_of(rooda), "VmHWM"))
    (workspace.path / "measured").touch()
    done = running.finish(60)
    assert done.code == 0, done.err
    assert "Iteration 1/5 completed" in done.err
    assert "failure, consecutive: 1/3" in done.err, "the promise at the end was not found"
    return peak, done.err


@BOTH_CAPTURES
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_memory_is_bounded_for_any_amount_of_output(
    workspace: Workspace, nursery: Nursery, flood: Flood, capture: Capture
) -> None:
    peak, _ = peak_of(workspace, nursery, flood, "--capture", capture)
    assert peak.total < MOST, peak


@BOTH_CAPTURES
@pytest.mark.parametrize("flood", HOSTILE_FLOODS.values(), ids=HOSTILE_FLOODS.keys())
def test_memory_is_bounded_for_hostile_output(
    workspace: Workspace, nursery: Nursery, flood: Flood, capture: Capture
) -> None:
    peak, _ = peak_of(workspace, nursery, flood, "--capture", capture)
    assert peak.total < MOST_IF_HOSTILE, peak


SHOWN = {"one line": b"x", "lines": LINE, "colors": COLORS}


@BOTH_CAPTURES
@pytest.mark.parametrize("unit", SHOWN.values(), ids=SHOWN.keys())
def test_memory_is_bounded_when_the_output_is_shown(
    workspace: Workspace, nursery: Nursery, unit: bytes, capture: Capture
) -> None:
    """Nothing reads the output before the end: rooda must drop it, and not collect it."""
    flood = (1, 50, unit)
    peak, _ = peak_of(workspace, nursery, flood, "--verbose", "--capture", capture)
    assert peak.total < MOST_IF_HOSTILE, peak


# -- many iterations -----------------------------------------------------------------------

ITERATIONS = 500
MEASURED_AT = (50, 490)
# Every iteration leaves one process in its process group, and one in another session.
SOAK = f"""
n=$(($(cat n 2> /dev/null || echo 0) + 1)); echo $n > n
echo "iteration $n"
sleep 600 > /dev/null 2>&1 &
setsid sleep 601 > /dev/null 2>&1 &
case $n in {MEASURED_AT[0]}|{MEASURED_AT[1]})
    echo $$ > measure-$n
    while ! test -e measured-$n; do sleep 0.02; done;;
esac
"""


@dataclass(frozen=True)
class Usage:
    """The resources that a process uses."""

    descriptors: int
    threads: int
    below: int
    memory: int


def usage_of(pid: int) -> Usage:
    """Return the usage once it is settled: the agent may run before rooda has closed its copies."""
    names = f"/proc/{pid}/fd"
    seen: list[int] = []
    while len(seen) < 10 or len(set(seen[-10:])) > 1:
        seen.append(len(os.listdir(names)))  # noqa: PTH208 - names are enough
        time.sleep(0.05)
    return Usage(
        seen[-1],
        field(pid, "Threads"),
        len(descendants(process_table().all_processes(), {pid})),
        field(pid, "VmRSS"),
    )


@BOTH_CAPTURES
def test_hundreds_of_iterations_leak_nothing(
    workspace: Workspace, nursery: Nursery, capture: Capture
) -> None:
    agent = workspace.agent(SOAK)
    bounds = ("-n", str(ITERATIONS), "--log-level", "error")
    words = ("work", "--ai-cmd", agent, "--capture", capture, *bounds)
    running = nursery.start(workspace, *words, before=PLAIN)
    rooda = running.process.pid
    usages: dict[int, dict[str, Usage]] = {}
    for number in MEASURED_AT:
        wait_for(workspace.path / f"measure-{number}", timeout=600)
        usages[number] = {"rooda": usage_of(rooda), "warden": usage_of(warden_of(rooda))}
        (workspace.path / f"measured-{number}").touch()
    done = running.finish(120)
    assert done.code == 2, done.err
    assert int((workspace.path / "n").read_text()) == ITERATIONS
    for name in ("rooda", "warden"):
        early, late = (usages[number][name] for number in MEASURED_AT)
        assert late.descriptors == early.descriptors, name
        assert late.threads == early.threads == 1, name
        # The agent, its leftovers of this iteration, and perhaps the `sleep` of its waiting loop.
        assert abs(late.below - early.below) <= 1, name
        assert late.memory - early.memory < 2 * MEGABYTE, (name, early, late)
    assert not [
        one.pid
        for one in process_table().all_processes()
        if not one.ended and process_table().folder(one.pid) == str(workspace.path)
    ]
