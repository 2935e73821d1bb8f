"""The table of settings.

One row yields the YAML key, the environment variable, the flag, the check, the help, the row in
the docs, the schema and the dry-run line. Rows are typed: `values[FAILURE_THRESHOLD]` is an int.
"""

from collections.abc import Mapping
from typing import Any

from rooda.config.hook_kind import Hook, HookList
from rooda.config.kinds import (
    Age,
    Boolean,
    Dollars,
    FolderText,
    Integer,
    OneOf,
    PathText,
    Seconds,
    ShellCommand,
    SignalWord,
    Size,
    TemplateText,
    Text,
    TextList,
    TextMap,
    Timeout,
)
from rooda.config.setting import Setting

PRESETS = ("rooda", "ralph", "v1")

RUN, AGENT, OUTPUT, POLICY = "Iterations", "Agent", "Output", "Policy"
LIMITS = "Limits of agents"
GIT, HOOKS, RECORD = "Verify and git", "Hooks", "Record"

OFF, ON = False, True

PRESET: Setting[str] = Setting(
    "preset",
    OneOf(PRESETS),
    "rooda",
    "Policy to start from; every value of it can be overridden",
    POLICY,
)
ITERATION_MODE: Setting[str] = Setting(
    "iteration_mode",
    OneOf(("max-iterations", "unlimited")),
    "max-iterations",
    "Whether the number of iterations is limited",
    RUN,
)
MAX_ITERATIONS: Setting[int] = Setting(
    "default_max_iterations",
    Integer(0, advised=1),  # 0 is judged with the preset at hand: an error, or unlimited
    5,
    "How many iterations to run at most",
    RUN,
    label="Max Iterations",
    flag="--max-iterations",
    short="-n",
    always_in_dry_run=True,
    fix="Set to 1 or more, or ask for no limit with --unlimited (iteration_mode: unlimited)",
)
ITERATION_TIMEOUT: Setting[float | None] = Setting(
    "iteration_timeout",
    Timeout(1),
    None,
    "Stop an iteration that takes longer",
    RUN,
    nullable=True,
    always_in_dry_run=True,
)
FIRST_OUTPUT_TIMEOUT: Setting[float | None] = Setting(
    "first_output_timeout",
    Timeout(0.1),
    None,
    "Stop an agent that has printed nothing for so long after its start",
    RUN,
    nullable=True,
)
IDLE_TIMEOUT: Setting[float | None] = Setting(
    "idle_timeout",
    Timeout(0.5),
    None,
    "Stop an agent that shows no sign of life for so long: no output, no CPU time, no file changed",
    RUN,
    nullable=True,
)
RESULT_GRACE: Setting[float] = Setting(
    "result_grace",
    Seconds(0),
    30.0,
    "How long an agent that has reported its result may take to exit",
    RUN,
)
MAX_DURATION: Setting[float | None] = Setting(
    "max_duration",
    Timeout(1),
    None,
    "Stop whatever is at work and end the run as aborted after this time",
    RUN,
    nullable=True,
)
MAX_COST: Setting[float | None] = Setting(
    "max_cost",
    Dollars(),
    None,
    "End the run as aborted once it has cost so many US dollars, where the agent tells",
    RUN,
    nullable=True,
)
MAX_TOKENS: Setting[int | None] = Setting(
    "max_tokens",
    Integer(1, 10**15),
    None,
    "End the run as aborted once it has used so many tokens, where the agent tells",
    RUN,
    nullable=True,
)
WAIT_FOR_LIMITS: Setting[bool] = Setting(
    "wait_for_limits",
    Boolean(),
    ON,
    "Wait until an agent's usage limit is over, and go on with the same iteration",
    LIMITS,
)
MAX_LIMIT_WAIT: Setting[float | None] = Setting(
    "max_limit_wait",
    Seconds(0),
    24 * 3600.0,
    "How long to wait at most for a usage limit to be over",
    LIMITS,
    nullable=True,
)
LIMIT_WAIT: Setting[float] = Setting(
    "limit_wait",
    Seconds(0),
    300.0,
    "How long to wait where the agent does not say when its limit is over; doubled each time",
    LIMITS,
)
BACKOFF: Setting[float] = Setting(
    "backoff",
    Seconds(0),
    10.0,
    "Wait before the next try in an outage, or after a failed start; doubled each time",
    LIMITS,
)
MAX_BACKOFF: Setting[float] = Setting(
    "max_backoff",
    Seconds(0),
    300.0,
    "How long such a wait may become",
    LIMITS,
)
MAX_OUTAGE_WAIT: Setting[float | None] = Setting(
    "max_outage_wait",
    Seconds(0),
    2 * 3600.0,
    "How long an outage (service overloaded or out of reach) may last before the run is aborted",
    LIMITS,
    nullable=True,
)
MAX_OUTPUT_BUFFER: Setting[int] = Setting(
    "max_output_buffer",
    Size(1024),
    10 * 1024 * 1024,
    "How much of each output stream is kept and scanned for signals, counted from its end",
    AGENT,
    always_in_dry_run=True,
)
FAILURE_THRESHOLD: Setting[int] = Setting(
    "failure_threshold",
    Integer(1),
    3,
    "Abort after so many failures in a row",
    RUN,
    always_in_dry_run=True,
)
KILL_GRACE: Setting[float] = Setting(
    "kill_grace",
    Seconds(0),
    5.0,
    "Time between SIGTERM and SIGKILL when the agent is stopped",
    AGENT,
)
KEEP_PROCESSES: Setting[tuple[str, ...]] = Setting(
    "keep_processes",
    TextList(),
    (),
    "Processes that may outlive an iteration, by name or command line; * and ? stand for anything",
    AGENT,
    nullable=True,
)
CAPTURE: Setting[str] = Setting(
    "capture",
    OneOf(("auto", "file", "pipe")),
    "auto",
    "What the agent prints to: files, pipes, or files for known CLIs and pipes for other commands",
    AGENT,
)
MAX_TRANSCRIPT: Setting[int] = Setting(
    "max_transcript",
    Size(64 * 1024),
    256 * 1024 * 1024,
    "How much of an iteration's output is kept on disk: its beginning and its end",
    AGENT,
)
AI_CMD: Setting[str | None] = Setting(
    "ai_cmd",
    Text(),
    None,
    "Command that runs the agent; it gets the prompt on standard input",
    AGENT,
    label="AI Command",
    nullable=True,
)
AI_CMD_ALIAS: Setting[str | None] = Setting(
    "ai_cmd_alias",
    Text(),
    None,
    "Name of an agent command (see `rooda list --aliases`)",
    AGENT,
    label="AI Command Alias",
    nullable=True,
)
AI_CMD_FALLBACKS: Setting[tuple[str, ...]] = Setting(
    "ai_cmd_fallbacks",
    TextList(),
    (),
    "Agents that take over during a usage limit or an outage of the first: aliases or commands",
    LIMITS,
    nullable=True,
)
WORKING_DIR: Setting[str | None] = Setting(
    "working_dir",
    FolderText(),
    None,
    "Folder in which the agent runs (default: where rooda was started)",
    AGENT,
    nullable=True,
)
ENV: Setting[Mapping[str, str | None]] = Setting(
    "env",
    TextMap(),
    {},
    "Variables to add to the agent's environment; null takes one away",
    AGENT,
    label="Environment",
    nullable=True,
)
SHOW_AI_OUTPUT: Setting[bool] = Setting(
    "show_ai_output",
    Boolean(),
    False,  # noqa: FBT003 - the default itself
    "Stream the agent's output to the terminal",
    OUTPUT,
    label="Show AI Output",
    old_variables=("ROODA_SHOW_AI_OUTPUT",),
)
AI_OUTPUT_STREAM: Setting[str] = Setting(
    "ai_output_stream",
    OneOf(("stdout", "stderr")),
    "stdout",
    "Where the agent's output is streamed to",
    OUTPUT,
    label="AI Output Stream",
)
LOG_LEVEL: Setting[str] = Setting(
    "log_level",
    OneOf(("debug", "info", "warn", "error")),
    "info",
    "Least important lines to print",
    OUTPUT,
    old_variables=("ROODA_LOG_LEVEL",),
    per_procedure=False,
)
LOG_FORMAT: Setting[str] = Setting(
    "log_format",
    OneOf(("text", "logfmt", "json")),
    "text",
    "Form of the lines on standard error",
    OUTPUT,
    per_procedure=False,
)
LOG_TIMESTAMP_FORMAT: Setting[str] = Setting(
    "log_timestamp_format",
    OneOf(("auto", "time", "time-ms", "relative", "iso", "none")),
    "auto",
    "Form of the time (auto: time for text, time-ms for logfmt, iso for json and log files)",
    OUTPUT,
    per_procedure=False,
)
LOG_FILE: Setting[str | None] = Setting(
    "log_file",
    PathText(),
    None,
    "Append the same lines to this file",
    OUTPUT,
    per_procedure=False,
    nullable=True,
)
SEPARATORS: Setting[bool] = Setting(
    "separators",
    Boolean(),
    False,  # noqa: FBT003 - the default itself
    "Print a LOOP n separator after each iteration",
    OUTPUT,
)
SIGNALS_SUCCESS: Setting[str | None] = Setting(
    "signals.success",
    SignalWord(),
    "SUCCESS",
    "Word in <promise>...</promise> that ends the run",
    POLICY,
    nullable=True,
)
SIGNALS_FAILURE: Setting[str | None] = Setting(
    "signals.failure",
    SignalWord(),
    "FAILURE",
    "Word in <promise>...</promise> that makes the iteration a failure",
    POLICY,
    nullable=True,
)
SIGNALS_STREAMS: Setting[str] = Setting(
    "signals.streams",
    OneOf(("both", "stdout", "stderr")),
    "both",
    "Streams on which signals count",
    POLICY,
)
SIGNALS_MATCH: Setting[str] = Setting(
    "signals.match",
    OneOf(("anywhere", "last-line")),
    "anywhere",
    "Where a signal counts: anywhere, or alone on the last line that is not empty",
    POLICY,
)
IGNORE_EXIT_STATUS: Setting[bool] = Setting(
    "ignore_exit_status",
    Boolean(),
    False,  # noqa: FBT003 - the default itself
    "Take no notice of the agent's exit status",
    POLICY,
)
ZERO_MEANS_UNLIMITED: Setting[bool] = Setting(
    "zero_means_unlimited",
    Boolean(),
    False,  # noqa: FBT003 - the default itself
    "Read a maximum of 0 iterations as no limit",
    POLICY,
)
MAX_ATTEMPTS: Setting[int | None] = Setting(
    "max_attempts",
    Integer(1),
    None,
    "Try an iteration that failed again under its own number, so often in all, then abort; "
    "takes the place of failure_threshold",
    POLICY,
    nullable=True,
)
REQUIRED_FILE: Setting[str | None] = Setting(
    "required_file",
    PathText(),
    None,
    "A file that must be there before each iteration",
    POLICY,
    nullable=True,
)
REQUIRED_MESSAGE: Setting[str | None] = Setting(
    "required_message",
    Text(),
    None,
    "What to say when required_file is missing",
    POLICY,
    nullable=True,
)
EXIT_CODE_AGENT: Setting[int] = Setting(
    "exit_codes.agent",
    Integer(0, 255),
    1,
    "Exit code when the agent failed too often",
    POLICY,
)
EXIT_CODE_VERIFY: Setting[int] = Setting(
    "exit_codes.verify",
    Integer(0, 255),
    1,
    "Exit code when verify failed too often",
    POLICY,
)
EXIT_CODE_GIT: Setting[int] = Setting(
    "exit_codes.git",
    Integer(0, 255),
    1,
    "Exit code when the work could not be committed too often",
    POLICY,
)
EXIT_CODE_REQUIRED: Setting[int] = Setting(
    "exit_codes.required",
    Integer(0, 255),
    1,
    "Exit code when required_file is missing",
    POLICY,
)
SESSION_LOG: Setting[str | None] = Setting(
    "session_log",
    PathText(),
    None,
    "Write the session log to this file too",
    RECORD,
    nullable=True,
)
MAX_ITERS_EXIT_CODE: Setting[int] = Setting(
    "max_iters_exit_code",
    Integer(0, 255),
    2,
    "Exit code when the maximum of iterations was reached",
    POLICY,
)

