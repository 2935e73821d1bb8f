"""Presets through the installed command: policy as data, each value of it can be overridden."""

import pytest

from support.recorded import versioned
from support.workspace import Workspace

CHANGE = "echo more >> made"

LOOP = "======================== LOOP {} ========================"


def test_v1_runs_to_its_maximum_whatever_the_agent_says_and_does(workspace: Workspace) -> None:
    agent = workspace.agents("exit 7", "echo '<promise>SUCCESS</promise>'", "kill -SEGV $$")
    done = workspace.work(agent, "--preset", "v1", "-n", "3")
    assert done.code == 0
    assert workspace.starts == 3
    assert [LOOP.format(n) in done.err for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert any(line.startswith("Reached max iterations: 3") for line in done.log)


@pytest.mark.parametrize(
    "config,args",
    [
        ("loop: {preset: v1}", ["-n", "0"]),
        ("loop: {preset: v1, default_max_iterations: 0}", []),
        ("loop: {preset: v1}", []),
    ],
    ids=["flag", "file", "preset"],
)
def test_v1_is_unlimited_by_default_and_with_0(
    workspace: Workspace, config: str, args: list[str]
) -> None:
    workspace.config(config)
    done = workspace.rooda("build", "--ai-cmd", "true", "--dry-run", *args)
    assert done.code == 0
    assert "Max Iterations: unlimited" in done.out


def test_v1_takes_its_own_agent_and_its_own_word_for_the_maximum(workspace: Workspace) -> None:
    workspace.agent("cat > /dev/null", name="bin/kiro-cli")
    workspace.config("loop: {preset: v1, default_iterations: 2}")
    path = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    done = workspace.rooda("build", env={"PATH": path})
    assert done.code == 0
    assert any(line.startswith("Reached max iterations: 2") for line in done.log)


@pytest.mark.slow
def test_v1_loops_in_a_folder_without_git_and_says_that_it_cannot_push(
    workspace: Workspace,
) -> None:
    done = workspace.work(workspace.agents("exit 0"), "--preset", "v1", "-n", "2")
    assert (done.code, workspace.starts) == (0, 2)
    assert "WARN: git.push is on, but " in done.err
    quiet = workspace.work(workspace.agents("exit 0"), "--preset", "v1", "-n", "2", "--no-push")
    assert "git.push" not in quiet.err


def test_a_value_of_a_preset_can_be_overridden(workspace: Workspace) -> None:
    agent = workspace.agent("exit 7")
    done = workspace.work(agent, "--preset", "v1", "-n", "9", "--no-ignore-exit-status")
    assert done.code == 1
    assert any("Aborting after 3 consecutive failures" in line for line in done.log)


def test_ralph_ends_with_complete_on_standard_output_alone(workspace: Workspace) -> None:
    versioned(workspace)
    complete = "<promise>COMPLETE</promise>"
    agent = workspace.agents(
        f"{CHANGE}; echo '<promise>SUCCESS</promise>'",
        f"{CHANGE}; echo '{complete}' >&2",
        f"echo '{complete}'",
    )
    done = workspace.work(agent, "--preset", "ralph")
    assert done.code == 0
    assert workspace.starts == 3
    assert "Completed: AI signaled COMPLETE (3 iterations" in done.err
    assert complete in done.err, "the output is always shown, on standard error"
    assert done.out == ""


@pytest.mark.slow
def test_ralph_reaches_its_maximum_with_exit_0(workspace: Workspace) -> None:
    versioned(workspace)
    agent = workspace.agents(CHANGE)
    done = workspace.work(agent, "--preset", "ralph", "-q")
    assert (done.code, workspace.starts) == (0, 10)


def test_ralph_needs_a_repository(workspace: Workspace) -> None:
    done = workspace.work("true", "--preset", "ralph")
    assert done.code == 1
    assert "git.commit is on, but " in done.err


def test_an_unknown_preset_is_an_error_with_a_near_miss(workspace: Workspace) -> None:
    done = workspace.work("true", "--preset", "rlph")
    assert done.code == 1
    assert "Did you mean 'ralph'?" in done.err


def test_the_built_in_prompts_speak_the_policy_s_words(workspace: Workspace) -> None:
    workspace.write("mine.md", "My own words: <promise>SUCCESS</promise>\n")
    args = ("--signals-success", "DONE", "--signals-failure", "STUCK", "--orient", "mine.md")
    done = workspace.rooda("build", "--ai-cmd", "true", "--dry-run", *args)
    assert done.code == 0
    assert "<promise>DONE</promise>" in done.out
    assert "<promise>STUCK</promise>" in done.out
    assert "<promise>FAILURE</promise>" not in done.out
    assert "My own words: <promise>SUCCESS</promise>" in done.out, "the user's text stays"
