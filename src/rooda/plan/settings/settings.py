"""The table of settings. A row is all that a new setting needs.

A row gives the key, the kind of value, the default, the section of the help, and the help. The
environment variable, the flag, the check, the JSON Schema, the dry-run line and the row in the
docs follow from it. `optional` rows can also be unset (`null`, or `none` on the command line).
Rows are typed: `values[FAILURE_THRESHOLD]` is an int. Their order is the order in the help.
"""

from collections.abc import Mapping
from typing import Any

from rooda.base.colors import CHOICES
from rooda.plan.settings.feature_kinds import AddressList, HookList, MomentList
from rooda.plan.settings.kinds import Age, Boolean, Dollars, Integer, Seconds, Size, Timeout
from rooda.plan.settings.setting import Setting, optional, setting
from rooda.plan.settings.text_kinds import (
    BY_SIGNAL,
    AutoBoolean,
    DoneWhen,
    FolderText,
    NameList,
    OneOf,
    PathList,
    PathPatternList,
    PathText,
    ShellCommand,
    SignalWord,
    SwitchedWord,
    TemplateText,
    Text,
    TextList,
    TextMap,
)

PRESETS = ("rooda", "ralph", "v1")
MESSAGE_NAMES = ("headline", "mode", "procedure", "iteration", "run", "summary", "task")

RUN, AGENT, OUTPUT, POLICY = "Iterations", "Agent", "Output", "Policy"
LIMITS = "Limits of agents"
GIT, HOOKS, RECORD = "Verify and git", "Hooks", "Record"
SANDBOX = "Sandbox"
NOTIFY = "Notifications"
SANDBOXES = ("none", "bwrap", "command")
SANDBOX_NAMES = ("workspace", "cwd", "home")

OFF, ON = False, True
KB, MB = 1024, 1024 * 1024
HOUR = 3600.0
DAY = 24 * HOUR

# This is a table: the formatter would write each argument on a line of its own.
# fmt: off

# -- iterations, and the agent that does them --------------------------------------------------

# A count of 0 is checked later: the preset decides whether it is an error or means unlimited.
MAX_ITERATIONS = setting("default_max_iterations", Integer(0, advised=1), 5, RUN,
    "Maximum number of iterations",
    flag="--max-iterations", short="-n", label="Max Iterations", common=True,
    always_in_dry_run=True,
    fix="Set to 1 or more, or ask for no limit with --unlimited (iteration_mode: unlimited)")
ITERATION_MODE = setting("iteration_mode", OneOf(("max-iterations", "unlimited", "once")),
    "max-iterations", RUN,
    "Whether the number of iterations is limited; once: one good iteration is a success")
TASKS = optional("tasks", PathText(), None, RUN,
    "Task file: rooda shows how many of its tasks are done (default: PLAN.md for `build`)",
    placeholder="FILE", common=True)
DONE_WHEN = setting("done_when", DoneWhen(), BY_SIGNAL, RUN,
    "When the work is done: the agent signals SUCCESS, all tasks of the task file are done, or a "
    "command exits with 0 (1: not yet). With the last two, an early SUCCESS is a failure",
    common=True)
ITERATION_TIMEOUT = optional("iteration_timeout", Timeout(1), None, RUN,
    "Stop an iteration that takes longer", always_in_dry_run=True, common=True)
FIRST_OUTPUT_TIMEOUT = optional("first_output_timeout", Timeout(0.1), None, RUN,
    "Stop an agent that prints nothing for this long after its start")
IDLE_TIMEOUT = optional("idle_timeout", Timeout(0.5), None, RUN,
    "Stop an agent that is idle for this long: no output, no CPU time, no file changed")
RESULT_GRACE = setting("result_grace", Seconds(0), 30.0, RUN,
    "How long an agent may take to exit after it has reported its result")
MAX_DURATION = optional("max_duration", Timeout(1), None, RUN,
    "Stop the agent and end the run as aborted after this time", common=True)
MAX_COST = optional("max_cost", Dollars(), None, RUN,
    "End the run as aborted when it has cost this many US dollars, if the agent reports costs",
    common=True)
MAX_TOKENS = optional("max_tokens", Integer(1, 10**15), None, RUN,
    "End the run as aborted when it has used this many tokens, if the agent reports tokens")
MAX_OUTPUT_BUFFER = setting("max_output_buffer", Size(KB), 10 * MB, AGENT,
    "How much of the end of each output stream rooda keeps in memory and scans for signals",
    always_in_dry_run=True)
MAX_TRANSCRIPT = setting("max_transcript", Size(64 * KB), 256 * MB, AGENT,
    "How much of an iteration's output rooda keeps on disk: the beginning and the end")
