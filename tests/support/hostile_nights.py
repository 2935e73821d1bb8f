"""A recorded night in which every text that an agent can choose is hostile."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.loop.events.run import TasksLeft
from rooda.loop.events.work import CommitFailed, SnapshotTaken, VerifyEnded
from rooda.loop.result import IterationResult
from rooda.record.rows import IterationRow, RecordedSetting, RecordedWait, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.record.store import Store
from rooda.world.git.snapshots.tree_changes import LineCount, LineCounts
from rooda.world.process.events import NamedProcess
from rooda.world.state.folder import STDOUT
from rooda.world.tasks.standing import TaskCount
from support.hostile import TEXTS
from support.nights import at, failed, night, results, sha
from support.states import state_of
from support.voices import VOICES, line


def hostile_night(folder: Path, texts: Sequence[str] = TEXTS) -> tuple[RunRow, list[IterationRow]]:
    """Return the rows of a night; write its transcripts below the folder."""
    everything = "\n".join(texts)

    run = night(
        procedure=TEXTS[3],
        workspace=f"/home/{TEXTS[0].replace('/', '')}",
        reason=everything,
        status="aborted",
        rule="hook",
        settings=(RecordedSetting("loop.failure_threshold", everything, everything),),
        tasks=TaskCount(1, 1 + 2 * len(texts), len(texts)),
        tasks_left=TasksLeft(tuple(texts), tuple(texts), texts[0]),
        waits=(
            RecordedWait(
                2, "limit", everything, everything, at(900), 99, waited=99.0, started_at=at(800)
            ),
        ),
    )
    rows = []
    for number, text in enumerate(texts, 1):
        tests = results(3, 1)
        tests = replace(tests, details=(replace(tests.details[0], name=text, error=text),))
        rows.append(
            failed(
                number,
                text,
                text,
                result=IterationResult(1, files_created=(text,) * 40, test_results=tests),
                lines=LineCounts(40, 1, 1, (LineCount(text, 1, 1),) * 40),
                headline=text,
                evidence=text,
                agent=text,
                adapter="claude",
                model=text,
                signal=text,
                verify=VerifyEnded(number, text, 1, text, 1.0, everything),
                commit_failed=CommitFailed(number, text, text),
                cleaned_up=(NamedProcess(1, text),) * 9,
                snapshot=SnapshotTaken(number, sha(number), None, text, (text,)),
            )
        )
        place = iteration_folder(state_of(folder), run.run, number)
        place.mkdir(parents=True)
        claude = VOICES[0]
        safe = text.encode("utf-8", "replace").decode()
        events = [*claude.uses(safe, {"command": safe}), *claude.says(safe)]
        (place / STDOUT).write_bytes(b"".join(map(line, events)))
    return run, rows


def keep_hostile_night(folder: Path) -> str:
    """Write the night into the record of a work tree; return the name of the run."""
    run, rows = hostile_night(folder, [text[:10_000] for text in TEXTS])
    store = Store(state_of(folder), print)
    store.save(run)
    for row in rows:
        store.save(iteration=row)
    store.close()
    return run.run
