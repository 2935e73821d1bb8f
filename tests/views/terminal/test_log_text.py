"""`log_format: text`: the lines of the documented examples, and further lines."""

import os
from typing import Any

import pytest
from msgspec import structs

from rooda.base.event import Event, LogLevel
from rooda.loop.events.agent import WaitEnded
from rooda.loop.events.iteration import (
    ExitOverridden,
    IterationEnded,
    IterationStarted,
    OutputTruncated,
    PromptAssembled,
    PromptFailed,
    SignalsScanned,
    StartFailed,
)
from rooda.loop.events.run import ConfigResolved, RunEnded, RunStarted
from rooda.loop.events.work import CommandOutput, Committed, Pushed, VerifyEnded
from rooda.loop.failure import FailureContext
from rooda.loop.outcome import Verdict
from rooda.loop.stops import StopRule
from rooda.loop.wait_kinds import WaitKind
from rooda.views.terminal.terminal import AgentOutput, Sink, Terminal
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process import events as process
from rooda.world.process.events import Output
from support.happenings import (
    ABORTED,
    BLOCKED,
    CRASH,
    ENDED,
    ERROR,
    EVENT_CLASSES,
    EVIL_EVENTS,
    FAILURE,
    INTERRUPTED,
    RESUMED,
    SAMPLES,
    SUCCEEDED,
    TIMEOUT,
    WARNING,
    completed,
    done,
    failed,
    interrupted,
    stamped,
    timing,
    with_facts,
    written,
)
from support.tables import each_row


def iterations(
    durations: list[float], clocks: list[str], maximum: int | None, failing: range = range(0)
) -> list[tuple[str, Event]]:
    """Return the events of consecutive iterations.

    `clocks` has one more time than there are iterations.
    """
    happened: list[tuple[str, Event]] = []
    failures = 0
    for number, seconds in enumerate(durations, 1):
        happened.append((clocks[number - 1], IterationStarted("build", number, maximum)))
        failures = failures + 1 if number in failing else 0
        end: Event = completed(number, maximum, seconds, truncated=False)
        if failures:
            end = failed(number, maximum, seconds, failures, 3, FAILURE)
        happened.append((clocks[number], end))
    return happened


def without_context(log: str) -> str:
    """Return the lines that start with a time, and the timing."""
    lines = log.splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith(("[", "  Iteration timing")))


# -- the documented examples -------------------------------------------------------------------


def test_example_1_limited_iterations() -> None:
    clocks = ["10:00:00", "10:00:45", "10:01:24", "10:02:16"]
    log = written(
        "text",
        ("10:00:00", RunStarted("build", 3, "agent")),
        *iterations([45.2, 38.7, 52.1], clocks, 3),
        ("10:02:16", ENDED),
    )
    assert (
        log
        == """\
[10:00:00] Starting procedure: build (max 3 iterations)
[10:00:00] Iteration 1/3 starting...
[10:00:45] Iteration 1/3 completed in 45.2s (success)
[10:00:45] Iteration 2/3 starting...
[10:01:24] Iteration 2/3 completed in 38.7s (success)
[10:01:24] Iteration 3/3 starting...
[10:02:16] Iteration 3/3 completed in 52.1s (success)
[10:02:16] Reached max iterations: 3 (total: 2m16s)
  Iteration timing: min=38.7s, max=52.1s, mean=45.3s, stddev=5.5s
"""
    )


def test_example_2_consecutive_failure_abort() -> None:
    durations = [42.0, 36.0, 37.0, 15.0, 12.0, 13.0]
    clocks = ["10:00:00", "10:00:42", "10:01:18", "10:01:55", "10:02:10", "10:02:22", "10:02:35"]
    ended = with_facts(ABORTED, iterations=6, total=155.0, stats=timing(*durations))
    log = written(
        "text",
        ("10:00:00", RunStarted("build", 10, "agent")),
        *iterations(durations, clocks, 10, failing=range(4, 7)),
        ("10:02:35", ended),
    )
    # The mean of the documented example, 12.3s, is wrong.
    assert (
        without_context(log)
        == """\
[10:00:00] Starting procedure: build (max 10 iterations)
[10:00:00] Iteration 1/10 starting...
[10:00:42] Iteration 1/10 completed in 42.0s (success)
[10:00:42] Iteration 2/10 starting...
[10:01:18] Iteration 2/10 completed in 36.0s (success)
[10:01:18] Iteration 3/10 starting...
[10:01:55] Iteration 3/10 completed in 37.0s (success)
[10:01:55] Iteration 4/10 starting...
[10:02:10] Iteration 4/10 completed in 15.0s (failure, consecutive: 1/3)
[10:02:10] Iteration 5/10 starting...
[10:02:22] Iteration 5/10 completed in 12.0s (failure, consecutive: 2/3)
[10:02:22] Iteration 6/10 starting...
[10:02:35] Iteration 6/10 completed in 13.0s (failure, consecutive: 3/3)
[10:02:35] ERROR: Aborting after 3 consecutive failures (6 iterations completed, total: 2m35s)
  Iteration timing: min=12.0s, max=42.0s, mean=25.8s, stddev=12.7s
"""
    )


