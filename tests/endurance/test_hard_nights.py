"""What agents, users and machines do to a run, and what the user can read the next morning."""

import json
import subprocess
from pathlib import Path

import pytest

from support.workspace import ROODA, Workspace

pytestmark = pytest.mark.long

# rooda writes the note of the run while the agent starts: it would undo any earlier damage.
NOTED = 'while ! grep -q "\\[$$," $STATE/run.json; do sleep 0.01; done'
SUCCESS = "echo '<promise>SUCCESS</promise>'"


def test_agent_that_greps_the_workspace_gives_no_signal(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--ai-cmd", "grep -rn Done .", "-n", "2")
    assert done.code == 2


def test_agent_that_prints_its_prompt_as_json_gives_no_signal(workspace: Workspace) -> None:
    body = "import json, sys\nprint(json.dumps({'role': 'user', 'content': sys.stdin.read()}))\n"
    echo = workspace.python_agent(body)
    assert workspace.rooda("build", "--ai-cmd", echo, "-n", "2").code == 2
    answer = "print(json.dumps({'text': 'ready\\n<promise>SUCCESS</promise>'}))\n"
    both = workspace.python_agent(body + answer, name="both.py")
    assert workspace.rooda("build", "--ai-cmd", both, "-n", "2").code == 0


def test_excerpt_has_the_last_output_of_either_stream(workspace: Workspace) -> None:
    noise = "i=0; while [ $i -lt 60 ]; do echo deprecated >&2; i=$((i+1)); done; sleep 0.1"
    words = "echo BLOCKED: the password is missing; echo '<promise>FAILURE</promise>'"
    body = f"{noise}; head -c 3000 /dev/zero | tr '\\0' w; echo; {words}"
    done = workspace.work(workspace.agent(body), "-n", "1")
    assert "BLOCKED: the password is missing" in done.err


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_state_folder_that_is_a_symlink_is_not_followed(workspace: Workspace, when: str) -> None:
    target = workspace.path / "src"
    target.mkdir(mode=0o755)
    (target / "prompt.md").write_text("mine")
    link = f"rm -rf {workspace.state}; ln -s {target} {workspace.state}"
    if when == "before":
        workspace.state.parent.mkdir(parents=True)
        subprocess.run(["sh", "-c", link], cwd=workspace.path, check=True)
    done = workspace.work(workspace.agents(f"{NOTED}; {link}", SUCCESS))
    assert (target / "prompt.md").read_text() == "mine"
    assert sorted(path.name for path in target.iterdir()) == ["prompt.md"]
    assert target.stat().st_mode & 0o777 == 0o755
    if when == "before":
        assert done.code == 1
        assert "is a symbolic link; move it away" in done.err
    else:
        assert done.code == 0, "the run continues with a temporary file"
        assert "WARN: The state folder can't be written" in done.err


def test_file_in_place_of_the_state_folder_is_named(workspace: Workspace) -> None:
    workspace.write(str(workspace.state), "in the way")
    done = workspace.work("true")
    assert done.code == 1
    assert f"{workspace.state}, which is not a folder" in done.err
    assert "Set ROODA_STATE_HOME" in done.err


def test_agent_that_deletes_the_state_folder_gets_its_next_prompt(workspace: Workspace) -> None:
    agent = workspace.agents("rm -rf $STATE", "cat > got; " + SUCCESS)
    assert workspace.work(agent).code == 0
    assert (workspace.path / "got").read_text().startswith("# OODA Loop Iteration")


def test_log_file_that_the_agent_deletes_is_reopened(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("rm -f run.log"), "-n", "3", "--log-file", "run.log")
    assert done.code == 2
    assert "Reached max iterations: 3" in (workspace.path / "run.log").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_log_file_on_a_full_disk_is_reported_once(workspace: Workspace) -> None:
    done = workspace.work("true", "-n", "3", "--log-file", "/dev/full")
    assert done.code == 2
    assert done.err.count("ERROR: A log or view failed") == 1
    assert "No space left on device" in done.err


def test_problems_before_the_start_are_in_the_log_file(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--log-file", "run.log", "--log-format", "json")
    assert done.code == 1
    first = (workspace.path / "run.log").read_text().splitlines()[0]
    assert json.loads(first)["title"] == "No AI command configured"


@pytest.mark.parametrize(
    "words,advice",
    [
        ("FOO=1 true", "--env NAME=VALUE"),
        ("true | tee x", "is not handed to a shell"),
        ("/tmp", "Correct the path"),
    ],
)
def test_command_that_needs_a_shell_gets_advice(
    workspace: Workspace, words: str, advice: str
) -> None:
    done = workspace.work(words, "-n", "1")
    assert advice in done.err


def test_tilde_in_the_command_is_the_home_folder(workspace: Workspace) -> None:
    agent = workspace.home / "agent"
    agent.write_text(f"#!/bin/sh\n{SUCCESS}\n")
    agent.chmod(0o755)
    assert workspace.work("~/agent").code == 0


def test_config_that_is_a_dangling_symlink_is_an_error(workspace: Workspace) -> None:
    (workspace.path / "rooda-config.yml").symlink_to("gone.yml")
    done = workspace.rooda("build", "--ai-cmd", "true")
    assert done.code == 1
    assert "is a link to nothing" in done.err


def test_same_word_for_success_and_failure_is_an_error(workspace: Workspace) -> None:
    done = workspace.work("true", "--signals-success", "FAILURE")
    assert done.code == 1
    assert "is the word for success and for failure" in done.err


def test_config_check_warns_about_a_missing_program(workspace: Workspace) -> None:
    workspace.config("loop: {ai_cmd: nosuch-agent}")
    done = workspace.rooda("config", "check")
    assert done.code == 0
    assert "Warning: rooda-config.yml:1: loop.ai_cmd: AI command binary not found" in done.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("words", ["--version", "list", "config show"])
def test_closed_streams_cause_no_internal_error(
    workspace: Workspace, words: str, closed: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{ROODA} {words} {closed}"],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert "Internal error" not in done.stderr


def test_dry_run_does_not_show_secrets(workspace: Workspace) -> None:
    done = workspace.work("true", "--dry-run", "--env", "TOKEN=hunter2", "--env=KEY=hunter2")
    assert done.code == 0
    assert "hunter2" not in done.out
    assert "--env TOKEN=..." in done.out