MAX_PROMPT_SIZE = setting("max_prompt_size", Size(KB), 10 * MB, AGENT,
    "Largest prompt, context included; a larger one is an error")
FAILURE_THRESHOLD = setting("failure_threshold", Integer(1), 3, RUN,
    "Abort after this many failures in a row", always_in_dry_run=True, common=True)
STALL_THRESHOLD = optional("stall_threshold", Integer(1), None, RUN,
    "Abort after this many iterations in a row without progress")
MIN_FREE_DISK = optional("min_free_disk", Size(0), 1024 * MB, RUN,
    "Free disk space that a run needs to start and to continue (it waits at most max_outage_wait)")
KEEP_AWAKE = setting("keep_awake", AutoBoolean(), "auto", RUN,
    "Keep the machine from sleeping during a run (auto: if systemd-inhibit or caffeinate can)")
AI_CMD = optional("ai_cmd", Text(), None, AGENT,
    "Command that runs the agent; it reads the prompt from standard input",
    placeholder="CMD", common=True)
AI_CMD_ALIAS = optional("ai_cmd_alias", Text(), None, AGENT,
    "Alias of an agent command (see `rooda list --aliases`)", short="-a", placeholder="NAME",
    common=True)
AI_CMD_FALLBACKS = setting("ai_cmd_fallbacks", TextList(), (), LIMITS,
    "Agents that take over during a usage limit or an outage of the first: aliases or commands",
    placeholder="ALIAS-or-CMD")

# -- usage limits and outages ------------------------------------------------------------------

WAIT_FOR_LIMITS = setting("wait_for_limits", Boolean(), ON, LIMITS,
    "Wait until an agent's usage limit ends, then continue with the same iteration")
MAX_LIMIT_WAIT = optional("max_limit_wait", Seconds(0), 24 * HOUR, LIMITS,
    "Longest wait for the end of a usage limit")
LIMIT_WAIT = setting("limit_wait", Seconds(0), 300.0, LIMITS,
    "First wait if the agent does not say when its limit ends; doubled each time")
BACKOFF = setting("backoff", Seconds(0), 10.0, LIMITS,
    "First wait in an outage (then doubled), and after a fast failure of a known agent (then 3, 9 "
    "and 30 times as long); if you set it, after a fast failure of any command")
MAX_BACKOFF = setting("max_backoff", Seconds(0), 300.0, LIMITS,
    "Longest wait before such a retry")
MAX_OUTAGE_WAIT = optional("max_outage_wait", Seconds(0), 2 * HOUR, LIMITS,
    "Abort after an outage (service overloaded or out of reach) of this length")

# -- how rooda runs the agent ------------------------------------------------------------------

CAPTURE = setting("capture", OneOf(("auto", "file", "pipe")), "auto", AGENT,
    "What the agent prints to: files, pipes, or (auto) files for known CLIs and pipes for others")
KILL_GRACE = setting("kill_grace", Seconds(0), 5.0, AGENT,
    "Time between SIGTERM and SIGKILL when the agent is stopped")
KEEP_PROCESSES = setting("keep_processes", TextList(), (), AGENT,
    "Processes that may outlive an iteration, by name or command line, with * and ?")
WORKING_DIR = optional("working_dir", FolderText(), None, AGENT,
    "Folder in which the agent runs (default: where rooda was started)")
ENV = setting("env", TextMap(), {}, AGENT,
    "Variables to add to the agent's environment; in a config file, `NAME: null` removes one")

# -- the sandbox -------------------------------------------------------------------------------

SANDBOX_KIND = setting("sandbox.kind", OneOf(SANDBOXES), "none", SANDBOX,
    "Where the agent, verify, hooks and commits run: none (as you, with all your files), bwrap "
    "(Linux), or command (behind sandbox.command)",
    flag="--sandbox", common=True, old_variables=("ROODA_LOOP_SANDBOX",))
SANDBOX_NETWORK = setting("sandbox.network", Boolean(), ON, SANDBOX,
    "Let programs in the sandbox bwrap use the network")
SANDBOX_READABLE = setting("sandbox.readable", PathList(), (), SANDBOX,
    "Files and folders that programs in the sandbox bwrap can read, besides the work tree")
SANDBOX_WRITABLE = setting("sandbox.writable", PathList(), (), SANDBOX,
    "Files and folders that programs in the sandbox bwrap can change, besides the work tree")
SANDBOX_ENV = setting("sandbox.env", NameList(), (), SANDBOX,
    "Variables that pass into the sandbox, by name, with *",
    fix="Write a list of names, such as [DATABASE_URL, 'MY_*']")
