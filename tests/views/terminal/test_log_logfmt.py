"""`log_format: logfmt`: the lines of the documented examples, with their fields in order."""

import json
import re

from msgspec import structs

from rooda.base.event import Event, LogLevel, logfmt_fields
from rooda.base.problems import Severity
from rooda.loop.events.iteration import ExitOverridden, IterationStarted, OutputTruncated
from rooda.loop.events.run import ProblemFound, RunStarted
from rooda.loop.failure import FailureContext
from rooda.world.process import events as process
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
    SAMPLES,
    SUCCEEDED,
    TIMEOUT,
    completed,
    done,
    failed,
    interrupted,
    timing,
    with_facts,
    written,
)
from support.tables import each_row


def check_line_starts(log: str, example: str) -> None:
    """Check that each line starts like its line of the example; more fields may follow."""
    lines, expected = log.splitlines(), example.splitlines()
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line == start or line.startswith(f"{start} "), f"{line!r} against {start!r}"


def fields(line: str) -> dict[str, str]:
    """Return the fields at the end of a line, as a program parses them."""
    found = re.findall(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)', line)
    return {key: json.loads(value) if value[:1] == '"' else value for key, value in found}


def started(clock: str, number: int) -> tuple[str, Event]:
    return clock, IterationStarted("build", number, 5)


def failed_at(clock: str, number: int) -> tuple[str, Event]:
    return clock, failed(number, 5, 5.1, number, 3, FAILURE)


# -- the documented examples -------------------------------------------------------------------


def test_example_1_consecutive_failures_leading_to_abort() -> None:
    log = written(
        "logfmt",
        ("21:00:00", RunStarted("build", 5, "agent")),
        started("21:00:00.000", 1),
        failed_at("21:00:05.100", 1),
        started("21:00:05.200", 2),
        failed_at("21:00:10.300", 2),
        started("21:00:10.400", 3),
        failed_at("21:00:15.500", 3),
        ("21:00:15.600", ABORTED),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 1/5 procedure=build
[21:00:05.100] ERROR AI CLI failed exit_code=1 consecutive_failures=1 threshold=3
[21:00:05.200] INFO Starting iteration 2/5 procedure=build
[21:00:10.300] ERROR AI CLI failed exit_code=1 consecutive_failures=2 threshold=3
[21:00:10.400] INFO Starting iteration 3/5 procedure=build
[21:00:15.500] ERROR AI CLI failed exit_code=1 consecutive_failures=3 threshold=3
[21:00:15.600] ERROR Loop aborted consecutive_failures=3 threshold=3
""",
    )


def test_example_2_failure_followed_by_success() -> None:
    ended = with_facts(SUCCEEDED, iterations=2, total=20.4, stats=timing(5.1, 15.1))
    log = written(
        "logfmt",
        started("21:00:00.000", 1),
        failed_at("21:00:05.100", 1),
        started("21:00:05.200", 2),
        (
            "21:00:20.300",
            done(2, 5, 15.1, "SUCCESS", truncated=False, despite_exit=False),
        ),
        ("21:00:20.400", ended),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 1/5 procedure=build
[21:00:05.100] ERROR AI CLI failed exit_code=1 consecutive_failures=1 threshold=3
[21:00:05.200] INFO Starting iteration 2/5 procedure=build
[21:00:20.300] INFO AI CLI succeeded promise_signal=SUCCESS
[21:00:20.400] INFO Loop completed status=success iterations=2 total_elapsed=20.4s
""",
    )