def test_example_3_run_end_has_its_timing() -> None:
    ended = with_facts(ENDED, max_iterations=2, total=84.0, stats=timing(45.2, 38.7))
    assert (
        written("text", ("10:01:24", ended))
        == """\
[10:01:24] Reached max iterations: 2 (total: 1m24s)
  Iteration timing: min=38.7s, max=45.2s, mean=42.0s, stddev=3.2s
"""
    )


def test_example_6_unlimited_with_recovery() -> None:
    log = written(
        "text",
        ("10:00:00", RunStarted("build", None, "agent")),
        ("10:01:55", IterationStarted("build", 3, None)),
        ("10:02:10", failed(3, None, 15.0, 1, 3, FAILURE)),
        ("10:02:10", IterationStarted("build", 4, None)),
        ("10:02:52", completed(4, None, 42.0, truncated=False)),
    )
    assert (
        without_context(log)
        == """\
[10:00:00] Starting procedure: build (unlimited)
[10:01:55] Iteration 3 starting...
[10:02:10] Iteration 3 completed in 15.0s (failure, consecutive: 1/3)
[10:02:10] Iteration 4 starting...
[10:02:52] Iteration 4 completed in 42.0s (success)
"""
    )


# -- further lines -----------------------------------------------------------------------------


@each_row(
    "event,line",
    [
        (
            with_facts(SUCCEEDED, iterations=2, total=84.0, stats=timing()),
            "Completed: AI signaled SUCCESS (2 iterations, total: 1m24s)",
        ),
        (
            with_facts(SUCCEEDED, iterations=1, total=3.21, stats=timing()),
            "Completed: AI signaled SUCCESS (1 iteration, total: 3.2s)",
        ),
        (
            with_facts(SUCCEEDED, promise_signal="COMPLETE", total=3725.0, stats=timing()),
            "Completed: AI signaled COMPLETE (3 iterations, total: 1h02m05s)",
        ),
        (
            with_facts(INTERRUPTED, iterations=2, total=12.3, stats=timing()),
            "Interrupted (2 iterations completed, total: 12.3s)",
        ),
        (
            with_facts(
                ABORTED,
                rule=str(StopRule.NOT_STARTED),
                reason="agent: Permission denied",
                iterations=0,
                total=0.0,
                stats=timing(),
            ),
            "ERROR: Aborting: agent: Permission denied (0 iterations completed, total: 0.0s)",
        ),
        (WARNING, "WARN: mind the gap\n  Try: Step over it"),
        (
            ERROR,
            (
                "ERROR: Config validation failed file=rooda-config.yml line=12 "
                'field=loop.iteration_timeout error="timeout must be positive, not -10"\n'
                "  Try: Set to a positive number of seconds, or remove to disable timeout"
            ),
        ),
        (
            OutputTruncated(1, "stdout", 5242880, 1048576),
            (
                "WARN: AI CLI output exceeded buffer size actual_size=5242880 buffer_limit=1048576 "
                "action=truncating_from_beginning stream=stdout iteration=1\n"
                "  Try: Raise max_output_buffer if this happens often"
            ),
        ),
        (
            ExitOverridden(1, "SUCCESS", 139, "SIGSEGV"),
            (
                "WARN: AI CLI exited with non-zero code but promise signal indicates success "
                "exit_code=139 promise_signal=SUCCESS signal=SIGSEGV iteration=1"
            ),
        ),
        (
            process.ClockExpired("iteration_timeout", 60.0),
            (
                "WARN: AI CLI exceeded timeout timeout=60s action=sending_sigterm "
                "clock=iteration_timeout"
            ),
        ),
        (
            process.ProcessKilled(1),
            "WARN: AI CLI did not terminate gracefully action=sending_sigkill",
        ),
        (process.InterruptSeen("SIGINT"), "Received SIGINT, shutting down..."),
        (
            process.InterruptSeen("SIGTERM", again=True),
            "Received SIGTERM again, killing at once",
        ),
        (
            process.ProcessStopping(123),
            "Killing AI CLI process (pid 123); a second Ctrl+C kills it at once",
        ),
        (process.ProcessStopped(123), "AI CLI terminated"),
        (interrupted(2, 5, 3.3), "Iteration 2/5 interrupted after 3.3s"),
        (
            PromptFailed(2, "a.md does not exist", "Create it"),
            (
                'ERROR: Prompt assembly failed iteration=2 error="a.md does not exist"\n'
                "  Try: Create it"
            ),
        ),
    ],
)
def test_further_lines_of_the_log(event: Event, line: str) -> None:
    assert written("text", ("10:00:00", event)) == f"[10:00:00] {line}\n"