SANDBOX_COMMAND = optional("sandbox.command", TemplateText(SANDBOX_NAMES), None, SANDBOX,
    "Words to put before a command with sandbox command, with {workspace}, {cwd} and {home} (a "
    "private home folder)", placeholder="CMD")

SANDBOX_TRUST = setting("sandbox.trust", Boolean(), OFF, SANDBOX,
    "Let the rooda-config.yml of a work tree open the sandbox, and name commands and files outside "
    "of it; has no effect in that file itself")

# -- verify and git ----------------------------------------------------------------------------

VERIFY_COMMAND = optional("verify.command", ShellCommand(), None, GIT,
    "Command that must succeed after the agent, else the iteration fails",
    common=True, flag="--verify", old_variables=("ROODA_LOOP_VERIFY",))
VERIFY_WHEN = setting("verify.when", OneOf(("always", "on-success")), "always", GIT,
    "Run verify after every agent that did not fail, or only if the agent signaled SUCCESS")
VERIFY_TIMEOUT = optional("verify.timeout", Timeout(1), 1800.0, GIT,
    "Stop a verify that takes longer")
VERIFY_BASELINE = setting("verify.baseline",
    SwitchedWord(("auto", "require", "warn", "off"), on="auto", off="off"), "auto", GIT,
    "Run verify once before the first iteration; stop there if it can't run (auto), if it fails "
    "(require), or never (warn)")
VERIFY_FEEDBACK = setting("verify.feedback", Boolean(), ON, GIT,
    "Put the end of what a failed verify printed into the next prompt")
VERIFY_RETRIES = setting("verify.retries", Integer(0, 100), 0, GIT,
    "Repeat a failing verify this many times before the iteration counts as failed")
VERIFY_SHRINK = setting("verify.shrink", OneOf(("warn", "fail")), "warn", GIT,
    "If verify has fewer tests than at the last verify, or skips more of them: warn, or count the "
    "iteration as failed")
VERIFY_CLEAN = optional("verify.clean", ShellCommand(), None, GIT,
    "Command that must succeed after SUCCESS in a clean copy of what a commit would contain")
GIT_BRANCH = optional("git.branch", Text(), None, GIT,
    "Create this branch or switch to it before the first iteration", flag="--branch",
    placeholder="NAME", common=True)
GIT_COMMIT = setting("git.commit", Boolean(), OFF, GIT,
    "Let rooda commit all changes after each good iteration", flag="--commit", common=True)
GIT_DIRTY = setting("git.dirty", OneOf(("stop", "commit")), "stop", GIT,
    "With git.commit, if tracked files have uncommitted changes: don't start, or commit them too")
GIT_UNTRACKED = setting("git.untracked", OneOf(("leave", "commit")), "leave", GIT,
    "With git.commit, files that were untracked before the run: leave them out of commits until "
    "they change, or commit them too")
GIT_PUSH = setting("git.push", Boolean(), OFF, GIT,
    "Let rooda push after every iteration", flag="--push", common=True)
GIT_REQUIRE_CHANGES = setting("git.require_changes", Boolean(), OFF, GIT,
    "Count an iteration without changes as failed")
GIT_ALLOW_SECRETS = setting("git.allow_secrets", TextList(), (), GIT,
    "New files that look like secrets and that rooda may commit and push: names or paths, with * "
    "and ?",
    fix="Write a list of names or paths, such as ['*.pem', 'tests/keys/*']")
GIT_MESSAGE = setting("git.message", TemplateText(MESSAGE_NAMES),
    "{headline}\n\nRooda-Run: {run}/{iteration}", GIT,
    "Message of a commit, with {headline} (what the agent says that it did), {procedure}, {mode}, "
    "{iteration}, {run}, {summary} and {task}")
GIT_COMMIT_TIMEOUT = setting("git.commit_timeout", Timeout(1), 300.0, GIT,
    "Stop a commit that takes longer, with its hooks and its signing",
    fix="Set to 1 second or more, such as 5m")
GIT_PUSH_TIMEOUT = setting("git.push_timeout", Timeout(1), 120.0, GIT,
    "Stop a push that takes longer",
    fix="Set to 1 second or more, such as 2m")
GIT_PUBLISH = optional("git.publish", ShellCommand(), None, GIT,
    "Command that publishes the work after each iteration; if it fails, the run ends",
    flag="--publish")
GIT_PUBLISH_TIMEOUT = setting("git.publish_timeout", Timeout(1), 120.0, GIT,
    "Stop a publish command that takes longer, which ends the run",
    fix="Set to 1 second or more, such as 2m")
