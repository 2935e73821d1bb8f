"""Rules of the loop that no other test shows through the installed command.

docs/dev/conformance.md names the test of every rule.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.base.event import Event
from rooda.loop.loop import run_loop
from rooda.world.process.capture.buffers import Captured
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import Output, Tick
from rooda.world.process.exits import Exited, Interrupted
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from rooda.world.process.runner import Runner
from support.builders import built_services
from support.children import Nursery, frozen_cgroup, state_of_freezer, until
from support.finished import Finished
from support.surface import plan
from support.workspace import PROCEDURE, Workspace, alive

SUCCESS = "echo '<promise>SUCCESS</promise>'"
FAILURE = "echo '<promise>FAILURE</promise>'"
CRASH = "ulimit -c 0; kill -SEGV $$"
ONCE = ("-n", "1", "--failure-threshold", "1")


def printing(size: int) -> str:
    """A shell command that prints a line of x of this length."""
    return f"head -c {size} /dev/zero | tr '\\0' x; echo"


def outcomes(done: Finished) -> list[str]:
    """The outcomes in parentheses at the end of the iterations' log lines."""
    return re.findall(r"completed in \S+ \((.+)\)$", done.err, re.MULTILINE)


def timeless(done: Finished) -> list[str]:
    return [re.sub(r"\b\d+\.\ds", "Xs", line) for line in done.log]


# -- counting ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("args", [(), ("--max-iterations", "5")], ids=["default", "flag"])
def test_exactly_five_iterations_run(workspace: Workspace, args: tuple[str, ...]) -> None:
    done = workspace.work(workspace.agents("exit 0"), *args)
    assert (done.code, workspace.starts) == (2, 5)
    started = [line for line in done.log if line.endswith(" starting...")]
    assert started == [f"Iteration {number}/5 starting..." for number in range(1, 6)]
    assert done.log[-1].startswith("Reached max iterations: 5 ")


@pytest.mark.long
def test_every_kind_of_failure_counts_and_a_success_resets(workspace: Workspace) -> None:
    agent = workspace.agents(
        "exit 1", FAILURE, "exit 0", f"{SUCCESS}; {FAILURE}", CRASH, f"cat > prompt; {SUCCESS}"
    )
    done = workspace.work(agent, "-n", "10")
    assert outcomes(done) == [
        "failure, consecutive: 1/3",
        "failure, consecutive: 2/3",
        "success",
        "failure, consecutive: 1/3",
        "failure, consecutive: 2/3",
        "success",
    ]
    assert (done.code, workspace.starts) == (0, 6)
    prompt = (workspace.path / "prompt").read_text()
    assert prompt.startswith("# OODA Loop Iteration\n"), "the next prompt is intact after a crash"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "body,status,code",
    [(SUCCESS, "success", 0), ("exit 0", "max-iters", 2), ("exit 1", "aborted", 1)],
)
def test_status_and_exit_code_of_a_run(
    workspace: Workspace, body: str, status: str, code: int
) -> None:
    done = workspace.work(workspace.agent(body), *ONCE, "--log-format", "json")
    last = json.loads(done.err.splitlines()[-1])
    assert (last["event"], last["status"], last["exit_code"]) == ("run_ended", status, code)
    assert done.code == code


# -- settings ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "loop,own,words,starts",
    [
        ("default_max_iterations: 4", "default_max_iterations: 2", "(max 2 iterations)", 2),
        ("iteration_mode: unlimited", "iteration_mode: max-iterations", "(max 5 iterations)", 3),
        ("iteration_mode: max-iterations", "iteration_mode: unlimited", "(unlimited)", 3),
        ("failure_threshold: 2", "", "Aborting after 2 consecutive failures", 2),
        ("failure_threshold: 4", "failure_threshold: 2", "Aborting after 2 consecutive", 2),
        ("max_output_buffer: 1024", "", "actual_size=5001 buffer_limit=1024", 3),
        ("max_output_buffer: 1MB", "max_output_buffer: 1024", "buffer_limit=1024", 3),
    ],
)
def test_procedure_setting_overrides_loop_setting(
    workspace: Workspace, loop: str, own: str, words: str, starts: int
) -> None:
    workspace.config(f"loop: {{{loop}}}\n{PROCEDURE}    {own}\n")
    done = workspace.work(workspace.agents(f"{printing(5000)}; exit 1"))
    assert words in done.err
    assert workspace.starts == starts


