"""The output of a run, through the installed command."""

import json
import re
import shlex
import signal
import stat
import subprocess
from datetime import datetime

import pytest

from support.finished import Finished
from support.workspace import PROCEDURE, ROODA, Workspace, alive, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"
TIMING = re.compile(r"  Iteration timing: min=\S+, max=\S+, mean=\S+, stddev=\S+")


def normal(done: Finished) -> list[str]:
    """The log lines with all durations replaced."""
    return [re.sub(r"\b\d+(\.\d+|m\d+)s", "Xs", line) for line in done.log]


def timing(done: Finished) -> str:
    """The line with the statistics."""
    (line,) = [line for line in done.err.splitlines() if line.startswith("  Iteration timing: ")]
    return line


# -- complete logs -----------------------------------------------------------------------------


@pytest.mark.long
def test_log_of_limited_iterations(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("echo output of the agent"), "--max-iterations", "3")
    assert normal(done) == [
        "Starting procedure: work (max 3 iterations)",
        "Iteration 1/3 starting...",
        "Iteration 1/3 completed in Xs (success)",
        "Iteration 2/3 starting...",
        "Iteration 2/3 completed in Xs (success)",
        "Iteration 3/3 starting...",
        "Iteration 3/3 completed in Xs (success)",
        "Reached max iterations: 3 (total: Xs)",
    ]
    assert TIMING.fullmatch(done.err.splitlines()[-2])
    assert done.err.splitlines()[-1].startswith("  Next: rooda show · rooda report · rooda resume ")
    assert all(
        re.match(r"\[\d\d:\d\d:\d\d\] \S", line) or line.startswith("  ")
        for line in done.err.splitlines()
    )
    assert (done.code, done.out) == (2, ""), "the agent's output is not shown"


@pytest.mark.long
def test_log_of_an_abort_after_consecutive_failures(workspace: Workspace) -> None:
    agent = workspace.agents("exit 0", "exit 0", "exit 0", "exit 1")
    done = workspace.work(agent, "--max-iterations", "10")
    assert normal(done) == [
        "Starting procedure: work (max 10 iterations)",
        "Iteration 1/10 starting...",
        "Iteration 1/10 completed in Xs (success)",
        "Iteration 2/10 starting...",
        "Iteration 2/10 completed in Xs (success)",
        "Iteration 3/10 starting...",
        "Iteration 3/10 completed in Xs (success)",
        "Iteration 4/10 starting...",
        "Iteration 4/10 completed in Xs (failure, consecutive: 1/3)",
        "Iteration 5/10 starting...",
        "Iteration 5/10 completed in Xs (failure, consecutive: 2/3)",
        "Iteration 6/10 starting...",
        "Iteration 6/10 completed in Xs (failure, consecutive: 3/3)",
        "ERROR: Aborting after 3 consecutive failures (6 iterations completed, total: Xs)",
    ]
    assert TIMING.fullmatch(done.err.splitlines()[-2])
    assert done.err.splitlines()[-1].startswith("  Next: rooda show · rooda report · rooda resume ")
    assert (done.code, workspace.starts) == (1, 6)