STALL_THRESHOLD: Setting[int | None] = Setting(
    "stall_threshold",
    Integer(1),
    None,
    "Abort after so many iterations without progress",
    RUN,
    nullable=True,
)
VERIFY_COMMAND: Setting[str | None] = Setting(
    "verify.command",
    ShellCommand(),
    None,
    "Command that must succeed after the agent, or the iteration has failed",
    GIT,
    flag="--verify",
    old_variables=("ROODA_LOOP_VERIFY",),
    nullable=True,
)
VERIFY_WHEN: Setting[str] = Setting(
    "verify.when",
    OneOf(("always", "on-success")),
    "always",
    "After every agent that did not fail, or only when it signalled success",
    GIT,
)
VERIFY_TIMEOUT: Setting[float | None] = Setting(
    "verify.timeout", Timeout(1), 1800.0, "Stop a verify that takes longer", GIT, nullable=True
)
VERIFY_FEEDBACK: Setting[bool] = Setting(
    "verify.feedback",
    Boolean(),
    ON,
    "Put the end of what a failed verify printed into the next prompt",
    GIT,
)
GIT_COMMIT: Setting[bool] = Setting(
    "git.commit",
    Boolean(),
    OFF,
    "Commit everything after each good iteration",
    GIT,
    flag="--commit",
)
GIT_PUSH: Setting[bool] = Setting(
    "git.push", Boolean(), OFF, "Push after every iteration", GIT, flag="--push"
)
GIT_REQUIRE_CHANGES: Setting[bool] = Setting(
    "git.require_changes",
    Boolean(),
    OFF,
    "Take an iteration that changed nothing for a failure",
    GIT,
)
MESSAGE_NAMES = ("mode", "procedure", "iteration", "run", "summary", "task")
GIT_MESSAGE: Setting[str] = Setting(
    "git.message",
    TemplateText(MESSAGE_NAMES),
    "{procedure}: iteration {iteration}",
    "Message of a commit, with {procedure}, {mode}, {iteration}, {run}, {summary} and {task}",
    GIT,
)
GIT_COMMIT_TIMEOUT: Setting[float] = Setting(
    "git.commit_timeout",
    Timeout(1),
    300.0,
    "Stop a commit that takes longer, with its hooks and its signing",
    GIT,
)
GIT_PUSH_TIMEOUT: Setting[float] = Setting(
    "git.push_timeout", Timeout(1), 120.0, "Stop a push that takes longer", GIT
)
GIT_SNAPSHOTS: Setting[bool] = Setting(
    "git.snapshots",
    Boolean(),
    ON,
    "Keep the work tree of every iteration under refs/rooda",
    GIT,
)