@each_row("ended", [ENDED, SUCCEEDED, ABORTED, INTERRUPTED])
def test_last_line_has_the_next_commands(ended: RunEnded) -> None:
    """The lines above it are those of the documents."""
    commands = ("rooda show", "rooda resume R")
    *lines, last = (structs.replace(ended, next_commands=commands).as_text() or "").split("\n")
    assert "\n".join(lines) == ended.as_text()
    assert last == "  Next: rooda show · rooda resume R"


@each_row(
    "change,line",
    [
        (
            {},
            (
                "at iteration 4 with its flags: --verify 'make test' --env TOKEN=... --commit; "
                "given now: --max-iterations 12, instead of: --max-iterations 8"
            ),
        ),
        (
            {"given": (), "replaced": ()},
            "at iteration 4 with its flags: --verify 'make test' --env TOKEN=... --commit",
        ),
        (
            {"flags": ()},
            "at iteration 4; given now: --max-iterations 12, instead of: --max-iterations 8",
        ),
        (
            {"flags": (), "given": (), "replaced": ()},
            "at iteration 4; it was started without flags",
        ),
        (
            {"flags": ("--context", "x" * 1000), "given": (), "replaced": (), "folder": "/srv/a"},
            (
                "at iteration 4 in /srv/a with its flags: "
                f"--context '{'x' * 300}[... 600 characters ...]{'x' * 100}'"
            ),
        ),
    ],
)
def test_resumed_run_names_the_origin_of_its_flags(change: dict[str, Any], line: str) -> None:
    event = structs.replace(RESUMED, **change)
    assert event.as_text() == f"Resuming run 20260301-230000-abcdef {line}"


@pytest.mark.parametrize(
    "given,words",
    [((), ""), (("-n", "8"), " with the flags given now: -n 8")],
)
def test_resumed_run_without_recorded_flags_warns(given: tuple[str, ...], words: str) -> None:
    event = structs.replace(RESUMED, recorded=False, flags=(), given=given, replaced=())
    assert written("text", ("10:00:00", event), threshold=LogLevel.WARN) == (
        "[10:00:00] WARN: Resuming run 20260301-230000-abcdef at iteration 4"
        f"{words}; the flags of the run were not recorded\n"
    )


def test_timing_of_one_iteration_has_no_stddev() -> None:
    ended = with_facts(SUCCEEDED, iterations=1, stats=timing(3.0))
    assert (ended.as_text() or "").splitlines()[1:] == [
        "  Iteration timing: min=3.0s, max=3.0s, mean=3.0s"
    ]


@each_row("ended", [ENDED, SUCCEEDED, ABORTED, INTERRUPTED])
def test_each_run_end_has_its_timing(ended: RunEnded) -> None:
    timing = "  Iteration timing: min=38.7s, max=52.1s, mean=45.3s, stddev=5.5s"
    assert (ended.as_text() or "").splitlines()[1:] == [timing]