@pytest.mark.long
@pytest.mark.parametrize(
    "loop,own,env",
    [("3", "", {}), ("600", "3", {}), ("600", "", {"ROODA_LOOP_ITERATION_TIMEOUT": "3"})],
    ids=["loop", "procedure", "variable"],
)
def test_timeout_from_any_source_is_a_failure_with_its_context(
    workspace: Workspace, loop: str, own: str, env: dict[str, str]
) -> None:
    own_line = f"    iteration_timeout: {own}\n" if own else ""
    workspace.config(f"loop: {{iteration_timeout: {loop}}}\n{PROCEDURE}{own_line}")
    agent = workspace.agent(f"echo $$ > agent.pid; echo began; {SUCCESS}; exec sleep 60")
    done = workspace.work(agent, *ONCE, "--log-format", "logfmt", env=env)
    assert done.code == 1, "SUCCESS does not count after a timeout"
    assert not alive(int((workspace.path / "agent.pid").read_text()))
    (line,) = [line for line in done.log if line.startswith("ERROR AI CLI failed ")]
    assert line.startswith(
        "ERROR AI CLI failed reason=timeout timeout=3s consecutive_failures=1 threshold=1 "
    )
    for field in (" iteration=1 ", f" command={agent} ", " ignored_signal=SUCCESS ", '="began\\n'):
        assert field in line


@pytest.mark.long
@pytest.mark.parametrize(
    "loop,env",
    [
        ("{log_level: error, show_ai_output: true}", {}),
        ("{}", {"ROODA_LOG_LEVEL": "error", "ROODA_SHOW_AI_OUTPUT": "true"}),
    ],
    ids=["file", "variables"],
)
def test_log_level_and_output_can_be_set_in_config_and_environment(
    workspace: Workspace, loop: str, env: dict[str, str]
) -> None:
    workspace.config(f"loop: {loop}\n{PROCEDURE}")
    done = workspace.work(workspace.agent("echo hello"), "-n", "1", env=env)
    assert (done.code, done.out, done.err) == (2, "hello\n", "")


def test_default_limits_of_the_agent_process(
    workspace: Workspace,
) -> None:
    requests: list[ProcessRequest] = []
    events: list[Event] = []
    nothing = Captured(b"", b"", 0)

    def execute(
        request: ProcessRequest, interrupts: Interrupts, listener: Listener
    ) -> ProcessResult:
        listener(Tick())
        assert (interrupts.received, events[-1]) == ([], Tick())
        requests.append(request)
        return ProcessResult(Exited(0), nothing, nothing, 1.0)

    run_loop(plan(workspace), built_services(events.append, Interrupts(), execute))
    bounds = {(one.clocks, one.output_limit, one.kill_grace) for one in requests}
    assert bounds == {((Clock("result_grace", 30.0, Since.RESULT, 30.0),), 10485760, 5.0)}


WRONG = {
    "syntax": ("loop: [\n", 2, "not valid YAML"),
    "missing field": (re.sub(r"    act: .*\n", "", PROCEDURE), 3, "lacks act"),
    "value": (
        f"loop:\n  iteration_timeout: -10\n{PROCEDURE}",
        2,
        "loop.iteration_timeout: timeout must be positive, not -10",
    ),
    "prompt file": (PROCEDURE.replace("[{content: look}]", "gone.md"), 4, "gone.md does not exist"),
    "no binary": (f"{PROCEDURE}    ai_cmd: ./gone\n", 8, "AI command binary not found: ./gone"),
    "not executable": (
        f"{PROCEDURE}    ai_cmd: ./rooda-config.yml\n",
        8,
        "AI command binary is not an executable file: ./rooda-config.yml",
    ),
}


@pytest.mark.parametrize("config,line,words", WRONG.values(), ids=WRONG.keys())
def test_invalid_config_is_reported_before_any_iteration(
    workspace: Workspace, config: str, line: int, words: str
) -> None:
    workspace.config(config)
    env = {"ROODA_LOOP_AI_CMD": workspace.agents("exit 0")}
    done = workspace.rooda("work", env=env)
    assert (done.code, done.out, done.log) == (1, "", [])
    error, advice, *_ = done.err.splitlines()
    assert error.startswith(f"Error: rooda-config.yml:{line}: ")
    assert words in error
    assert re.match(r"  \w", advice)
    dry = workspace.rooda("work", "--dry-run", env=env)
    assert (dry.code, dry.err) == (1, "")
    assert re.search(rf"^  ✗ .*{re.escape(words)}", dry.out, re.MULTILINE)
    assert workspace.starts == 0