GIT_SNAPSHOTS = setting("git.snapshots", Boolean(), ON, GIT,
    "Keep the work tree of every iteration, for `rooda diff` and `rooda restore`")
PROTECT_PATHS = setting("protect.paths", PathPatternList(), (), GIT,
    "Existing files that the agent may not change or delete: names or paths, with *, ? and **",
    flag="--protect",
    fix="Write a list of names or paths in the work tree, such as ['.github/', 'tests/**/*.snap']")
PROTECT_ON_CHANGE = setting("protect.on_change", OneOf(("restore", "fail", "warn")), "restore", GIT,
    "If a protected file changed: restore it and continue, fail the iteration, or only warn")

# -- hooks -------------------------------------------------------------------------------------

HOOKS_LOOP_START = setting("hooks.loop_start", HookList(), (), HOOKS,
    "Commands before the first iteration")
HOOKS_PRE_ITERATION = setting("hooks.pre_iteration", HookList(), (), HOOKS,
    "Commands before each iteration")
HOOKS_POST_ITERATION = setting("hooks.post_iteration", HookList(), (), HOOKS,
    "Commands after each iteration")
HOOKS_ON_FAILURE = setting("hooks.on_failure", HookList(), (), HOOKS,
    "Commands after each iteration that failed")
HOOKS_ON_WAIT = setting("hooks.on_wait", HookList(), (), HOOKS,
    "Commands when the run waits for a limit, an outage or the next try")
HOOKS_LOOP_END = setting("hooks.loop_end", HookList(), (), HOOKS,
    "Commands at every end of the run")

# -- the record --------------------------------------------------------------------------------

TRACK_FILE_CHANGES = setting("track_file_changes", Boolean(), ON, RECORD,
    "Record which files each iteration created, modified and deleted")
PARSE_TESTS = setting("parse_tests", Boolean(), ON, RECORD,
    "Read test results from the output of the agent and of verify")
TEST_REPORTS = setting("test_reports", TextList(), (), RECORD,
    "JUnit XML files that tests write, relative to the agent's folder, with * and ?")
HISTORY_MAX_AGE = optional("history.max_age", Age(1), 90 * DAY, RECORD,
    "Delete the records of runs that ended longer ago")
HISTORY_MAX_SIZE = optional("history.max_size", Size(MB), 2048 * MB, RECORD,
    "Disk space that the records of all runs may take")
HISTORY_KEEP_RUNS = optional("history.keep_runs", Integer(1), None, RECORD,
    "How many runs to keep at most")
HISTORY_MAX_IN_MEMORY = setting("history.max_in_memory", Integer(1), 100, RECORD,
    "How many iterations rooda keeps in memory")

# -- notifications -------------------------------------------------------------------------------

NOTIFY_URLS = setting("notify.urls", AddressList(), (), NOTIFY,
    "Services that get a message, as addresses of apprise, such as ntfy://TOPIC; they are secrets",
    is_secret=True)
NOTIFY_ON = optional("notify.on", MomentList(), ("end",), NOTIFY,
    "When to send a message: at the end of the run, after a failed iteration, when the run waits, "
    "when the agent signals FAILURE (blocked)")

# -- output ------------------------------------------------------------------------------------

SHOW_AI_OUTPUT = setting("show_ai_output", Boolean(), OFF, OUTPUT,
    "Stream the output of the agent and of verify to the terminal",
    old_variables=("ROODA_SHOW_AI_OUTPUT",))
AI_OUTPUT_STREAM = setting("ai_output_stream", OneOf(("stdout", "stderr")), "stdout", OUTPUT,
    "Where the agent's output is streamed to")
LOG_LEVEL = setting("log_level", OneOf(("debug", "info", "warn", "error")), "info", OUTPUT,
    "Lowest level of the lines to print", old_variables=("ROODA_LOG_LEVEL",), per_procedure=False,
    common=True)
LOG_FORMAT = setting("log_format", OneOf(("text", "logfmt", "json")), "text", OUTPUT,
    "Format of the lines on standard error", per_procedure=False, common=True)
LOG_TIMESTAMP_FORMAT = setting("log_timestamp_format",
    OneOf(("auto", "time", "time-ms", "relative", "iso", "none")), "auto", OUTPUT,
    "Format of the time (auto: time for text, time-ms for logfmt, iso for json and log files)",
    per_procedure=False)
LOG_FILE = optional("log_file", PathText(), None, OUTPUT,
    "Append the same lines to this file", per_procedure=False, common=True)
