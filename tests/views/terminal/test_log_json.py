"""`log_format: json`: one event per line, in a stable schema."""

import json
from datetime import datetime
from typing import Any

import pytest
from msgspec import structs

from rooda.base.event import Event, LogLevel
from rooda.loop.events.iteration import LOGGED_AS, IterationStarted
from rooda.loop.events.run import RunStarted
from rooda.loop.events.work import CommandOutput
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.outcome import Verdict
from rooda.views.terminal.log import SCHEMA_VERSION
from rooda.world.agents.agent_report import SessionFacts
from rooda.world.process import events as process
from support.happenings import (
    ABORTED,
    ENDED,
    ERROR,
    EVENT_CLASSES,
    EVIL_EVENTS,
    FAILURE,
    SAMPLES,
    SUCCEEDED,
    USAGE,
    WARNING,
    ended,
    failed,
    written,
)
from support.tables import each_row

UNLOGGED = (process.Output, process.Tick, CommandOutput)
LOGGED = [event for event in SAMPLES if not isinstance(event, UNLOGGED)]


def record(event: Event, time: str | None = None) -> dict[str, Any]:
    """Return the event as a program reads it from the log."""
    log = written("json", ("10:00:45.250", event), threshold=LogLevel.DEBUG, time=time)
    assert log.endswith("\n")
    (line,) = log.splitlines()
    read: dict[str, Any] = json.loads(line)
    return read


def test_whole_line_of_an_event() -> None:
    log = written("json", ("10:00:45.250", IterationStarted("build", 1, 3)))
    assert log == (
        '{"schema_version": 1, "time": "2026-03-01T10:00:45.250+01:00", "elapsed": 45.25, '
        '"level": "info", "event": "iteration_started", '
        '"procedure": "build", "iteration": 1, "max_iterations": 3, "attempt": 1, '
        '"mode": "", "task": "", "spec": "", "agent": "", "is_read": false, "adapter": ""}\n'
    )


def test_there_is_a_sample_of_every_event() -> None:
    assert {type(event) for event in SAMPLES} == set(EVENT_CLASSES)


@each_row("event", LOGGED, ids=lambda event: type(event).__name__)
def test_each_event_starts_with_the_same_keys(event: Event) -> None:
    read = record(event)
    assert list(read)[:5] == ["schema_version", "time", "elapsed", "level", "event"]
    assert read["schema_version"] == SCHEMA_VERSION
    assert datetime.fromisoformat(read["time"]).utcoffset() is not None
    assert read["elapsed"] == 45.25
    assert read["level"] == event.log_level.name.lower()


@each_row("event", LOGGED, ids=lambda event: type(event).__name__)
def test_each_field_of_an_event_is_in_its_line(event: Event) -> None:
    read = record(event)
    unlogged = set(event.unlogged)
    assert {field.name for field in structs.fields(event)} - unlogged <= set(read)
    assert not unlogged & set(read)


def test_each_fact_about_an_iteration_is_in_the_line_of_its_end() -> None:
    read = record(ended(1, 3, 5.0, Verdict.CONTINUE, usage=USAGE))
    session = SessionFacts.__struct_fields__
    facts = [name for name in IterationFacts.__struct_fields__ if name not in session]
    assert {LOGGED_AS.get(name, name) for name in facts} <= set(read)
    assert set(session) <= set(read["usage"])


def test_no_field_has_the_name_of_a_common_key() -> None:
    head = {"schema_version", "time", "elapsed", "level", "event"}
    for kind in EVENT_CLASSES:
        assert not head & {field.name for field in structs.fields(kind)}


def test_each_event_has_its_own_name() -> None:
    kinds = {type(event): record(event)["event"] for event in LOGGED}
    assert len(set(kinds.values())) == len(EVENT_CLASSES) - len(UNLOGGED)
    assert kinds[RunStarted] == "run_started"
    assert kinds[process.ClockExpired] == "clock_expired"


@pytest.mark.parametrize("event", [process.Output("stdout", b"\xff"), process.Tick()], ids=str)
def test_output_of_the_agent_is_not_in_the_log(event: Event) -> None:
    assert written("json", ("10:00:00", event), threshold=LogLevel.DEBUG) == ""


def test_statuses_levels_and_kinds_are_words() -> None:
    assert record(ABORTED)["status"] == "aborted"
    assert record(WARNING)["severity"] == "warning"
    assert record(ERROR)["severity"] == "error"
    assert record(failed(1, 3, 5.0, 1, 3, FAILURE))["failure"]["kind"] == "exit"


def test_unknown_values_are_null() -> None:
    read = record(RunStarted("build", None, "agent"))
    assert read["max_iterations"] is None
    assert record(WARNING)["line"] is None


def test_failure_has_its_context() -> None:
    failure = structs.replace(FAILURE, preview="first\nwords", suffix="last")
    read = record(failed(2, 5, 5.1, 1, 3, failure))
    assert (read["iteration"], read["consecutive_failures"], read["threshold"]) == (2, 1, 3)
    assert read["failure"] == structs.asdict(failure)


def test_run_end_has_exit_code_and_counts() -> None:
    read = record(SUCCEEDED)
    assert (read["status"], read["exit_code"], read["iterations"]) == ("success", 0, 3)
    assert read["total"] == 136.0


def test_run_end_has_the_statistics_of_the_other_views() -> None:
    found = record(ENDED)["stats"]
    names = ("count", "minimum", "maximum", "mean", "stddev")
    assert [round(found[name], 1) for name in names] == [3, 38.7, 52.1, 45.3, 5.5]


@each_row("event", EVIL_EVENTS, ids=lambda event: type(event).__name__)
def test_hostile_text_cannot_send_control_codes_or_forge_a_line(event: Event) -> None:
    (line,) = written("json", ("10:00:00", event), threshold=LogLevel.DEBUG).split("\n")[:-1]
    assert line.isprintable()
    json.loads(line)


def test_non_ascii_letters_stay_readable() -> None:
    assert "größe → 大" in written("json", ("10:00:00", RunStarted("größe → 大", 1, "agent")))


@each_row("threshold", LogLevel)
def test_events_below_the_log_level_are_not_written(threshold: LogLevel) -> None:
    log = written("json", *(("10:00:00", event) for event in SAMPLES), threshold=threshold)
    levels = {json.loads(line)["level"] for line in log.splitlines()}
    assert levels == {one.name.lower() for one in LogLevel if one >= threshold}


@each_row(
    "form,time",
    [
        (None, "2026-03-01T10:00:45.250+01:00"),
        ("iso", "2026-03-01T10:00:45.250+01:00"),
        ("time", "10:00:45"),
        ("time-ms", "10:00:45.250"),
        ("relative", "+45.2s"),
        ("none", None),
    ],
)
def test_formats_of_the_time(form: str | None, time: str | None) -> None:
    assert record(process.ProcessStopped(1), form).get("time") == time