def test_example_3_signal_overrides_the_exit_code() -> None:
    ended = with_facts(SUCCEEDED, iterations=1, total=15.2, stats=timing(15.1))
    log = written(
        "logfmt",
        started("21:00:00.000", 1),
        ("21:00:15.100", ExitOverridden(1, "SUCCESS", 1, None)),
        (
            "21:00:15.100",
            done(1, 5, 15.1, "SUCCESS", truncated=False, despite_exit=True),
        ),
        ("21:00:15.200", ended),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 1/5 procedure=build
[21:00:15.100] WARN AI CLI exited with non-zero code but promise signal indicates success \
exit_code=1 promise_signal=SUCCESS
[21:00:15.200] INFO Loop completed status=success iterations=1 total_elapsed=15.2s
""",
    )


def test_example_4_timeout_kills_the_process() -> None:
    log = written(
        "logfmt",
        started("21:00:00.000", 1),
        ("21:01:00.100", process.ClockExpired("iteration_timeout", 60.0)),
        ("21:01:05.200", process.ProcessKilled(12345)),
        ("21:01:05.300", failed(1, 5, 65.3, 1, 3, TIMEOUT)),
        started("21:01:05.400", 2),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 1/5 procedure=build
[21:01:00.100] WARN AI CLI exceeded timeout timeout=60s action=sending_sigterm
[21:01:05.200] WARN AI CLI did not terminate gracefully action=sending_sigkill
[21:01:05.300] ERROR AI CLI failed reason=timeout timeout=60s consecutive_failures=1 threshold=3
[21:01:05.400] INFO Starting iteration 2/5 procedure=build
""",
    )


def test_example_5_config_validation_failure() -> None:
    check_line_starts(
        written("logfmt", ("21:00:00", ERROR)),
        "[21:00:00.000] ERROR Config validation failed file=rooda-config.yml line=12 "
        'field=loop.iteration_timeout error="timeout must be positive, not -10" '
        'suggestion="Set to a positive number of seconds, or remove to disable timeout"\n',
    )


def test_example_6_missing_ai_command() -> None:
    event = ProblemFound(
        Severity.ERROR,
        "No AI command configured",
        "must specify AI command via CLI flag (--ai-cmd or --ai-cmd-alias)",
        "Example: rooda build --ai-cmd-alias kiro-cli",
        "",
        None,
        "",
    )
    check_line_starts(
        written("logfmt", ("21:00:00", event)),
        "[21:00:00.000] ERROR No AI command configured "
        'error="must specify AI command via CLI flag (--ai-cmd or --ai-cmd-alias)" '
        'suggestion="Example: rooda build --ai-cmd-alias kiro-cli"\n',
    )


