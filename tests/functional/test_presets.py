"""Presets through the installed command: their values, and overrides of single values."""

import re

import pytest

from support.recorded import versioned
from support.workspace import Workspace

CHANGE = "echo more >> made"

LOOP = "======================== LOOP {} ========================"


@pytest.mark.long
def test_v1_runs_to_its_maximum_whatever_the_agent_prints_and_exits_with(
    workspace: Workspace,
) -> None:
    agent = workspace.agents("exit 7", "echo '<promise>SUCCESS</promise>'", "kill -SEGV $$")
    done = workspace.work(agent, "--preset", "v1", "-n", "3")
    assert done.code == 0
    assert workspace.starts == 3
    assert [LOOP.format(n) in done.err for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert any(line.startswith("Reached max iterations: 3") for line in done.log)


@pytest.mark.real(rows=1)
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


@pytest.mark.long
def test_v1_uses_kiro_cli_and_accepts_default_iterations(workspace: Workspace) -> None:
    workspace.agent("cat > /dev/null", name="bin/kiro-cli")
    workspace.config("loop: {preset: v1, default_iterations: 2}")
    path = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    done = workspace.rooda("build", env={"PATH": path})
    assert done.code == 0
    assert any(line.startswith("Reached max iterations: 2") for line in done.log)


@pytest.mark.long
def test_v1_runs_without_a_repository_and_warns_that_it_cannot_push(
    workspace: Workspace,
) -> None:
    done = workspace.work(workspace.agents("exit 0"), "--preset", "v1", "-n", "2")
    assert (done.code, workspace.starts) == (0, 2)
    assert "WARN: git.push is on, but " in done.err
    quiet = workspace.work(workspace.agents("exit 0"), "--preset", "v1", "-n", "2", "--no-push")
    assert "git.push" not in quiet.err


@pytest.mark.real
def test_setting_overrides_a_value_of_a_preset(workspace: Workspace) -> None:
    agent = workspace.agent("exit 7")
    done = workspace.work(agent, "--preset", "v1", "-n", "9", "--no-ignore-exit-status")
    assert done.code == 1
    assert any("Aborting after 3 consecutive failures" in line for line in done.log)


@pytest.mark.long
def test_ralph_ends_with_complete_only_on_standard_output(workspace: Workspace) -> None:
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


@pytest.mark.long
def test_ralph_exits_with_0_at_its_maximum(workspace: Workspace) -> None:
    versioned(workspace)
    agent = workspace.agents(CHANGE)
    done = workspace.work(agent, "--preset", "ralph", "-q")
    assert (done.code, workspace.starts) == (0, 10)


@pytest.mark.real
def test_ralph_needs_a_repository(workspace: Workspace) -> None:
    done = workspace.work("true", "--preset", "ralph")
    assert done.code == 1
    assert "git.commit is on, but " in done.err


def test_unknown_preset_is_an_error_with_a_suggestion(workspace: Workspace) -> None:
    done = workspace.work("true", "--preset", "rlph")
    assert done.code == 1
    assert "Did you mean 'ralph'?" in done.err


def test_built_in_prompts_use_the_configured_signals(workspace: Workspace) -> None:
    workspace.write("mine.md", "My own words: <promise>SUCCESS</promise>\n")
    args = ("--signals-success", "DONE", "--signals-failure", "STUCK", "--orient", "mine.md")
    done = workspace.rooda("build", "--ai-cmd", "true", "--dry-run", *args)
    assert done.code == 0
    assert "<promise>DONE</promise>" in done.out
    assert "<promise>STUCK</promise>" in done.out
    assert "<promise>FAILURE</promise>" not in done.out
    assert "My own words: <promise>SUCCESS</promise>" in done.out, (
        "the user's own prompt is unchanged"
    )


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "flags,tags",
    [
        (("--preset", "ralph"), {"<promise>COMPLETE</promise>"}),
        (("--preset", "v1"), set()),
        (("--signals-success", "none"), {"<promise>FAILURE</promise>"}),
    ],
)
def test_built_in_prompts_do_not_ask_for_signals_that_are_ignored(
    workspace: Workspace, flags: tuple[str, ...], tags: set[str]
) -> None:
    no_git = ("--no-commit", "--no-git-require-changes")
    done = workspace.rooda("build", "--ai-cmd", "true", "--dry-run", *no_git, *flags)
    assert done.code == 0
    assert set(re.findall(r"<promise>\w+</promise>", done.out)) == tags
    assert done.out.count("### How to end") == 1