# -- signals -------------------------------------------------------------------------------


@pytest.mark.long
def test_inexact_tags_are_no_signals(workspace: Workspace) -> None:
    tags = [
        form.replace("WORD", word).replace("Word", word.title()).replace("word", word.lower())
        for word in ("SUCCESS", "FAILURE")
        for form in (
            "<promise>word</promise>",
            "<promise> WORD </promise>",
            "<PROMISE>WORD</PROMISE>",
            "<promise>WORD",
            "<Promise>Word</Promise>",
        )
    ]
    workspace.write("tags", "\n".join(tags))
    done = workspace.work(workspace.agent("cat tags"), *ONCE)
    assert (done.code, outcomes(done)) == (2, ["success"])


@pytest.mark.real
def test_signals_are_scanned_after_the_agent_exited(workspace: Workspace) -> None:
    agent = workspace.python_agent("""
import array, fcntl, os, pathlib, termios, time
os.write(1, b"<promise>SUCCESS</promise>\\n")
unread = array.array("i", [1])
while unread[0]:  # until rooda has read the output
    fcntl.ioctl(1, termios.FIONREAD, unread)
    time.sleep(0.001)
pathlib.Path("continued").touch()
os.write(1, b"<promise>FAILURE</promise>\\n")
""")
    done = workspace.work(agent, *ONCE)
    assert (done.code, outcomes(done)) == (1, ["failure, consecutive: 1/1"])
    assert (workspace.path / "continued").exists()


@pytest.mark.long
def test_larger_buffer_keeps_a_signal_that_a_smaller_one_loses(workspace: Workspace) -> None:
    agent = workspace.agent(f"{SUCCESS}; {printing(5000)}")
    lost = workspace.work(agent, "-n", "1", "--max-output-buffer", "1024")
    kept = workspace.work(agent, "-n", "1", "--max-output-buffer", "8KB")
    assert (lost.code, "WARN: AI CLI output exceeded buffer size" in lost.err) == (2, True)
    assert (kept.code, "WARN" in kept.err) == (0, False)


# -- stopping ------------------------------------------------------------------------------


@pytest.fixture
def unkillable() -> Iterator[str]:
    """An agent that survives SIGKILL: it freezes itself in a cgroup."""
    with frozen_cgroup() as group:
        freeze = f"echo $$ > {group}/cgroup.procs; echo FROZEN > {group}/freezer.state"
        yield f"trap '' TERM; echo $$ > agent.pid; {freeze}; sleep 60"


@pytest.mark.long
def test_run_continues_after_a_timeout_of_an_unkillable_agent(
    workspace: Workspace, nursery: Nursery, unkillable: str
) -> None:
    agent = workspace.agents(unkillable, SUCCESS)
    clocks = ("--iteration-timeout", "3", "--kill-grace", "0")
    done = nursery.start(workspace, "work", "--ai-cmd", agent, *clocks).finish()
    pid = nursery.pid("agent")
    assert alive(pid)
    warning = "WARN: AI CLI is still running after SIGKILL"
    assert any(line.startswith(f"{warning} pid={pid} ") for line in done.log)
    assert outcomes(done) == ["failure, consecutive: 1/3", "success"]
    assert done.code == 0


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_rooda_exits_after_a_signal_despite_an_unkillable_agent(
    workspace: Workspace, nursery: Nursery, unkillable: str, number: signal.Signals
) -> None:
    agent = workspace.agent(unkillable)
    running = nursery.start(workspace, "work", "--ai-cmd", agent, "--kill-grace", "0")
    pid = nursery.pid("agent")
    until(lambda: "FROZEN" in state_of_freezer(pid), "the agent is frozen")
    running.signal(number)
    done = running.finish()
    assert alive(pid)
    assert any(line.startswith("WARN: AI CLI is still running after SIGKILL") for line in done.log)
    assert done.code == 130


@pytest.mark.real
@pytest.mark.parametrize(
    "ignores", ["SIGUSR1", "SIGTERM"], ids=["obeys SIGTERM", "ignores SIGTERM"]
)
def test_interrupted_agent_is_no_zombie(tmp_path: Path, ignores: str) -> None:
    interrupts = Interrupts()
    pids: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, Output):
            pids.append(int(event.data))
            interrupts.received.append(signal.SIGINT)

    ready = "os.write(1, b'%d' % os.getpid())"
    body = f"import os, signal as s; s.signal(s.{ignores}, s.SIG_IGN); {ready}; s.pause()"
    (tmp_path / "prompt").touch()
    with (tmp_path / "prompt").open("rb") as stdin:
        argv = (sys.executable, "-S", "-c", body)
        request = ProcessRequest(argv, tmp_path, os.environ, stdin, 1024, kill_grace=0.2)
        with Runner() as runner:
            result = runner.run(request, interrupts, listen)
    assert result.exit == Interrupted(signal.SIGINT)
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)