@pytest.mark.long
def test_verbose_output_between_log_lines(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("echo '... running tests'; echo 'ok' >&2")
    command = [str(ROODA), "work", "--ai-cmd", agent, "-n", "2", "-v"]
    done = subprocess.run(
        command,
        cwd=workspace.path,
        env=workspace.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=30,
    )
    lines = [
        re.sub(r"\d+\.\ds", "Xs", line.partition("] ")[2] or line)
        for line in done.stdout.splitlines()
    ]
    for number in (1, 2):
        start = lines.index(f"Iteration {number}/2 starting...")
        assert sorted(lines[start + 1 : start + 3]) == ["... running tests", "ok"]
        assert lines[start + 3] == f"Iteration {number}/2 completed in Xs (success)"
    assert lines[-3] == "Reached max iterations: 2 (total: Xs)"


@pytest.mark.real
def test_verbose_output_goes_to_stdout_and_the_log_to_stderr(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("echo said; echo complained >&2"), "-n", "1", "-v")
    assert sorted(done.out.splitlines()) == ["complained", "said"]
    assert done.err.count("said") == done.err.count("\n  said\n") == 1, "it is only the headline"
    assert "complained" not in done.err
    assert normal(done)[-1] == "Reached max iterations: 1 (total: Xs)"


@pytest.mark.long
def test_log_of_an_unlimited_run_with_recovery(workspace: Workspace) -> None:
    agent = workspace.agents("exit 0", "exit 0", "exit 1", "exit 0", SUCCESS)
    done = workspace.work(agent, "--unlimited", "--iteration-timeout", "60")
    assert normal(done) == [
        "Starting procedure: work (unlimited)",
        "Iteration 1 starting...",
        "Iteration 1 completed in Xs (success)",
        "Iteration 2 starting...",
        "Iteration 2 completed in Xs (success)",
        "Iteration 3 starting...",
        "Iteration 3 completed in Xs (failure, consecutive: 1/3)",
        "Iteration 4 starting...",
        "Iteration 4 completed in Xs (success)",
        "Iteration 5 starting...",
        "Iteration 5 completed in Xs (success)",
        "Completed: AI signaled SUCCESS (5 iterations, total: Xs)",
    ]
    assert done.code == 0


# -- end of the run ----------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "body,code,end",
    [
        (SUCCESS, 0, "Completed: AI signaled SUCCESS (1 iteration, total: Xs)"),
        ("exit 0", 2, "Reached max iterations: 1 (total: Xs)"),
        (
            "exit 9",
            1,
            "ERROR: Aborting after 1 consecutive failure (1 iteration completed, total: Xs)",
        ),
    ],
    ids=["success", "max-iters", "aborted"],
)
def test_last_line_and_timing_of_each_end(
    workspace: Workspace, body: str, code: int, end: str
) -> None:
    done = workspace.work(workspace.agent(body), "-n", "1", "--failure-threshold", "1")
    assert (done.code, normal(done)[-1]) == (code, end)
    assert re.fullmatch(r"  Iteration timing: min=(\S+), max=\1, mean=\1", timing(done))