def _hooks(point: str, when: str) -> Setting[tuple[Hook, ...]]:
    return Setting(f"hooks.{point}", HookList(), (), f"Commands {when}", HOOKS, nullable=True)


HOOKS_LOOP_START = _hooks("loop_start", "before the first iteration")
HOOKS_PRE_ITERATION = _hooks("pre_iteration", "before each iteration")
HOOKS_POST_ITERATION = _hooks("post_iteration", "after each iteration")
HOOKS_ON_FAILURE = _hooks("on_failure", "after each iteration that failed")
HOOKS_ON_WAIT = _hooks("on_wait", "when the run waits for a limit, an outage or the next try")
HOOKS_LOOP_END = _hooks("loop_end", "at every end of the run")

TRACK_FILE_CHANGES: Setting[bool] = Setting(
    "track_file_changes",
    Boolean(),
    ON,
    "Note which files each iteration created, modified and deleted",
    RECORD,
)
PARSE_TESTS: Setting[bool] = Setting(
    "parse_tests", Boolean(), ON, "Read test results out of what agent and verify print", RECORD
)
TEST_REPORTS: Setting[tuple[str, ...]] = Setting(
    "test_reports",
    TextList(),
    (),
    "JUnit XML files, by pattern, that tests write (relative to where the agent runs)",
    RECORD,
    nullable=True,
)
HISTORY_KEEP_RUNS: Setting[int] = Setting(
    "history.keep_runs", Integer(1), 50, "How many runs to keep", RECORD
)
HISTORY_MAX_AGE: Setting[float | None] = Setting(
    "history.max_age", Age(1), None, "Forget runs that ended longer ago", RECORD, nullable=True
)
HISTORY_MAX_SIZE: Setting[int | None] = Setting(
    "history.max_size",
    Size(1024 * 1024),
    2 * 1024**3,
    "How much disk space the runs may take together",
    RECORD,
    nullable=True,
)
HISTORY_MAX_IN_MEMORY: Setting[int] = Setting(
    "history.max_in_memory", Integer(1), 100, "How many iterations to hold in memory", RECORD
)

