"""The built-in `build` without a plan, a task, a context or a tracker says so before it starts."""

from pathlib import Path

import pytest

from support.workspace import PROCEDURE, Workspace

NO_WORK = "`build` has nothing to work on"
OWN = "    observe: [{content: look}]\n"


def start(workspace: Workspace, *flags: str, name: str = "build") -> str:
    """What a run of one iteration prints."""
    done = workspace.rooda(name, "--ai-cmd", "true", "-n", "1", *flags)
    assert done.code == 2, done.err
    return done.err


@pytest.mark.real
def test_build_without_a_plan_and_a_task_warns_before_the_agent_starts(
    workspace: Workspace,
) -> None:
    done = workspace.rooda("build", "--ai-cmd", workspace.agent("exit 0"), "-n", "1")
    assert done.code == 2
    (warning,) = [line for line in done.log if NO_WORK in line]
    assert warning.startswith("WARN: ")
    assert str(workspace.path) in warning
    tried = done.err.partition(warning)[2].splitlines()[1]
    assert tried.startswith("  Try: ")
    for advice in ("TASK.md", "-c TEXT", "rooda draft-plan-impl-feat"):
        assert advice in tried
    assert done.err.index(NO_WORK) < done.err.index("Iteration 1/1 starting")


def test_the_dry_run_of_build_without_work_is_valid(workspace: Workspace) -> None:
    """It costs nothing, and its format is fixed."""
    done = workspace.rooda("build", "--ai-cmd", "true", "--dry-run")
    assert (done.code, NO_WORK in done.out) == (0, False)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["PLAN.md", "TASK.md"])
def test_build_with_a_plan_or_a_task_does_not_warn(workspace: Workspace, name: str) -> None:
    workspace.write(name, "# Do this\n")
    assert NO_WORK not in start(workspace)


@pytest.mark.real
def test_build_with_a_context_does_not_warn(workspace: Workspace) -> None:
    assert NO_WORK not in start(workspace, "-c", "make it faster")


@pytest.mark.real
def test_build_below_the_root_finds_the_plan_at_the_root(workspace: Workspace) -> None:
    (workspace.path / ".git").mkdir()
    (workspace.path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    workspace.write("PLAN.md", "# Do this\n")
    below = Workspace(workspace.path / "part", workspace.home)
    below.path.mkdir()
    assert NO_WORK not in start(below)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "agents,warns",
    [
        ("Test: make test\n", True),
        ("Work tracking: none. Tasks are kept in `PLAN.md`.\n", True),
        ("Work tracking: `bd ready` lists the tasks.\n", False),
        ("Tasks are GitHub issues: `gh issue list`.\n", False),
        ("The plan is in `docs/PLAN.md`.\n", False),
        ("", True),
    ],
    ids=["no tracker", "the plan", "a tracker", "issues", "a plan elsewhere", "empty"],
)
def test_a_tracker_in_agents_md_counts_as_work(
    workspace: Workspace,
    agents: str,
    warns: bool,  # noqa: FBT001 - a column
) -> None:
    workspace.write("AGENTS.md", agents)
    assert (NO_WORK in start(workspace)) is warns


@pytest.mark.real
def test_an_agents_md_that_is_a_folder_is_not_an_error(workspace: Workspace) -> None:
    Path(workspace.path, "AGENTS.md").mkdir()
    assert NO_WORK in start(workspace)


@pytest.mark.real
def test_a_procedure_of_the_user_does_not_warn(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    assert NO_WORK not in start(workspace, name="work")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("where", ["config", "flag"])
def test_build_with_a_phase_of_the_user_does_not_warn(workspace: Workspace, where: str) -> None:
    if where == "config":
        workspace.config(f"procedures:\n  build:\n{OWN}")
        assert NO_WORK not in start(workspace)
    else:
        assert NO_WORK not in start(workspace, "--observe", "look at the whole of it")


@pytest.mark.real
def test_build_with_a_setting_of_the_user_warns(workspace: Workspace) -> None:
    workspace.config("procedures: {build: {default_max_iterations: 9}}")
    assert NO_WORK in start(workspace)


@pytest.mark.real
def test_a_procedure_that_makes_a_plan_does_not_warn(workspace: Workspace) -> None:
    assert NO_WORK not in start(workspace, name="bootstrap")