@pytest.mark.real
def test_last_lines_and_timing_of_an_interruption(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agents("exit 0", "echo $$ > marker; exec sleep 60")
    running = workspace.start("work", "--ai-cmd", agent)
    try:
        agent_pid = int(wait_for(workspace.path / "marker"))
        running.signal(signal.SIGINT)
        done = running.finish()
    finally:
        running.process.kill()
    assert not alive(agent_pid)
    assert done.code == 130
    assert normal(done)[-6:] == [
        "Iteration 2/5 starting...",
        "Received SIGINT, shutting down...",
        next(line for line in normal(done) if line.startswith("Killing AI CLI process (pid ")),
        "AI CLI terminated",
        "Iteration 2/5 interrupted after Xs",
        "Interrupted (1 iteration completed, total: Xs)",
    ]
    assert TIMING.fullmatch(timing(done)), "the timing has both iterations"


@pytest.mark.long
def test_success_ends_the_run_before_the_maximum(workspace: Workspace) -> None:
    done = workspace.work(workspace.agents("exit 0", SUCCESS, "exit 0"), "-n", "5")
    assert (done.code, workspace.starts) == (0, 2)


# -- failures ----------------------------------------------------------------------------------


@pytest.mark.long
def test_failure_is_logged_with_its_context(workspace: Workspace) -> None:
    agent = workspace.agent("echo did this; echo broke that >&2; exit 3")
    done = workspace.work(agent, "-n", "1")
    lines = done.err.splitlines()
    start = next(n for n, line in enumerate(lines) if "(failure, consecutive: 1/3)" in line)
    assert re.fullmatch(r"  Reason: exit code 3 after \d+\.\ds", lines[start + 1])
    assert lines[start + 2] == f"  Command: {agent}"
    assert lines[start + 3 : start + 6] == ["  Output:", "    | did this", "    | broke that"]
    assert lines[start + 6].startswith("  Try: ")


@pytest.mark.real
def test_crash_is_logged_with_its_signal(workspace: Workspace) -> None:
    agent = workspace.agent("ulimit -c 0; echo half a thought; kill -SEGV $$")
    done = workspace.work(agent, "-n", "1", "--failure-threshold", "1")
    assert done.code == 1
    assert "  Reason: killed by SIGSEGV, exit code 139 after" in done.err
    assert "    | half a thought" in done.err


@pytest.mark.real
def test_success_with_a_bad_exit_code_logs_a_warning(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent(f"{SUCCESS}; exit 1"))
    assert done.code == 0
    warning = "WARN: AI CLI exited with non-zero code but promise signal indicates success"
    assert f"{warning} exit_code=1 promise_signal=SUCCESS iteration=1" in done.log


@pytest.mark.real
def test_success_with_a_crash_logs_a_warning(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent(f"ulimit -c 0; {SUCCESS}; kill -KILL $$"))
    assert done.code == 0
    (warning,) = [line for line in done.log if line.startswith("WARN: ")]
    assert "exit_code=137" in warning
    assert "signal=SIGKILL" in warning


@pytest.mark.real
def test_truncated_output_logs_a_warning(workspace: Workspace) -> None:
    agent = workspace.agent("echo the beginning; head -c 5000 /dev/zero | tr '\\0' x; exit 1")
    done = workspace.work(agent, "-n", "1", "--max-output-buffer", "1024")
    assert (
        "WARN: AI CLI output exceeded buffer size actual_size=5014 buffer_limit=1024 "
        "action=truncating_from_beginning stream=stdout iteration=1\n"
        "  Try: Raise max_output_buffer if this happens often\n"
    ) in done.err
    assert "    | the beginning" in done.err, "the excerpt has the first line"


@pytest.mark.long
def test_signal_dropped_by_the_truncation_does_not_count(workspace: Workspace) -> None:
    flood = "head -c 5000 /dev/zero | tr '\\0' x; echo"
    limit = ("-n", "1", "--max-output-buffer", "1024")
    assert workspace.work(workspace.agent(f"{SUCCESS}; {flood}"), *limit).code == 2
    assert workspace.work(workspace.agent(f"{flood}; {SUCCESS}"), *limit).code == 0


@pytest.mark.long
def test_log_of_a_timeout_shows_partial_output(workspace: Workspace) -> None:
    agent = workspace.agents(f"echo began; {SUCCESS}; exec sleep 60", "exit 0")
    done = workspace.work(agent, "-n", "2", "--iteration-timeout", "3")
    expired, *others = normal(done)[2:6]
    assert re.fullmatch(
        "WARN: AI CLI exceeded timeout timeout=3s action=sending_sigterm "
        r'clock=iteration_timeout evidence="33 B printed, the last \w+ ago"',
        expired,
    )
    assert others == [
        "Iteration 1/2 completed in Xs (failure, consecutive: 1/3)",
        "Iteration 2/2 starting...",
        "Iteration 2/2 completed in Xs (success)",
    ]
    assert "  Reason: timeout (iteration_timeout: 3s)" in done.err
    assert "    | began" in done.err
    assert done.code == 2, "SUCCESS does not count after a timeout"


@pytest.mark.real
def test_timeout_with_sigkill_in_logfmt(workspace: Workspace) -> None:
    agent = workspace.agent("trap '' TERM; while :; do sleep 0.1; done")
    clocks = ("--iteration-timeout", "3", "--kill-grace", "0.2")
    limits = ("-n", "1", "--failure-threshold", "1")
    done = workspace.work(agent, *clocks, *limits, "--log-format", "logfmt")
    assert done.code == 1
    expected = [
        "INFO Starting iteration 1/1 procedure=work",
        "WARN AI CLI exceeded timeout timeout=3s action=sending_sigterm",
        "WARN AI CLI did not terminate gracefully action=sending_sigkill",
        "ERROR AI CLI failed reason=timeout timeout=3s consecutive_failures=1 threshold=1",
        "ERROR Loop aborted consecutive_failures=1 threshold=1",
    ]
    assert len(done.log) == len(expected)
    for line, start in zip(done.log, expected, strict=True):
        assert line.startswith(start)


@pytest.mark.real
def test_agent_program_that_disappears_aborts_at_once(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("rm agent.sh"), "-n", "5")
    assert done.code == 1
    assert "ERROR: AI CLI could not be started error=" in done.err
    assert re.search(r"Aborting: .*No such file.* \(1 iteration completed, ", done.err)


@pytest.mark.real
def test_agent_program_that_can_not_be_executed_aborts_at_once(workspace: Workspace) -> None:
    binary = workspace.write("agent.bin", b"\x7fELF this is no program\n")
    binary.chmod(0o755)
    done = workspace.work(shlex.quote(str(binary)), "-n", "5")
    assert done.code == 1
    assert re.search(r"Aborting: .*Exec format error \(0 iterations completed, ", done.err)
    assert "Iteration timing" not in done.err, "no agent ran"


@pytest.mark.long
def test_prompt_file_that_disappears_aborts_at_once(workspace: Workspace) -> None:
    workspace.config(PROCEDURE.replace("[{content: look}]", "look.md"))
    workspace.write("look.md", "look\n")
    done = workspace.work(workspace.agent("rm look.md"), "-n", "5")
    assert done.code == 1
    assert 'ERROR: Prompt assembly failed iteration=2 error="look.md does not exist"' in done.err
    assert "(1 iteration completed, " in done.log[-1]


@pytest.mark.long
def test_configured_failure_word_is_named(workspace: Workspace) -> None:
    agent = workspace.agent("echo '<promise>BLOCKED</promise>'")
    limits = ("-n", "1", "--failure-threshold", "1")
    policy = ("--signals-failure", "BLOCKED")
    shown = workspace.work(agent, *limits, *policy)
    assert shown.code == 1
    assert "the agent signaled BLOCKED" in shown.err
    logged = workspace.work(agent, *limits, *policy, "--log-format", "logfmt")
    assert "promise_signal=BLOCKED" in logged.err


# -- warnings before the first iteration -------------------------------------------------------


@pytest.mark.long
def test_unlimited_run_without_a_timeout_logs_a_warning(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent(SUCCESS), "--unlimited")
    assert done.code == 0
    assert any(line.startswith("WARN: ") and "unlimited" in line for line in done.log)
    assert "--iteration-timeout" in done.err


@pytest.mark.long
@pytest.mark.parametrize(
    "args", [("-n", "1"), ("--unlimited", "--iteration-timeout", "60")], ids=["limited", "clock"]
)
def test_run_with_a_limit_or_a_timeout_logs_no_warning(
    workspace: Workspace, args: tuple[str, ...]
) -> None:
    assert "WARN" not in workspace.work(workspace.agent(SUCCESS), *args).err


@pytest.mark.long
def test_prompt_without_the_success_signal_logs_a_warning(workspace: Workspace) -> None:
    workspace.config(re.sub(r"act: .*", "act: [{content: do it}]", PROCEDURE))
    done = workspace.work(workspace.agent("exit 0"), "-n", "1")
    assert done.code == 2
    (warning,) = [line for line in done.log if line.startswith("WARN: ")]
    assert "<promise>SUCCESS</promise>" in warning


# -- levels, formats, files --------------------------------------------------------------------


@pytest.mark.long
def test_quiet_prints_only_warnings_and_errors(workspace: Workspace) -> None:
    assert workspace.work(workspace.agent("exit 0"), "-n", "1", "--quiet").err == ""
    done = workspace.work(workspace.agents("exit 1", f"{SUCCESS}; exit 1"), "-q")
    assert normal(done) == [
        "Iteration 1/5 completed in Xs (failure, consecutive: 1/3)",
        (
            "WARN: AI CLI exited with non-zero code but promise signal indicates success "
            "exit_code=1 promise_signal=SUCCESS iteration=2"
        ),
    ]


@pytest.mark.long
def test_log_level_overrides_quiet(workspace: Workspace) -> None:
    agent = workspace.agent(f"{SUCCESS}; exit 1")
    done = workspace.work(agent, "--quiet", "--log-level", "info")
    assert "Iteration 1/5 starting..." in done.log
    assert workspace.work(agent, "--log-level", "error").err == "", "a warning is no error"


@pytest.mark.real
def test_debug_logs_settings_prompts_and_signals(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent(SUCCESS), "--log-level", "debug")
    assert any(
        line.startswith("DEBUG: Setting name=loop.failure_threshold value=3 origin=built-in")
        for line in done.log
    )
    assert any(line.startswith("DEBUG: Prompt assembled iteration=1 size=") for line in done.log)
    assert "DEBUG: Scanned for signals success=true failure=false believed=true iteration=1" in (
        done.log
    )


@pytest.mark.real
def test_verbose_keeps_the_log_level(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("echo hello"), "-n", "1", "-v", "--log-level", "error")
    assert (done.out, done.err) == ("hello\n", "")


@pytest.mark.long
def test_every_json_line_is_an_event(workspace: Workspace) -> None:
    agent = workspace.agents('echo \'{"not": "a log line"}\'; exit 1', SUCCESS)
    done = workspace.work(agent, "--unlimited", "--log-format", "json", "--log-level", "debug")
    records = [json.loads(line) for line in done.err.splitlines()]
    names = [record["event"] for record in records]
    assert [name for name in names if name.startswith(("run_", "iteration_"))] == [
        "run_started",
        "iteration_started",
        "iteration_ended",
        "iteration_started",
        "iteration_ended",
        "run_ended",
    ]
    assert "problem_found" in names, "a warning is an event too"
    assert all(record["schema_version"] == 1 for record in records)
    assert all(datetime.fromisoformat(record["time"]).tzinfo for record in records)
    assert [record["elapsed"] for record in records] == sorted(r["elapsed"] for r in records)
    assert (records[-1]["status"], records[-1]["exit_code"]) == ("success", done.code)


def test_invalid_config_in_logfmt(workspace: Workspace) -> None:
    workspace.config(f"loop:\n  log_format: logfmt\n  iteration_timeout: -10\n{PROCEDURE}")
    done = workspace.work(workspace.agent("exit 0"))
    assert done.code == 1
    assert done.log == [
        (
            "ERROR Config validation failed file=rooda-config.yml line=3 "
            'field=loop.iteration_timeout error="timeout must be positive, not -10" '
            'suggestion="Set to a positive number of seconds, or remove to disable timeout"'
        )
    ]


def test_missing_ai_command_in_logfmt(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--log-format", "logfmt")
    assert done.code == 1
    (line,) = done.log
    assert line.startswith('ERROR No AI command configured error="must specify AI command via CLI')
    assert line.endswith('suggestion="Example: rooda build --ai-cmd-alias kiro-cli"')


@pytest.mark.long
def test_timestamp_format_can_be_set(workspace: Workspace) -> None:
    workspace.config(f"loop:\n  log_timestamp_format: none\n{PROCEDURE}")
    agent = workspace.agent("exit 0")
    assert workspace.work(agent, "-n", "1").err.startswith("Starting procedure: work")
    chosen = workspace.work(agent, "-n", "1", "--log-timestamp-format", "relative")
    assert re.match(r"\[\+\d+\.\ds\] Starting procedure: work", chosen.err)


@pytest.mark.long
def test_log_file_is_appended_to_with_iso_times(workspace: Workspace) -> None:
    agent = workspace.agent("exit 0")
    for _ in range(2):
        done = workspace.work(agent, "-n", "1", "--log-file", "run.log")
        assert normal(done)[0] == "Starting procedure: work (max 1 iteration)"
        assert re.match(r"\[\d\d:\d\d:\d\d\] ", done.err), "stderr has its own format"
    lines = (workspace.path / "run.log").read_text().splitlines()
    assert sum("Starting procedure" in line for line in lines) == 2
    assert sum("Iteration timing" in line for line in lines) == 2
    for line in lines:
        if not line.startswith("  "):
            datetime.fromisoformat(line[1:].partition("] ")[0])


@pytest.mark.real
def test_log_file_uses_the_requested_formats(workspace: Workspace) -> None:
    log = ("--log-file", "run.log", "--log-format", "json", "--log-timestamp-format", "relative")
    done = workspace.work(workspace.agent("exit 0"), "-n", "1", *log)
    assert done.code == 2
    lines = (workspace.path / "run.log").read_text().splitlines()
    assert [json.loads(line)["time"][0] for line in lines] == ["+"] * len(lines)


def test_unwritable_log_file_is_reported_before_any_iteration(
    workspace: Workspace,
) -> None:
    agent = workspace.agents("exit 0")
    done = workspace.work(agent, "-n", "1", "--log-file", "no/such/folder/run.log")
    assert (done.code, workspace.starts) == (1, 0)
    assert "no/such/folder/run.log" in done.err
    assert "No such file or directory" in done.err
    assert "--log-file" in done.err


def test_dry_run_reports_an_unwritable_log_file(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("exit 0"), "--dry-run", "--log-file", "no/such/run.log")
    assert done.code == 1
    assert "no/such/run.log" in done.out


# -- the state folder --------------------------------------------------------------------------


def git(workspace: Workspace, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", *words],
        cwd=workspace.path,
        env=workspace.environ(),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.long
def test_state_folder_is_private_and_ignored_by_git(workspace: Workspace) -> None:
    agent = workspace.agent("exit 0")
    workspace.config(PROCEDURE)
    git(workspace, "init", "-q")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-q", "-m", "start")
    assert workspace.work(agent, "-n", "1").code == 2
    state = workspace.state
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert git(workspace, "status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.long
def test_agent_that_deletes_the_state_folder_does_not_stop_the_run(workspace: Workspace) -> None:
    agent = workspace.agents("rm -rf $STATE", "rm -rf $STATE", "cat >/dev/null; " + SUCCESS)
    done = workspace.work(agent, "-n", "5")
    assert (done.code, workspace.starts) == (0, 3)
    assert (workspace.state).is_dir()


@pytest.mark.long
def test_characters_that_change_the_direction_of_text_are_not_printed(workspace: Workspace) -> None:
    reverse = "\u202e\u2066"
    agent = workspace.agent(f"echo 'said {reverse}txt' >&2; : > 'name{reverse}txt'; exit 1")
    done = [
        workspace.work(agent, "-n", "1", "-v", "--log-level", "debug", "--log-format", name)
        for name in ("text", "logfmt", "json")
    ]
    done += [workspace.rooda(*words.split()) for words in ("show", "show 1", "why", "show --json")]
    for one in done:
        assert not set(reverse) & set(one.out + one.err), one
    assert "said txt" in done[0].out


@pytest.mark.long
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_half_line_of_the_agent_ends_before_the_next_log_line(
    workspace: Workspace, stream: str
) -> None:
    agent = workspace.agent("printf 'no newline'")
    workspace.config(PROCEDURE)
    flags = ["--ai-cmd", agent, "-n", "1", "-v", "--ai-output-stream", stream]
    file = workspace.path / "both"
    with file.open("wb") as both:
        done = subprocess.run(
            [ROODA, "work", *flags],
            cwd=workspace.path,
            env=workspace.environ(),
            stdout=both,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 2
    assert "no newline" in file.read_text().splitlines()


@pytest.mark.real
def test_output_of_the_agent_in_a_file_of_its_own_gets_no_newline(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("printf 'no newline'"), "-n", "1", "-v")
    assert done.out == "no newline"


@pytest.mark.long
@pytest.mark.parametrize("name,code", [("KILL", 137), ("SEGV", 139)])
def test_crash_after_failure_is_named_by_its_signal(
    workspace: Workspace, name: str, code: int
) -> None:
    agent = workspace.agent(f"ulimit -c 0; echo '<promise>FAILURE</promise>'; kill -{name} $$")
    done = workspace.work(agent, "-n", "1")
    assert f"the agent signaled FAILURE, killed by SIG{name}, exit code {code} after" in done.err
    line = workspace.work(agent, "-n", "1", "--log-format", "logfmt").err
    assert f"exit_code={code} promise_signal=FAILURE signal=SIG{name}" in line
    assert f"Exit code of the agent: {code} (SIG{name})" in workspace.rooda("why").out
