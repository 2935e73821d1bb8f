"""Messages of the installed commands: what happened, where, and what to do next."""

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rooda.world.agents.registry import COMMANDS
from support.gitwork import GitWork, git_work
from support.ralphs import RALPH
from support.workspace import PROCEDURE, Workspace, wait_for

WAITS = "echo begun > begun; exec sleep 100"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


@contextmanager
def running(workspace: Workspace) -> Iterator[None]:
    """While the block runs, a run is running whose agent waits."""
    workspace.config(PROCEDURE)
    run = workspace.start("work", "--ai-cmd", workspace.agent(WAITS))
    try:
        wait_for(workspace.path / "begun")
        yield
    finally:
        run.signal(signal.SIGTERM)
        run.finish()


# -- commands without what they need -------------------------------------------------------------


def test_rooda_without_arguments_prints_the_first_steps_and_not_the_whole_help(
    workspace: Workspace,
) -> None:
    done = workspace.rooda()
    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0] == "Error: name a procedure or a command"
    assert lines[-1] == "  Try `rooda --help`"
    assert "  rooda demo " in done.err
    assert len(lines) <= 8
    assert "Usage:" not in done.err


@pytest.mark.real
def test_ralph_without_arguments_prints_the_first_steps_and_not_the_whole_help(
    workspace: Workspace,
) -> None:
    done = subprocess.run(
        [RALPH],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == "Error: name a mode: plan, build or prompt"
    assert lines[-1] == "  Try `ralph --help`"
    assert "Usage:" not in done.stderr


def test_rooda_config_without_a_command_names_its_commands(workspace: Workspace) -> None:
    done = workspace.rooda("config")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "Error: name a command of `rooda config`: show, check, schema\n"
        "  Try `rooda config --help`\n"
    )


@pytest.mark.parametrize("command", ["show", "why", "follow"])
def test_reading_commands_without_any_run_say_how_to_start_one(
    workspace: Workspace, command: str
) -> None:
    done = workspace.rooda(command)
    assert done.code == 1
    assert "Error: no run has been recorded here yet" in done.err
    assert "Start one with `rooda PROCEDURE` (`rooda list` shows the procedures)" in done.err
    assert "rooda history" not in done.err


def test_history_without_any_run_says_how_to_start_one(workspace: Workspace) -> None:
    done = workspace.rooda("history")
    assert done.code == 0
    assert "Start one with `rooda PROCEDURE`" in done.err


@pytest.mark.long
def test_show_with_an_unknown_run_points_to_history(workspace: Workspace) -> None:
    workspace.work(workspace.agent("exit 0"), "-n", "1")
    done = workspace.rooda("show", "no-such-run")
    assert done.code == 1
    assert "Choose a run from `rooda history`" in done.err