# -- the log -------------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "said,end,how",
    [
        ("", "exit 7", "exit_code=7"),
        ("", CRASH, "signal=SIGSEGV exit_code=139"),
        (FAILURE, "exit 0", "exit_code=0 promise_signal=FAILURE"),
    ],
    ids=["exit", "crash", "FAILURE"],
)
def test_failure_is_logged_with_its_context(
    workspace: Workspace, said: str, end: str, how: str
) -> None:
    flood = printing(3000)
    body = f"printf begin-; {flood}; {said or ':'}; {flood}; echo -end; {end}"
    agent = workspace.agent(body)
    done = workspace.work(agent, *ONCE, "--log-format", "logfmt")
    (line,) = [line for line in done.log if line.startswith("ERROR AI CLI failed ")]
    found = re.fullmatch(
        rf"ERROR AI CLI failed {how} consecutive_failures=1 threshold=1 iteration=1 "
        rf"elapsed=\d+\.\ds command={re.escape(agent)} output_first=(begin-x+) "
        r'output_last="(x+\\n-end)" suggestion=".+"',
        line,
    )
    assert found, line
    assert [len(text.replace("\\n", "\n")) for text in found.groups()] == [500, 500]
    assert done.log[-1].startswith("ERROR Loop aborted consecutive_failures=1 threshold=1 ")


EXAMPLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], int, tuple[str, ...]]] = {
    "consecutive failures": (
        ("exit 1",),
        (),
        1,
        (
            "INFO Starting iteration 1/5 procedure=work",
            "ERROR AI CLI failed exit_code=1 consecutive_failures=1 threshold=3",
            "INFO Starting iteration 2/5 procedure=work",
            "ERROR AI CLI failed exit_code=1 consecutive_failures=2 threshold=3",
            "INFO Starting iteration 3/5 procedure=work",
            "ERROR AI CLI failed exit_code=1 consecutive_failures=3 threshold=3",
            "ERROR Loop aborted consecutive_failures=3 threshold=3",
        ),
    ),
    "failure followed by success": (
        ("exit 1", SUCCESS),
        (),
        0,
        (
            "INFO Starting iteration 1/5 procedure=work",
            "ERROR AI CLI failed exit_code=1 consecutive_failures=1 threshold=3",
            "INFO Starting iteration 2/5 procedure=work",
            "INFO AI CLI succeeded promise_signal=SUCCESS",
            "INFO Loop completed status=success iterations=2 total_elapsed=Xs",
        ),
    ),
    "signal overrides exit code": (
        (f"{SUCCESS}; exit 1",),
        (),
        0,
        (
            "INFO Starting iteration 1/5 procedure=work",
            (
                "WARN AI CLI exited with non-zero code but promise signal indicates success "
                "exit_code=1 promise_signal=SUCCESS"
            ),
            "INFO Loop completed status=success iterations=1 total_elapsed=Xs",
        ),
    ),
    "output buffer overflow": (
        ("head -c 5242880 /dev/zero", SUCCESS),
        ("--max-output-buffer", "1048576"),
        0,
        (
            "INFO Starting iteration 1/5 procedure=work",
            (
                "WARN AI CLI output exceeded buffer size actual_size=5242880 "
                "buffer_limit=1048576 action=truncating_from_beginning"
            ),
            "INFO Completed iteration 1/5 elapsed=Xs status=success truncated=true",
            "INFO Starting iteration 2/5 procedure=work",
            "INFO AI CLI succeeded promise_signal=SUCCESS",
            "INFO Loop completed status=success iterations=2 total_elapsed=Xs",
        ),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("bodies,args,code,lines", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_log_lines_in_logfmt(
    workspace: Workspace,
    bodies: tuple[str, ...],
    args: tuple[str, ...],
    code: int,
    lines: tuple[str, ...],
) -> None:
    done = workspace.work(workspace.agents(*bodies), *args, "--log-format", "logfmt")
    assert done.code == code
    for found, start in zip(timeless(done), lines, strict=True):
        assert found == start or found.startswith(f"{start} ")
