"""Rows of a recorded night, for tests of the summary and of the report."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rooda.loop.events.run import TasksLeft
from rooda.loop.events.work import Committed, SnapshotTaken, VerifyEnded
from rooda.loop.iteration_facts import Segment, SegmentKind
from rooda.loop.result import IterationResult
from rooda.record.rows import IterationRow, RecordedSetting, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.record.store import Store
from rooda.world.agents.agent_report import Tokens
from rooda.world.git.snapshots.tree_changes import LineCount, LineCounts
from rooda.world.state.folder import STDOUT
from rooda.world.tasks.standing import TaskCount
from rooda.world.testresults.results import TestDetail, TestResults, TestStatus
from support.states import state_of
from support.voices import VOICES, line

RUN = "20261114-230211-build"
START = datetime(2026, 11, 14, 23, 2, 11, tzinfo=UTC)
STEP = 600.0  # seconds from the start of an iteration to the start of the next


def at(seconds: float) -> str:
    """Return a time of the night."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def sha(number: int) -> str:
    """Return the name of a commit."""
    return f"{number:07x}" + "0" * 33


def night(**more: Any) -> RunRow:
    """Return a run that succeeded after ten minutes, with these fields instead."""
    row = RunRow(
        run=RUN,
        procedure="build",
        status="success",
        started_at=at(0),
        ended_at=at(STEP),
        pid=1,
        pid_started=1.0,
        host="h",
        boot="b",
        workspace="/home/ada/tabq",
        rule="signal",
        reason="the agent signaled that the work is done",
        exit_code=0,
        command="claude -p",
        max_iterations=40,
        snapshot=SnapshotTaken(0, "0" * 40, sha(0), sha(0)),
        settings=(RecordedSetting("loop.failure_threshold", "3", "built-in"),),
    )
    return replace(row, **more)


def results(passed: int, failed: int = 0) -> TestResults:
    """Return counts of tests."""
    bad = tuple(TestDetail(f"test_{one}", TestStatus.FAILED) for one in range(failed))
    return TestResults(passed + failed, passed, failed, 0, bad)


def checked(number: int, error: str = "") -> VerifyEnded:
    """Return the end of `verify`."""
    code = 2 if error else 0
    return VerifyEnded(number, "make test", code, error, 40.0, "the end of the output")


def iteration(number: int, found: TestResults | None = None, **more: Any) -> IterationRow:
    """Return a good iteration with a commit, with these fields instead."""
    begin = (number - 1) * STEP
    result = IterationResult(
        exit_code=0,
        files_modified=("src/parser.py",),
        files_created=(f"tests/test_{number}.py",),
        test_results=found,
        progress_detected=True,
        duration_ms=500_000,
    )
    row = IterationRow(
        run=RUN,
        number=number,
        attempt=1,
        status="completed",
        started_at=at(begin),
        ended_at=at(begin + 560),
        result=result,
        verdict="success",
        headline=f"Finished step {number}",
        segments=(
            Segment(SegmentKind.AGENT, 0.5, 500.0),
            Segment(SegmentKind.VERIFY, 501.0, 40.0),
            Segment(SegmentKind.COMMIT, 541.5, 2.0),
        ),
        lines=LineCounts(
            2,
            30,
            4,
            (LineCount("src/parser.py", 20, 4), LineCount(f"tests/test_{number}.py", 10, 0)),
        ),
        verify=checked(number),
        commit=Committed(number, sha(number), "message"),
        snapshot=SnapshotTaken(number, sha(100 + number), sha(200 + number), sha(number - 1)),
        duration=545.0,
        agent="claude",
        model="claude-sonnet-4-5",
        tokens=Tokens(input=100, output=50, cache_read=850, total=1000),
        cost=0.5,
    )
    return replace(row, **more)


def failed(number: int, kind: str, reason: str, **more: Any) -> IterationRow:
    """Return a failed iteration without a commit."""
    usual: dict[str, Any] = {"status": "failed", "verdict": "failure", "kind": kind}
    return iteration(number, **(usual | {"reason": reason, "commit": None} | more))


def doubtful_night(**more: Any) -> tuple[RunRow, list[IterationRow]]:
    """Return a night whose agent signaled SUCCESS with 6 of 20 tasks open."""
    names = ("Parse dates", "Print dates", "Round dates", "Sort", "Filter", "Group")
    usual: dict[str, Any] = {
        "tasks": TaskCount(14, 20),
        "tasks_left": TasksLeft(names, (), "PLAN.md"),
        "ended_at": at(2 * STEP),
    }
    claim = "All tasks are done"
    last = iteration(2, results(5), signal="SUCCESS", verdict="done", headline=claim)
    rows = [iteration(1, results(4), tasks=TaskCount(13, 20)), last]
    rows[1] = replace(last, tasks=TaskCount(14, 20))
    return night(**(usual | more)), rows


def keep_big_night(workspace: Path, iterations: int, size: int) -> None:
    """Write the record of a long night with so many bytes of transcripts.

    All iterations have the same transcript: links of one file save the disk, not the reading.
    """
    claude = VOICES[0]
    events = [
        *claude.says("I look at the code first."),
        *claude.uses("Read", {"file_path": "src/parser.py"}),
        *claude.tool_prints("content " * 8000),
    ]
    piece = b"".join(map(line, events))
    transcript = workspace / "transcript"
    with transcript.open("wb") as file:
        for _ in range(size // iterations // len(piece)):
            file.write(piece)
        file.write(line(claude.says("Done with **this** step. " + "All is well. " * 300)[0]))
    store = Store(state_of(workspace), print)
    for number in range(1, iterations + 1):
        bad = TestDetail("test_" + "x" * 200, TestStatus.PASSED)
        counts = replace(results(number), details=(bad,) * 200)
        store.save(iteration=iteration(number, counts, adapter="claude"))
        folder = iteration_folder(state_of(workspace), RUN, number)
        folder.mkdir(parents=True)
        (folder / STDOUT).hardlink_to(transcript)
    store.save(run=night(ended_at=at(iterations * STEP)))
    store.close()