@each_row(
    "seconds,shown",
    [
        (0.0, "0.0s"),
        (45.2, "45.2s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (60.0, "1m00s"),
        (136.0, "2m16s"),
        (3599.6, "1h00m00s"),
        (3725.0, "1h02m05s"),
        (100_000.0, "27h46m40s"),
    ],
)
def test_formats_of_durations(seconds: float, shown: str) -> None:
    event = completed(1, 3, seconds, truncated=False)
    assert event.as_text() == f"Iteration 1/3 completed in {shown} (success)"


@each_row(
    "event,words",
    [
        (VerifyEnded(1, "make test", 0, "", 1.0, ""), "Verified command="),
        (Committed(1, "46e7c5b", "Add it"), "Committed commit=46e7c5b"),
        (Pushed(1, "origin", "main", "46e7c5b"), "Pushed branch=main"),
        (WaitEnded(1, WaitKind.LIMIT, 5.0), "Wait over waited=5.0s"),
    ],
)
def test_step_of_an_iteration_is_a_debug_line_in_text_only(event: Event, words: str) -> None:
    happened = ("10:00:00", event)
    assert written("text", happened, threshold=LogLevel.INFO) == ""
    shown = written("text", happened, threshold=LogLevel.DEBUG)
    assert shown.startswith(f"[10:00:00] DEBUG: {words}")
    logged = written("logfmt", happened, threshold=LogLevel.INFO)
    assert f" INFO {words}" in logged


def test_failed_check_is_a_warning_in_every_format() -> None:
    event = VerifyEnded(1, "make test", 2, "exit code 2", 1.0, "")
    assert event.text_log_level is event.log_level is LogLevel.WARN


# -- the context of a failure ------------------------------------------------------------------


def context(failure: FailureContext) -> list[str]:
    """Return the indented lines below a failed iteration."""
    line, *below = (failed(1, 3, 5.0, 1, 3, failure).as_text() or "").split("\n")
    assert line == "Iteration 1/3 completed in 5.0s (failure, consecutive: 1/3)"
    assert all(entry.startswith("  ") for entry in below)
    return below


@each_row(
    "failure,reason",
    [
        (FAILURE, "exit code 1 after 5.0s"),
        (CRASH, "killed by SIGSEGV, exit code 139 after 5.0s"),
        (BLOCKED, "the agent signaled FAILURE, exit code 0 after 5.0s"),
        (TIMEOUT, "timeout (iteration_timeout: 60s)"),
    ],
    ids=["exit", "crash", "FAILURE", "timeout"],
)
def test_context_has_the_reason_and_advice(failure: FailureContext, reason: str) -> None:
    assert context(failure) == [
        f"  Reason: {reason}",
        "  Command: agent --flag",
        "  Try: Run the command by hand",
    ]


@pytest.mark.parametrize(
    "kind,shown",
    [
        (FailureKind.VERIFY, ["  Try: Run the command by hand"]),
        (FailureKind.HOOK, ["  Try: Run the command by hand"]),
        (FailureKind.COMMIT, []),
    ],
)
def test_context_does_not_repeat_the_warning_above(kind: FailureKind, shown: list[str]) -> None:
    failure = structs.replace(FAILURE, kind=kind, reason="check failed: exit code 2")
    assert context(failure) == shown
    event = failed(1, 3, 5.0, 1, 3, failure)
    without_warnings = written("text", ("10:00:00", event), threshold=LogLevel.ERROR)
    assert "\n  Reason: check failed: exit code 2\n" in without_warnings


def test_evidence_of_a_timeout_is_told_once() -> None:
    failure = structs.replace(TIMEOUT, evidence="13 B printed")
    assert "13 B printed" not in "\n".join(context(failure))
    event = failed(1, 3, 5.0, 1, 3, failure)
    without_warnings = written("text", ("10:00:00", event), threshold=LogLevel.ERROR)
    assert "(iteration_timeout: 60s); 13 B printed\n" in without_warnings


def test_output_that_the_user_has_seen_is_not_shown_again() -> None:
    below = context(structs.replace(FAILURE, preview="start", suffix="end", is_shown=True))
    assert below == [
        "  Reason: exit code 1 after 5.0s",
        "  Command: agent --flag",
        "  Try: Run the command by hand",
    ]


def test_short_output_is_shown_whole() -> None:
    below = context(structs.replace(FAILURE, preview="one\n\n<promise>x"))
    assert below[2:-1] == ["  Output:", "    | one", "    | ", "    | <promise>x"]


def test_long_output_is_shown_by_its_start_and_its_end() -> None:
    below = context(structs.replace(FAILURE, preview="start\nof it", suffix="end\nof it"))
    assert below[2:-1] == [
        "  Output, first 500 characters:",
        "    | start",
        "    | of it",
        "  Output, last 500 characters:",
        "    | end",
        "    | of it",
    ]


# -- every event -------------------------------------------------------------------------------


def test_there_is_a_sample_of_every_event() -> None:
    assert {type(event) for event in SAMPLES} == set(EVENT_CLASSES)


@each_row("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_each_event_has_a_line_except_output_and_ticks(event: Event) -> None:
    line = event.as_text()
    silent = isinstance(event, process.Output | process.Tick | CommandOutput)
    if isinstance(event, IterationEnded):
        # An abort without failure was logged before, as an error.
        silent = event.verdict is Verdict.ABORT and event.facts.failure is None
    assert (line is None) == silent
    assert line is None or (line.strip() and not line.endswith("\n"))


@each_row("event", EVIL_EVENTS, ids=lambda event: type(event).__name__)
def test_hostile_text_cannot_send_control_codes_or_forge_a_line(event: Event) -> None:
    lines = (event.as_text() or "").split("\n")
    assert all(char == "\t" or char.isprintable() for line in lines for char in line)
    assert all(line.startswith("  ") for line in lines[1:])


@each_row(
    "name,expected",
    [
        ("debug", [LogLevel.DEBUG, LogLevel.INFO, LogLevel.WARN, LogLevel.ERROR]),
        ("info", [LogLevel.INFO, LogLevel.WARN, LogLevel.ERROR]),
        ("warn", [LogLevel.WARN, LogLevel.ERROR]),
        ("error", [LogLevel.ERROR]),
    ],
)
def test_log_level_shows_itself_and_more_severe_levels(name: str, expected: list[LogLevel]) -> None:
    happened = [("10:00:00", event) for event in SAMPLES]
    shown = written("text", *happened, threshold=LogLevel[name.upper()])
    for _, event in happened:
        line = written("text", ("10:00:00", event), threshold=LogLevel.DEBUG)
        first = line.partition("\n")[0]
        assert not line or (first in shown) == (event.text_log_level in expected)


@each_row(
    "event,expected",
    [
        (PromptAssembled(1, 2), LogLevel.DEBUG),
        (ConfigResolved("a", "b", "c"), LogLevel.DEBUG),
        (SignalsScanned(1, success=True, failure=False, believed=True), LogLevel.DEBUG),
        (RunStarted("build", 3, "agent"), LogLevel.INFO),
        (IterationStarted("build", 1, 3), LogLevel.INFO),
        (completed(1, 3, 1.0, truncated=False), LogLevel.INFO),
        (done(1, 3, 1.0, "SUCCESS", truncated=False, despite_exit=False), LogLevel.INFO),
        (ENDED, LogLevel.INFO),
        (SUCCEEDED, LogLevel.INFO),
        (INTERRUPTED, LogLevel.INFO),
        (process.InterruptSeen("SIGINT"), LogLevel.INFO),
        (WARNING, LogLevel.WARN),
        (OutputTruncated(1, "stdout", 2, 1), LogLevel.WARN),
        (ExitOverridden(1, "SUCCESS", 1, None), LogLevel.WARN),
        (process.ClockExpired("iteration_timeout", 1.0), LogLevel.WARN),
        (process.ProcessKilled(1), LogLevel.WARN),
        (process.ProcessSurvived(1), LogLevel.WARN),
        (ERROR, LogLevel.ERROR),
        (failed(1, 3, 1.0, 1, 3, FAILURE), LogLevel.ERROR),
        (PromptFailed(1, "a", "b"), LogLevel.ERROR),
        (StartFailed(1, "a", "b", "c"), LogLevel.ERROR),
        (ABORTED, LogLevel.ERROR),
    ],
)
def test_log_level_of_each_event(event: Event, expected: LogLevel) -> None:
    assert event.log_level is expected


@each_row(
    "form,start",
    [
        (None, "[10:02:16] "),
        ("time", "[10:02:16] "),
        ("time-ms", "[10:02:16.250] "),
        ("relative", "[+136.2s] "),
        ("iso", "[2026-03-01T10:02:16.250+01:00] "),
        ("none", ""),
    ],
)
def test_formats_of_the_time(form: str | None, start: str) -> None:
    line = written("text", ("10:02:16.250", process.ProcessStopped(1)), time=form)
    assert line == f"{start}AI CLI terminated\n"


# -- the output of the agent -------------------------------------------------------------------


@each_row(
    "unit",
    [b"\r", "\x9d".encode(), b"\x1b]", b"\x1b[", b"\x1b[0", b"\x1bP\x1b"],
    ids=["returns", "8-bit strings", "strings", "sequences", "numbers", "device strings"],
)
def test_flood_of_control_codes_is_cleaned_in_linear_time(unit: bytes) -> None:
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        view = AgentOutput(Terminal(Sink(sink), Sink(sink)), to_stderr=False)
        data = unit * (128 * 1024 // len(unit)) + b"x"  # half of what one read returns
        view(stamped("10:00:00", Output("stdout", data)))
    finally:
        os.close(sink)
