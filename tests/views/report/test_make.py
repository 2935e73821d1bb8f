from datetime import timedelta
from pathlib import Path

import pytest

from rooda.base.event import Event
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationStarted
from rooda.loop.events.run import RunEnded
from rooda.loop.outcome import Verdict
from rooda.loop.run_facts import RunFacts
from rooda.record.store import Store
from rooda.views.report.make import ReportWriter
from rooda.world.tools import Tools
from support.happenings import ended
from support.nights import RUN, START, iteration, night
from support.states import record_at, state_of

STARTED = IterationStarted("work", 1, None)
ENDED = ended(1, None, 1.0, Verdict.CONTINUE)
OVER = RunEnded(RunFacts(status="success", rule="signal"))


@pytest.fixture
def writer(tmp_path: Path) -> tuple[ReportWriter, Path, list[str]]:
    store = Store(state_of(tmp_path), print)
    store.save(night(), iteration(1))
    store.close()
    told: list[str] = []
    path = tmp_path / "night.md"
    return ReportWriter(path, record_at(tmp_path), RUN, Tools(), told.append), path, told


def happens(writer: ReportWriter, path: Path, seconds: float, event: Event) -> bool:
    """Return whether the event makes the writer write."""
    path.unlink(missing_ok=True)
    writer(Stamped(event, START + timedelta(seconds=seconds), seconds))
    return path.exists()


def test_the_report_is_written_once_a_minute_and_at_the_end(
    writer: tuple[ReportWriter, Path, list[str]],
) -> None:
    listen, path, told = writer
    written = [
        happens(listen, path, seconds, event)
        for seconds, event in (
            (0, STARTED),  # nothing has ended yet
            (1, ENDED),
            (2, ENDED),
            (59, STARTED),
            (62, STARTED),  # the second one is due since then
            (130, STARTED),  # nothing new
            (131, ENDED),
            (132, ENDED),
            (133, OVER),
        )
    ]
    assert written == [False, True, False, False, True, False, True, False, True]
    assert told == []


def test_each_reason_is_told_once(writer: tuple[ReportWriter, Path, list[str]]) -> None:
    listen, path, told = writer
    path.mkdir()
    for seconds in (0, 100, 200):
        listen(Stamped(ENDED, START, float(seconds)))
    path.rmdir()
    (state_of(path.parent) / "rooda.db").write_bytes(b"not a database" * 100)
    for seconds in (300, 400):
        listen(Stamped(ENDED, START, float(seconds)))
    assert len(told) == 2
    assert told[0] == "Is a directory"
    assert "can't be read" in told[1]