SETTINGS: tuple[Setting[Any], ...] = (
    MAX_ITERATIONS,
    ITERATION_MODE,
    ITERATION_TIMEOUT,
    FIRST_OUTPUT_TIMEOUT,
    IDLE_TIMEOUT,
    RESULT_GRACE,
    MAX_DURATION,
    MAX_COST,
    MAX_TOKENS,
    MAX_OUTPUT_BUFFER,
    MAX_TRANSCRIPT,
    FAILURE_THRESHOLD,
    STALL_THRESHOLD,
    AI_CMD,
    AI_CMD_ALIAS,
    AI_CMD_FALLBACKS,
    WAIT_FOR_LIMITS,
    MAX_LIMIT_WAIT,
    LIMIT_WAIT,
    BACKOFF,
    MAX_BACKOFF,
    MAX_OUTAGE_WAIT,
    CAPTURE,
    KILL_GRACE,
    KEEP_PROCESSES,
    WORKING_DIR,
    ENV,
    VERIFY_COMMAND,
    VERIFY_WHEN,
    VERIFY_TIMEOUT,
    VERIFY_FEEDBACK,
    GIT_COMMIT,
    GIT_PUSH,
    GIT_REQUIRE_CHANGES,
    GIT_MESSAGE,
    GIT_COMMIT_TIMEOUT,
    GIT_PUSH_TIMEOUT,
    GIT_SNAPSHOTS,
    HOOKS_LOOP_START,
    HOOKS_PRE_ITERATION,
    HOOKS_POST_ITERATION,
    HOOKS_ON_FAILURE,
    HOOKS_ON_WAIT,
    HOOKS_LOOP_END,
    TRACK_FILE_CHANGES,
    PARSE_TESTS,
    TEST_REPORTS,
    HISTORY_KEEP_RUNS,
    HISTORY_MAX_AGE,
    HISTORY_MAX_SIZE,
    HISTORY_MAX_IN_MEMORY,
    SHOW_AI_OUTPUT,
    AI_OUTPUT_STREAM,
    LOG_LEVEL,
    LOG_FORMAT,
    LOG_TIMESTAMP_FORMAT,
    LOG_FILE,
    SEPARATORS,
    PRESET,
    SIGNALS_SUCCESS,
    SIGNALS_FAILURE,
    SIGNALS_STREAMS,
    SIGNALS_MATCH,
    IGNORE_EXIT_STATUS,
    ZERO_MEANS_UNLIMITED,
    MAX_ITERS_EXIT_CODE,
    MAX_ATTEMPTS,
    REQUIRED_FILE,
    REQUIRED_MESSAGE,
    EXIT_CODE_AGENT,
    EXIT_CODE_VERIFY,
    EXIT_CODE_GIT,
    EXIT_CODE_REQUIRED,
    SESSION_LOG,
)

BY_KEY: Mapping[str, Setting[Any]] = {setting.key: setting for setting in SETTINGS}
# `signals` is no setting but holds some.
SECTIONS: Mapping[str, tuple[Setting[Any], ...]] = {
    section: tuple(row for row in SETTINGS if row.key.startswith(f"{section}."))
    for section in dict.fromkeys(key.partition(".")[0] for key in BY_KEY if "." in key)
}
# Sections for which a value alone stands for one row: `verify: make test`, `verify: null`.
SHORT_FORMS: Mapping[str, Setting[Any]] = {"verify": VERIFY_COMMAND}
# Sections that a null takes away whole, as every row of theirs may be none: `hooks: null`.
TAKEN_AWAY_WHOLE: Mapping[str, tuple[str, ...]] = {
    section: tuple(row.key for row in rows)
    for section, rows in SECTIONS.items()
    if all(row.nullable for row in rows)
}
# Names of other systems that are understood as well.
OLD_KEYS: Mapping[str, str] = {"default_iterations": MAX_ITERATIONS.key}