def test_a_run_without_an_agent_names_every_built_in_alias(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    done = workspace.rooda("work")
    assert done.code == 1
    named = re.search(r"built-in alias \((.*?)\)", done.err)
    assert named is not None
    assert sorted(named[1].split(", ")) == sorted(COMMANDS)


@pytest.mark.real
def test_doctor_without_an_agent_says_so_at_its_end(workspace: Workspace) -> None:
    tools = workspace.home / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(shutil.which(name) or name)
    done = workspace.rooda("doctor", env={"PATH": str(tools)})
    last = done.out.splitlines()[-1]
    assert last.startswith("No agent was found: install one")
    assert "--ai-cmd" in last


@pytest.mark.parametrize("value", ["0", "-5"])
def test_a_timeout_that_is_not_positive_is_named(workspace: Workspace, value: str) -> None:
    workspace.config(f"loop: {{iteration_timeout: {value}}}\n{PROCEDURE}")
    done = workspace.work("true")
    assert done.code == 1
    assert f"loop.iteration_timeout: timeout must be positive, not {value}\n" in done.err
    assert "Set to a positive number of seconds, or remove to disable timeout" in done.err
    assert "nil" not in done.err


@pytest.mark.parametrize("key", ["commit_timeout", "push_timeout"])
def test_a_timeout_that_cannot_be_unset_does_not_advise_to_remove_it(
    workspace: Workspace, key: str
) -> None:
    workspace.config(f"loop: {{git: {{{key}: 0}}}}\n{PROCEDURE}")
    done = workspace.work("true")
    assert done.code == 1
    assert "Set to 1 second or more, such as " in done.err
    assert "remove" not in done.err


# -- a run that is running -----------------------------------------------------------------------


@pytest.mark.long
def test_a_second_run_is_told_to_use_rooda_stop(workspace: Workspace) -> None:
    with running(workspace):
        refused = workspace.rooda("work", "--ai-cmd", "true")
    assert refused.code == 1
    assert "or end it with `rooda stop` in that folder" in refused.err
    assert "kill" not in refused.err


@pytest.mark.real
def test_why_on_a_running_iteration_says_that_it_is_running(workspace: Workspace) -> None:
    with running(workspace):
        found = [workspace.rooda(*words).out for words in (["why"], ["why", "1"])]
    for text in found:
        assert "It is running: there is no verdict yet." in text
        assert "interrupted" not in text
    assert "running" not in workspace.rooda("why").out


# -- verify, commit and push ---------------------------------------------------------------------


@pytest.mark.long
def test_a_failed_verify_is_explained_by_verify_and_not_by_the_agent(workspace: Workspace) -> None:
    done = workspace.work(
        workspace.agent("sleep 0.2; exit 0"), "-n", "1", "--verify", "echo no; exit 7"
    )
    assert "WARN: Verify failed: exit code 7 after " in done.err
    assert "Reason: " not in done.err, "the warning just above has told it"
    text = workspace.rooda("why").out
    evidence = next(line for line in text.splitlines() if line.startswith("Evidence: "))
    assert evidence.startswith("Evidence: exit code 7 after ")
    assert evidence.endswith(" from echo no; exit 7")
    assert "Exit code of the agent: 0\n" in text
    assert "\nVerify printed (echo no; exit 7):\n  no\n" in text


@pytest.mark.long
def test_a_silent_failed_verify_has_no_empty_heading(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("exit 0"), "-n", "1", "--verify", "exit 7")
    at = [n for n, line in enumerate(done.err.splitlines()) if "WARN: Verify failed" in line]
    assert done.err.splitlines()[at[0] + 1] == "  Output: none"


@pytest.mark.real
def test_a_talking_failed_verify_is_quoted(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("exit 0"), "-n", "1", "--verify", "echo no; exit 7")
    assert "  Last output:\n    | no\n" in done.err


@pytest.mark.long
def test_no_changes_is_not_explained_by_the_exit_code_of_the_agent(work: GitWork) -> None:
    work.work(work.agent("exit 0"), "-n", "1", "--git-require-changes")
    text = work.rooda("why").out
    assert "Evidence: the files and HEAD are as they were before the iteration\n" in text


@pytest.mark.real
def test_a_failed_hook_is_explained_by_the_hook(workspace: Workspace) -> None:
    hooks = "loop: {hooks: {post_iteration: {command: exit 9, on_error: fail}}}"
    workspace.config(f"{hooks}\n{PROCEDURE}")
    workspace.work(workspace.agent("exit 0"), "-n", "1")
    assert "Evidence: exit code 9 from exit 9\n" in workspace.rooda("why").out


@pytest.mark.long
def test_a_failed_push_after_the_last_iteration_promises_no_retry(work: GitWork) -> None:
    work.git("remote", "set-url", "origin", str(work.path / "nowhere"))
    agent = work.agent("git commit -q --allow-empty -m x")
    done = work.work(agent, "-n", "2", "--push")
    pushes = [line for line in done.log if "Push failed" in line]
    assert pushes == [
        "WARN: Push failed; the next iteration tries again",
        "WARN: Push failed; this was the last iteration",
    ]
    assert done.err.count("; then push by hand: git push") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "body,flags",
    [
        ("echo '<promise>SUCCESS</promise>'", ["-n", "9"]),
        ("exit 1", ["-n", "9", "--failure-threshold", "1"]),
    ],
    ids=["success", "failure threshold"],
)
def test_a_failed_push_at_the_end_of_a_run_promises_no_retry(
    work: GitWork, body: str, flags: list[str]
) -> None:
    work.git("remote", "set-url", "origin", str(work.path / "nowhere"))
    done = work.work(work.agent(f"git commit -q --allow-empty -m x; {body}"), "--push", *flags)
    assert "WARN: Push failed; this was the last iteration" in done.err
    assert "tries again" not in done.err


# -- summaries -----------------------------------------------------------------------------------


@pytest.mark.long
def test_show_leaves_the_signal_out_of_the_summary(workspace: Workspace) -> None:
    body = "printf 'Summary: it works now\\nall tests pass\\n<promise>SUCCESS</promise>\\n'"
    workspace.work(workspace.agent(body), "-n", "1")
    for words in (["show"], ["show", "1"]):
        text = workspace.rooda(*words).out
        assert "it works now" in text
        assert "promise" not in text
    assert "<promise>SUCCESS</promise>" in workspace.rooda("show", "1", "--json").out


@pytest.mark.long
def test_a_commit_message_leaves_the_signal_out_of_the_summary(work: GitWork) -> None:
    work.config(f"loop: {{git: {{message: 'done: {{summary}}'}}}}\n{PROCEDURE}")
    work.commit("config")
    body = "touch new; printf 'Summary: it works\\n<promise>SUCCESS</promise>\\n'"
    work.work(work.agent(body), "-n", "1", "--commit")
    assert work.git("log", "-1", "--format=%s") == "done: it works"


@pytest.mark.long
def test_words_before_failure_are_the_reason(work: GitWork) -> None:
    agent = work.agents(
        "echo 'I looked around.'; echo; echo 'The API key is missing,'; echo 'so I stop.'; echo; "
        "echo '<promise>FAILURE</promise>'"
    )
    assert work.work(agent, "--failure-threshold", "1").code == 1
    said = "the agent says that it is blocked: The API key is missing, so I stop."
    assert f"Reason: {said}" in work.rooda("why").out
    assert "signal: The API key is missing, so I stop.\n" in work.rooda("show").out
    assert said in work.rooda("show", "1").out
    assert said in work.rooda("history").out


@pytest.mark.real
def test_words_on_the_line_of_failure_are_the_reason(work: GitWork) -> None:
    agent = work.agents("echo 'No network. <promise>FAILURE</promise>'")
    work.work(agent, "-n", "1")
    assert work.record()[0]["reason"] == "the agent says that it is blocked: No network."


@pytest.mark.long
def test_last_line_on_standard_error_explains_a_bad_exit(work: GitWork) -> None:
    agent = work.agents("echo first >&2; echo 'disk quota exceeded' >&2; echo; exit 3")
    assert work.work(agent, "--failure-threshold", "1").code == 1
    said = "exit code 3: disk quota exceeded"
    assert f"Reason: {said}" in work.rooda("why").out
    assert said in work.rooda("show").out
    assert said in work.rooda("history").out