def test_example_7_output_buffer_overflow() -> None:
    log = written(
        "logfmt",
        started("21:00:00.000", 1),
        ("21:00:15.100", OutputTruncated(1, "stdout", 5242880, 1048576)),
        ("21:00:15.200", completed(1, 5, 15.2, truncated=True)),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 1/5 procedure=build
[21:00:15.100] WARN AI CLI output exceeded buffer size actual_size=5242880 \
buffer_limit=1048576 action=truncating_from_beginning
[21:00:15.200] INFO Completed iteration 1/5 elapsed=15.2s status=success truncated=true
""",
    )


def test_example_8_sigint_during_an_iteration() -> None:
    log = written(
        "logfmt",
        started("21:00:00.000", 2),
        ("21:00:05.100", process.InterruptSeen("SIGINT")),
        ("21:00:05.200", process.ProcessStopping(12345)),
        ("21:00:05.300", process.ProcessStopped(12345)),
        ("21:00:05.300", interrupted(2, 5, 5.3)),
        ("21:00:05.400", INTERRUPTED),
    )
    check_line_starts(
        log,
        """\
[21:00:00.000] INFO Starting iteration 2/5 procedure=build
[21:00:05.100] INFO Received signal signal=SIGINT action=shutting_down
[21:00:05.200] INFO Killing AI CLI process pid=12345
[21:00:05.300] INFO AI CLI terminated
[21:00:05.400] INFO Loop interrupted status=interrupted
""",
    )


# -- more lines --------------------------------------------------------------------------------


def test_iteration_without_truncation_has_no_field_for_it() -> None:
    line = written("logfmt", ("10:00:00", completed(1, 5, 15.2, truncated=False)))
    assert line == "[10:00:00.000] INFO Completed iteration 1/5 elapsed=15.2s status=success\n"


def test_unlimited_run_shows_no_maximum() -> None:
    line = IterationStarted("build", 7, None).as_logfmt()
    assert line == "INFO Starting iteration 7 procedure=build"


def test_end_at_the_maximum_has_status_and_statistics() -> None:
    line = ENDED.as_logfmt()
    assert line is not None
    assert line.startswith("INFO Loop completed status=max-iters iterations=3 total_elapsed=2m16s")
    found = fields(line)
    assert [found[key] for key in ("min", "max", "mean", "stddev")] == [
        "38.7s",
        "52.1s",
        "45.3s",
        "5.5s",
    ]


@each_row(
    "failure,expected",
    [
        (FAILURE, {"exit_code": "1"}),
        (CRASH, {"signal": "SIGSEGV", "exit_code": "139"}),
        (BLOCKED, {"exit_code": "0", "promise_signal": "FAILURE"}),
        (TIMEOUT, {"reason": "timeout", "timeout": "60s"}),
    ],
    ids=["exit", "crash", "FAILURE", "timeout"],
)
def test_failure_has_its_reason_first(failure: FailureContext, expected: dict[str, str]) -> None:
    line = failed(2, 5, 5.0, 1, 3, failure).as_logfmt() or ""
    found = fields(line)
    assert list(found.items())[: len(expected)] == list(expected.items())
    assert found["command"] == "agent --flag"
    assert found["suggestion"] == "Run the command by hand"


def test_output_of_a_failure_is_escaped_on_one_line() -> None:
    failure = structs.replace(FAILURE, preview='first "words"\nand more', suffix="last\twords")
    line = failed(1, 5, 5.0, 1, 3, failure).as_logfmt() or ""
    assert "\n" not in line
    assert fields(line)["output_first"] == 'first "words"\nand more'
    assert fields(line)["output_last"] == "last\twords"


# -- quoting -----------------------------------------------------------------------------------


@each_row(
    "value,shown",
    [
        ("plain", "plain"),
        ("a/b:c.d-e_f", "a/b:c.d-e_f"),
        ("größe→", "größe→"),
        ("two words", '"two words"'),
        ("", '""'),
        ('say "hi"', r'"say \"hi\""'),
        ("a=b", '"a=b"'),
        ("one\ntwo", r'"one\ntwo"'),
        ("a\tb", r'"a\tb"'),
        ("back\\slash", r'"back\\slash"'),
        ("\x1b[31mred\x1b[0m", "red"),
        ("bell\x07", "bell"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (1.5, "1.5"),
    ],
)
def test_values_are_quoted_only_if_needed(value: str | float, shown: str) -> None:
    assert logfmt_fields((("key", value),)) == f" key={shown}"


def test_field_without_a_value_is_omitted() -> None:
    assert logfmt_fields((("a", 1), ("b", None), ("c", 0))) == " a=1 c=0"


@each_row("value", ["a b", 'a"b', "a\nb", "a=b", "a\\b", "é ✓", " a "])
def test_quoted_values_can_be_parsed_back(value: str) -> None:
    line = f"INFO words{logfmt_fields((('key', value), ('next', 'x')))}"
    assert fields(line) == {"key": value, "next": "x"}


# -- every event -------------------------------------------------------------------------------


def test_there_is_a_sample_of_every_event() -> None:
    assert {type(event) for event in SAMPLES} == set(EVENT_CLASSES)


@each_row("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_each_event_is_one_line_or_none(event: Event) -> None:
    line = event.as_logfmt()
    assert line is None or ("\n" not in line and line.startswith(f"{event.log_level.name} "))


@each_row("event", EVIL_EVENTS, ids=lambda event: type(event).__name__)
def test_hostile_text_cannot_send_control_codes_or_forge_a_line(event: Event) -> None:
    line = event.as_logfmt() or ""
    assert line.isprintable()


@each_row("threshold", LogLevel)
def test_events_below_the_log_level_are_not_written(threshold: LogLevel) -> None:
    log = written("logfmt", *(("10:00:00", event) for event in SAMPLES), threshold=threshold)
    levels = {line.split()[1] for line in log.splitlines()}
    assert levels == {one.name for one in LogLevel if one >= threshold}


@each_row(
    "form,start",
    [
        (None, "[10:02:16.250] "),
        ("time", "[10:02:16] "),
        ("time-ms", "[10:02:16.250] "),
        ("relative", "[+136.2s] "),
        ("iso", "[2026-03-01T10:02:16.250+01:00] "),
        ("none", ""),
    ],
)
def test_formats_of_the_time(form: str | None, start: str) -> None:
    line = written("logfmt", ("10:02:16.250", process.ProcessStopped(1)), time=form)
    assert line == f"{start}INFO AI CLI terminated\n"