COLOR = setting("color", OneOf(CHOICES), "auto", OUTPUT,
    "Colors in text on a terminal (auto: unless NO_COLOR is set or TERM is dumb)", common=True)
SEPARATORS = setting("separators", Boolean(), OFF, OUTPUT,
    "Print a LOOP n separator after each iteration")

# -- policy: the rows in which presets differ ---------------------------------------------------

PRESET = setting("preset", OneOf(PRESETS), "rooda", POLICY,
    "Policy to start from; other settings override its values", common=True)
SIGNALS_SUCCESS = optional("signals.success", SignalWord(), "SUCCESS", POLICY,
    "Word in <promise>...</promise> that ends the run")
SIGNALS_FAILURE = optional("signals.failure", SignalWord(), "FAILURE", POLICY,
    "Word in <promise>...</promise> that makes the iteration a failure")
SIGNALS_STREAMS = setting("signals.streams", OneOf(("both", "stdout", "stderr")), "both", POLICY,
    "Streams on which signals count")
SIGNALS_MATCH = setting("signals.match", OneOf(("anywhere", "last-line")), "anywhere", POLICY,
    "Where a signal counts: anywhere, or only alone on the last non-empty line")
SIGNALS_CONFIRM = setting("signals.confirm", Integer(1, 100), 1, POLICY,
    "How many iterations in a row must signal SUCCESS before the run is complete", common=True)
IGNORE_EXIT_STATUS = setting("ignore_exit_status", Boolean(), OFF, POLICY,
    "Ignore the agent's exit status")
ZERO_MEANS_UNLIMITED = setting("zero_means_unlimited", Boolean(), OFF, POLICY,
    "Treat a maximum of 0 iterations as unlimited")
MAX_ITERS_EXIT_CODE = setting("max_iters_exit_code", Integer(0, 255), 2, POLICY,
    "Exit code if the run reaches the maximum of iterations")
MAX_ATTEMPTS = optional("max_attempts", Integer(1), None, POLICY,
    "Attempts at a failed iteration, the first included, before the run aborts; replaces "
    "failure_threshold")
REQUIRED_FILE = optional("required_file", PathText(), None, POLICY,
    "File that must exist before each iteration")
REQUIRED_MESSAGE = optional("required_message", Text(), None, POLICY,
    "Message if required_file is missing")
EXPECTED_FILE = optional("expected_file", PathText(), None, POLICY,
    "File that the run must leave behind: an iteration that ends the run without it has failed")
EXIT_CODE_AGENT = setting("exit_codes.agent", Integer(0, 255), 1, POLICY,
    "Exit code if the run ends because the agent failed")
EXIT_CODE_VERIFY = setting("exit_codes.verify", Integer(0, 255), 1, POLICY,
    "Exit code if the run ends because verify failed")
EXIT_CODE_GIT = setting("exit_codes.git", Integer(0, 255), 1, POLICY,
    "Exit code if the run ends because a commit failed")
EXIT_CODE_REQUIRED = setting("exit_codes.required", Integer(0, 255), 1, POLICY,
    "Exit code if required_file is missing")
SESSION_LOG = optional("session_log", PathText(), None, RECORD,
    "Write the session log to this file too")
REPORT = optional("report", PathText(), None, RECORD,
    "Write the report to this file after each iteration (.html, .md or .json)")

# fmt: on

SETTINGS: tuple[Setting[Any], ...] = tuple(
    row for row in globals().values() if isinstance(row, Setting)
)
BY_KEY: Mapping[str, Setting[Any]] = {setting.key: setting for setting in SETTINGS}
# Keys that hold settings, such as `signals`, and those settings.
SECTIONS: Mapping[str, tuple[Setting[Any], ...]] = {
    section: tuple(row for row in SETTINGS if row.key.startswith(f"{section}."))
    for section in dict.fromkeys(key.partition(".")[0] for key in BY_KEY if "." in key)
}
# Sections for which a value sets one row: `verify: make test`, `verify: null`, `sandbox: bwrap`.
SHORT_FORMS: Mapping[str, Setting[Any]] = {
    "verify": VERIFY_COMMAND,
    "sandbox": SANDBOX_KIND,
    "protect": PROTECT_PATHS,
}
# Sections that a null unsets as a whole, because each of their rows can be unset: `hooks: null`.
TAKEN_AWAY_WHOLE: Mapping[str, tuple[str, ...]] = {
    section: tuple(row.key for row in rows)
    for section, rows in SECTIONS.items()
    if all(row.nullable for row in rows)
}
# Keys of other systems, and the keys of rooda that they stand for.
OLD_KEYS: Mapping[str, str] = {"default_iterations": MAX_ITERATIONS.key}
