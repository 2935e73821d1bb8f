"""What the record of an iteration costs: two commits, against two lines at the end of a file.

Both have the same to say, on the same disk, and are safe on it before they go on.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from benchmarks.measure import alternate, report
from rooda.iteration import IterationResult, TestDetail, TestResults, TestStatus
from rooda.record.rows import IterationRow, RecordedSetting, RunRow
from rooda.record.store import Store
from rooda.world.state.folder import StateFolder

LIMIT = 1.25
ITERATIONS = 1000

_RUN = RunRow(
    run="20250101-101010-abcdef",
    procedure="build",
    status="running",
    started_at="2025-01-01T10:10:10.125+01:00",
    ended_at=None,
    pid=4711,
    pid_started=1234567.0,
    host="night",
    boot="0f0f0f0f-1111-2222-3333-444444444444",
    workspace="/home/somebody/project",
    settings=(RecordedSetting("loop.failure_threshold", "3", "built-in"),) * 80,
    iterations=0,
)
_STARTED = IterationRow(
    run=_RUN.run,
    number=1,
    attempt=1,
    status="executing",
    started_at="2025-01-01T10:10:10.250+01:00",
    ended_at=None,
    prompt_size=1000,
)
_ENDED = replace(
    _STARTED,
    status="completed",
    ended_at="2025-01-01T10:11:10.250+01:00",
    result=IterationResult(
        exit_code=0,
        files_modified=tuple(f"src/module_{number}/file.py" for number in range(20)),
        summary="What was done, in some words. " * 10,
        test_results=TestResults(120, 118, 2, 0, (TestDetail("test", TestStatus.FAILED),) * 2),
    ),
)


def measure(folder: Path) -> bool:
    store = Store(StateFolder(folder), print)
    lines = os.open(folder / "lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    numbers = {"ours": 0, "theirs": 0}

    def append(*rows: RunRow | IterationRow) -> None:
        os.write(lines, "".join(map(_line, rows)).encode())
        os.fsync(lines)

    def write_lines(number: int) -> None:
        append(replace(_STARTED, number=number))
        append(_run(number), replace(_ENDED, number=number))

    def save(number: int) -> None:
        store.save(iteration=replace(_STARTED, number=number))
        store.save(_run(number), replace(_ENDED, number=number))

    def timed(who: str, write: Callable[[int], None]) -> float:
        numbers[who] += 1
        began = time.perf_counter()
        write(numbers[who])
        return time.perf_counter() - began

    ours, theirs = alternate(
        lambda: timed("ours", save), lambda: timed("theirs", write_lines), rounds=ITERATIONS
    )
    store.close()
    os.close(lines)
    name = "recording: two commits / two fsynced appends"
    return report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT)


def _run(number: int) -> RunRow:
    return replace(_RUN, iterations=number)


def _line(row: RunRow | IterationRow) -> str:
    return json.dumps(to_builtins(row)) + "\n"
