"""`ralph` through the installed command: modes, attempts, exit codes and files."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.world.agents.registry import COMMANDS
from support.ralphs import COMPLETE, PLAN, Ralphs, ralph_work
from support.workspace import PROCEDURE, Workspace, alive, wait_for

WORKS = "date +%N >> work"
NO_PLAN = "Implementation plan not found. Run 'ralph plan' first."


@pytest.fixture
def unplanned(workspace: Workspace) -> Iterator[Ralphs]:
    """Yield a repository without a plan."""
    with ralph_work(workspace) as found:
        yield found


@pytest.fixture
def work(unplanned: Ralphs) -> Ralphs:
    """Return a repository that has a plan."""
    unplanned.plan()
    return unplanned


@pytest.fixture
def planned(work: Ralphs) -> Ralphs:
    """Return a repository that has a plan, for tests that need it."""
    return work


def completes_task(number: int) -> str:
    """Return a command that sets a task of the plan to complete."""
    expression = f"/Task {number}:/,/Status/s/Status: .*/Status: complete/"
    return f"{WORKS}; sed -i.bak '{expression}' .ralph/implementation_plan.md; rm .ralph/*.bak"


# -- the modes -----------------------------------------------------------------------------


@pytest.mark.long
def test_new_user_can_plan_and_build_in_an_empty_repository(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        for name in (".ralph", "specs", "AGENTS.md"):
            work.git("rm", "-qr", name)
        done = work.ralph("init")
        assert (done.code, done.err) == (0, "")
        created = [line.split()[1] for line in done.out.splitlines() if line.startswith("created")]
        assert sorted(created) == work.git("ls-files", "-o", "--exclude-standard").split()
        assert ".ralph/prompts/build.md" in created
        text = work.write(str(work.tools / "plan.md"), PLAN)
        work.agent_does(
            f"cp {text} .ralph/implementation_plan.md",
            COMPLETE,
            completes_task(1),
            f"{completes_task(2)}; {COMPLETE}",
        )
        assert work.ralph("plan").code == 0
        assert work.ralph("build").code == 0
        assert work.commits() == [
            "plan: iteration 1 - Refresh the implementation plan",
            "build: iteration 1 - Read the file",
            "build: iteration 2 - Write the file",
        ]
        assert work.git("status", "--porcelain") == ""
        history = work.rooda("history").out.splitlines()
        assert [line.split()[3:6] for line in history[1:]] == [
            ["ralph", "build", "success"],
            ["ralph", "plan", "success"],
        ]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "arguments,config,maximum",
    [
        ((), {}, 10),
        (("3", "--max-iterations", "4"), {}, 4),
        pytest.param(("3",), {}, 3, marks=pytest.mark.long),
        pytest.param(("--max-iterations=4",), {}, 4, marks=pytest.mark.long),
        pytest.param((), {"DEFAULT_MAX_ITERATIONS": 7}, 7, marks=pytest.mark.long),
        pytest.param(("2",), {"DEFAULT_MAX_ITERATIONS": 7}, 2, marks=pytest.mark.long),
    ],
)
def test_maximum_of_iterations(
    work: Ralphs, arguments: tuple[str, ...], config: dict[str, int], maximum: int
) -> None:
    work.agent_does(COMPLETE, **config)
    done = work.ralph("plan", *arguments)
    assert done.log[0] == f"Starting procedure: ralph plan (max {maximum} iterations)"
    assert done.code == 0


@pytest.mark.long
def test_build_ends_with_exit_0_at_the_maximum(planned: Ralphs) -> None:
    planned.agent_does(WORKS)
    done = planned.ralph("build", "2")
    assert (done.code, planned.starts) == (0, 2)
    assert "Reached max iterations: 2" in done.err
    assert planned.commits() == [f"build: iteration {n} - Read the file" for n in (1, 2)]


@pytest.mark.long
def test_maximum_is_ten_by_default(work: Ralphs) -> None:
    work.agent_does(WORKS)
    assert (work.ralph("plan").code, work.starts) == (0, 10)


@pytest.mark.long
def test_complete_counts_only_on_standard_output_and_exactly_as_written(work: Ralphs) -> None:
    work.agent_does(
        f"{WORKS}; {COMPLETE} >&2",
        f"{WORKS}; echo '<promise>complete</promise>'; echo COMPLETE",
        f"{WORKS}; {COMPLETE}",
    )
    assert (work.ralph("plan").code, work.starts) == (0, 3)
    assert len(work.commits()) == 3, "the iteration with COMPLETE is committed as well"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["plan", pytest.param("build", marks=pytest.mark.long)])
def test_complete_without_changes_is_complete(planned: Ralphs, mode: str) -> None:
    planned.agent_does(COMPLETE)
    done = planned.ralph(mode)
    assert (done.code, planned.starts) == (0, 1)
    assert planned.commits() == []


@pytest.mark.real
def test_prompt_mode_runs_once_without_tests_or_signals_and_commits(planned: Ralphs) -> None:
    planned.in_home("implementation_plan.md", "")
    planned.write("ideas/tidy.md", "# Tidy the cellar\nin ${MODE} mode, round ${ITERATION}\n")
    planned.agent_does(f"{WORKS}; {COMPLETE}", TEST_COMMAND="false", DEFAULT_MAX_ITERATIONS=5)
    done = planned.ralph("prompt", "tidy.md", within="ideas")
    assert (done.code, planned.starts) == (0, 1)
    assert planned.commits() == ["prompt: iteration 1 - Tidy the cellar"]
    assert planned.prompts() == ["# Tidy the cellar\nin prompt mode, round 1\n"]
    assert "SESSION SUMMARY" in planned.log()


@pytest.mark.long
def test_prompt_without_changes_is_a_success_after_one_iteration(work: Ralphs) -> None:
    work.write("ask.md", "What is this?\n")
    work.agent_does("echo a project")
    done = work.ralph("prompt", "ask.md", env={"ROODA_LOOP_DEFAULT_MAX_ITERATIONS": "3"})
    assert (done.code, work.starts) == (0, 1)
    assert work.commits() == []
    assert "Starting procedure: ralph prompt (once)" in done.log
    assert any(line.startswith("Completed (1 iteration, total: ") for line in done.log)
    assert "Exit Reason: the one iteration succeeded\n" in work.log()
    said = f"{done.err}{work.log()}{work.rooda('why').out}".lower()
    assert not [word for word in ("max iterations", "maximum", "max_iterations") if word in said]
    assert work.run_record()["status"] == "success"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("deed,code", [("exit 3", 4), (f"{WORKS}; touch ugly", 5)])
def test_prompt_is_not_retried(work: Ralphs, deed: str, code: int) -> None:
    work.write("ask.md", "# Ask\n")
    work.agent_does(deed)
    work.git_hook("pre-commit", "! test -e ugly")
    assert (work.ralph("prompt", "ask.md").code, work.starts) == (code, 1)


# -- the plan ------------------------------------------------------------------------------


@pytest.mark.real
def test_build_without_a_plan_is_refused(unplanned: Ralphs) -> None:
    unplanned.agent_does(WORKS)
    done = unplanned.ralph("build")
    assert (done.code, unplanned.starts) == (2, 0)
    assert NO_PLAN in done.err
    assert f"Exit Reason: {NO_PLAN}\nExit Code: 2\n" in unplanned.log()


@pytest.mark.real
def test_plan_that_ends_without_a_plan_file_has_failed(unplanned: Ralphs) -> None:
    empty = "echo > .ralph/implementation_plan.md"
    unplanned.agent_does(f"{WORKS}; {COMPLETE}", f"{empty}; {COMPLETE}", WORKS)
    done = unplanned.ralph("plan", "1")
    assert (done.code, unplanned.starts, unplanned.commits()) == (4, 3, [])
    missing = "the run would end without .ralph/implementation_plan.md: No such file or directory"
    assert missing in done.err
    assert "implementation_plan.md: the file is empty" in done.err
    assert "  Try: Read its output: it may have stopped early" in done.err
    assert [one["kind"] for one in unplanned.record()] == ["no-file"]


@pytest.mark.long
def test_only_the_iteration_that_ends_the_run_needs_the_plan_file(unplanned: Ralphs) -> None:
    text = unplanned.write(str(unplanned.tools / "plan.md"), PLAN)
    unplanned.agent_does(WORKS, f"cp {text} .ralph/implementation_plan.md; {COMPLETE}")
    assert (unplanned.ralph("plan").code, unplanned.starts) == (0, 2)
    assert len(unplanned.commits()) == 2


@pytest.mark.long
def test_deleted_plan_ends_the_build_before_the_next_iteration(planned: Ralphs) -> None:
    planned.agent_does(f"{WORKS}; rm .ralph/implementation_plan.md")
    done = planned.ralph("build", "5")
    assert (done.code, planned.starts) == (2, 1)
    assert NO_PLAN in done.err
    assert planned.commits() == ["build: iteration 1 - Read the file"]


# -- attempts and exit codes -----------------------------------------------------------------


@pytest.mark.long
def test_tests_that_fail_three_times_end_the_run_and_keep_the_changes(planned: Ralphs) -> None:
    planned.agent_does("date +%N > work", TEST_COMMAND="echo 2 of 9 failed; exit 1")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (3, 3)
    assert "2 of 9 failed" in done.err
    assert planned.commits() == []
    assert planned.git("status", "--porcelain") == "?? work"


@pytest.mark.real
def test_plan_mode_runs_no_tests(work: Ralphs) -> None:
    work.agent_does(WORKS, TEST_COMMAND="false")
    assert work.ralph("plan", "1").code == 0
    assert len(work.commits()) == 1


@pytest.mark.long
def test_success_resets_the_attempts_and_a_retry_gets_the_same_prompt(
    planned: Ralphs,
) -> None:
    good, bad = f"{WORKS}; touch good", f"{WORKS}; rm -f good"
    planned.in_home("prompts/build.md", "# Build\nround ${ITERATION}\n")
    planned.agent_does(bad, good, bad, good, bad, bad, MAX_RETRIES=2, TEST_COMMAND="test -e good")
    done = planned.ralph("build", "5")
    assert (done.code, planned.starts) == (3, 6)
    rounds = [1, 1, 2, 2, 3, 3]
    assert planned.prompts() == [f"# Build\nround {n}\n" for n in rounds]
    assert planned.commits() == [f"build: iteration {n} - Read the file" for n in (1, 2)]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "deed,words",
    [
        (f"{WORKS}; echo boom >&2; exit 7", "exit code 7"),
        pytest.param(f"{WORKS}; kill -SEGV $$", "SIGSEGV", marks=pytest.mark.long),
        ("echo I thought about it", "No changes detected"),
    ],
)
def test_agent_that_fails_three_times_ends_the_run(planned: Ralphs, deed: str, words: str) -> None:
    planned.agent_does(deed)
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (4, 3)
    assert words in done.err
    assert words in planned.log()
    assert planned.commits() == []


@pytest.mark.long
def test_agent_that_exceeds_the_timeout_has_failed(planned: Ralphs) -> None:
    planned.agent_does(f"{WORKS}; {COMPLETE}; sleep 60", MAX_RETRIES=1)
    done = planned.ralph("build", "--iteration-timeout", "1s", "-v")
    assert (done.code, planned.starts) == (4, 1)
    assert "Status: timed_out\n" in planned.log()


@pytest.mark.long
def test_complete_with_failing_tests_is_a_failed_attempt(planned: Ralphs) -> None:
    planned.agent_does(
        f"{WORKS}; {COMPLETE}", f"touch fixed; {COMPLETE}", TEST_COMMAND="test -e fixed"
    )
    assert (planned.ralph("build").code, planned.starts) == (0, 2)
    assert planned.commits() == ["build: iteration 1 - Read the file"]
    assert {"fixed", "work"} <= set(planned.tracked())


@pytest.mark.long
def test_git_hook_that_fails_three_times_ends_the_run_with_its_message(planned: Ralphs) -> None:
    planned.agent_does(WORKS)
    planned.git_hook("pre-commit", "echo 'lint: not neat' >&2; exit 1")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (5, 3)
    assert "lint: not neat" in done.err
    assert "lint: not neat" in planned.log()
    assert (planned.path / "work").exists()


@pytest.mark.real
def test_nothing_is_committed_on_a_detached_head(planned: Ralphs) -> None:
    planned.agent_does(WORKS, MAX_RETRIES=1)
    planned.git("checkout", "-q", "--detach")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (5, 1)
    assert "HEAD is detached" in done.err


@pytest.mark.long
def test_changes_are_detected_since_the_start_of_the_iteration(planned: Ralphs) -> None:
    """The changes of a failed attempt are committed with the retry."""
    ran = planned.marker("ran")
    flaky = f"test -e {ran} || {{ touch {ran}; exit 1; }}"
    planned.agent_does(WORKS, "echo nothing left to do", TEST_COMMAND=flaky)
    assert (planned.ralph("build", "1").code, planned.starts) == (0, 2)
    assert planned.commits() == ["build: iteration 1 - Read the file"]


@pytest.mark.long
def test_commit_by_the_agent_counts_as_a_change(planned: Ralphs) -> None:
    planned.agent_does(f"{WORKS}; git add work; git commit -qm 'by the agent'")
    assert (planned.ralph("build", "1").code, planned.starts) == (0, 1)
    assert planned.subjects()[-1] == "by the agent"
    assert planned.commits() == []


# -- the task --------------------------------------------------------------------------------


@pytest.mark.long
def test_commit_message_names_the_task_that_became_complete(planned: Ralphs) -> None:
    planned.agent_does(completes_task(2), WORKS)
    assert planned.ralph("build", "2").code == 0
    assert planned.commits() == [
        "build: iteration 1 - Write the file",
        "build: iteration 2 - Read the file",
    ]
    assert "Task: Read the file\nSpec: specs/reader.md\n" in planned.log(), (
        "the task is chosen before the agent runs"
    )


@pytest.mark.real
def test_task_in_progress_comes_before_the_first_open_task(work: Ralphs) -> None:
    work.plan(PLAN.replace("Write the file\nStatus: open", "Write the file\nStatus: in progress"))
    work.agent_does(WORKS)
    assert work.ralph("build", "1").code == 0
    assert work.commits() == ["build: iteration 1 - Write the file"]


@pytest.mark.long
def test_blocked_task_is_passed_over_and_named_at_the_end(planned: Ralphs) -> None:
    blocks = completes_task(1).replace("complete", "blocked: needs a key")
    planned.agent_does(blocks, f"{WORKS}; {COMPLETE}")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (0, 2)
    assert planned.commits()[-1] == "build: iteration 2 - Write the file"
    (warning,) = [
        line for line in done.log if "implementation_plan.md has unfinished tasks" in line
    ]
    assert warning.endswith(' open="Write the file" blocked="Read the file"')
    assert "Open Tasks: Write the file\nBlocked Tasks: Read the file\n" in planned.log()
    why = planned.rooda("why").out
    left = "1 open in .ralph/implementation_plan.md: Write the file; 1 blocked: Read the file"
    assert f"\nTasks: 0 of 2 tasks; {left}\n" in why


@pytest.mark.long
def test_plan_decides_when_the_work_is_done(planned: Ralphs) -> None:
    early = f"{completes_task(1)}; {COMPLETE}"
    planned.agent_does(early, completes_task(2), DONE_WHEN="tasks")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (0, 2)
    assert "all tasks in .ralph/implementation_plan.md are done" in done.err
    assert "You signaled COMPLETE, but .ralph/implementation_plan.md" in planned.prompts()[1]
    assert "1 open task:\n\n    Write the file\n" in planned.prompts()[1]


@pytest.mark.real
def test_build_that_is_never_done_ends_after_three_refusals(planned: Ralphs) -> None:
    planned.agent_does(f"echo more >> work; {COMPLETE}", DONE_WHEN="tasks", MAX_RETRIES="9")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (4, 3)
    assert "the agent signaled COMPLETE 3 times in a row" in done.err
    assert "SUCCESS" not in planned.rooda("why").out.partition("Limits and settings")[0]


@pytest.mark.real
def test_wrong_done_when_is_an_error(planned: Ralphs) -> None:
    planned.agent_does(WORKS, DONE_WHEN="never")
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (1, 0)
    assert "must be signal, tasks or 'command: CMD', not 'never'" in done.err


@pytest.mark.long
def test_plan_mode_names_no_task_of_the_plan(planned: Ralphs) -> None:
    planned.agent_does(f"{completes_task(1)}; {COMPLETE}")
    done = planned.ralph("plan")
    assert (done.code, "unfinished tasks" in done.err) == (0, False)
    assert "Mode: plan\nTask: Refresh the implementation plan\nSpec: none\n" in planned.log()
    assert planned.commits() == ["plan: iteration 1 - Refresh the implementation plan"]


@pytest.mark.long
def test_retry_has_the_same_task(planned: Ralphs) -> None:
    """The first attempt sets the task to complete, but the tests fail."""
    planned.agent_does(completes_task(1), "touch fixed", TEST_COMMAND="test -e fixed")
    assert (planned.ralph("build", "1").code, planned.starts) == (0, 2)
    assert planned.log().count("Task: Read the file\n") == 2
    assert planned.commits() == ["build: iteration 1 - Read the file"]


# -- home, config and prompts ----------------------------------------------------------------


@pytest.mark.long
def test_agent_runs_in_the_project_root_wherever_ralph_was_started(work: Ralphs) -> None:
    work.write("deep/down/note", "here\n")
    work.agent_does(f"pwd > {work.marker('cwd')}; {WORKS}")
    assert work.ralph("plan", "1", within="deep/down").code == 0
    assert Path(work.marker("cwd").read_text().strip()) == work.path.resolve()
    assert (work.path / ".ralph/logs").is_dir()


@pytest.mark.long
def test_only_known_names_in_a_prompt_are_replaced(work: Ralphs) -> None:
    names = ("MODE", "ITERATION", "PLAN_PATH", "SPECS_DIR", "TEST_COMMAND", "MAX_RETRIES")
    others = "${HOME} $MODE $(pwd) ${mode} ${DEFAULT_MAX_ITERATIONS} ${AGENT_ARGS}|"
    work.in_home("prompts/plan.md", " ".join(f"${{{name}}}" for name in names) + "\n" + others)
    work.agent_does(COMPLETE, TEST_COMMAND="make ${MODE}", SPECS_DIR="docs", MAX_RETRIES=2)
    assert work.ralph("plan").code == 0
    (prompt,) = work.prompts()
    replaced, _, kept = prompt.partition("\n")
    assert replaced == "plan 1 .ralph/implementation_plan.md docs make ${MODE} 2"
    assert kept == "${HOME} $MODE $(pwd) ${mode} 10 |"


@pytest.mark.real
def test_config_flag_names_another_file(work: Ralphs) -> None:
    work.agent_does(COMPLETE)
    work.write("mine", (work.path / ".ralph/config").read_text() + "DEFAULT_MAX_ITERATIONS=2\n")
    work.in_home("config", "AGENT_CLI=no-such-agent\n")
    done = work.ralph("plan", "--config", "../mine", within="specs")
    assert done.code == 0
    assert "(max 2 iterations)" in done.log[0]


@pytest.mark.long
def test_config_is_never_executed(work: Ralphs) -> None:
    agent = work.agent(f"cat > {work.marker('prompt')}; {COMPLETE}")
    words = f"AGENT_CLI={agent}\nAGENT_ARGS=$(touch {work.marker('ran')})\n"
    work.in_home("config", words)
    work.ralph("plan")
    assert work.marker("prompt").exists()
    assert not work.marker("ran").exists()


@pytest.mark.long
@pytest.mark.parametrize("by_path", [False, True])
def test_known_agent_without_arguments_is_started_non_interactively(
    work: Ralphs,
    by_path: bool,  # noqa: FBT001  (an example)
) -> None:
    saves = f'echo "$@" > {work.marker("words")}; cat > {work.marker("prompt")}'
    done = """echo '{"type": "result", "is_error": false, "result": "Done."}'"""
    claude = Path(work.agent(f"{saves}; {WORKS}; {done}", "claude"))
    work.configure(AGENT_CLI=str(claude) if by_path else "claude")
    work.ralph("plan", "1", env={"PATH": f"{claude.parent}:{os.environ['PATH']}"})
    assert f"claude {work.marker('words').read_text()}" == f"{COMMANDS['claude']}\n"
    assert work.marker("prompt").read_text().startswith("# Refresh the implementation plan\n")


@pytest.mark.long
def test_agent_arguments_are_split_like_shell_words(work: Ralphs) -> None:
    agent = work.agent(f"printf '<%s>' \"$@\" > {work.marker('words')}; {WORKS}", "my agent")
    work.configure(AGENT_CLI=shlex.split(agent)[0], AGENT_ARGS="-p 'two words' $HOME")
    assert work.ralph("plan", "1").code == 0
    assert work.marker("words").read_text() == "<-p><two words><$HOME>"


@pytest.mark.real
def test_config_may_name_another_project_root(work: Ralphs) -> None:
    other = work.path.parent / "other"
    work.git("clone", "-q", str(work.path), str(other))
    work.agent_does(f"pwd > {work.marker('cwd')}; {WORKS}", PROJECT_ROOT=str(other))
    assert work.ralph("plan", "1").code == 0
    assert Path(work.marker("cwd").read_text().strip()) == other.resolve()
    assert work.commits() == []
    assert work.git("log", "-1", "--format=%s", cwd=other).startswith("plan: iteration 1 - ")
    assert len(work.logs) == 1, "the home of ralph is unchanged"


@pytest.mark.long
def test_project_itself_may_be_the_home(workspace: Workspace) -> None:
    with ralph_work(workspace, ".") as work:
        work.plan()
        work.agent_does(WORKS)
        assert work.ralph("build", "1").code == 0
        assert work.commits() == ["build: iteration 1 - Read the file"]
        assert len(work.logs) == 1


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("home", [pytest.param(".", marks=pytest.mark.long), ".ralph"])
def test_logs_are_never_committed(workspace: Workspace, home: str) -> None:
    with ralph_work(workspace, home) as work:
        (work.path / home / ".gitignore").unlink()
        work.plan()
        work.configure(AGENT_CLI=work.agent(f"{WORKS}; git add -A"))
        work.in_home("logs/session-20250101-000000.log", "an earlier one\n")
        work.in_home("logs/mine.txt", "the user's own\n")
        assert work.ralph("plan", "1").code == 0
        assert len(work.commits()) == 1
        logs = [name for name in work.tracked() if "logs/" in name or ".rooda" in name]
        assert [Path(name).name for name in logs] == ["mine.txt"]
        assert len(work.logs) == 3


@pytest.mark.long
def test_log_does_not_count_as_a_change_of_the_agent(workspace: Workspace) -> None:
    with ralph_work(workspace, ".") as work:
        (work.path / ".gitignore").unlink()
        work.agent_does("echo idle", MAX_RETRIES=1)
        assert work.ralph("plan", "1").code == 4


@pytest.mark.long
def test_variables_set_the_environment_and_the_fallbacks_of_the_agent(work: Ralphs) -> None:
    work.agent_does(f'echo "$MARK" > mark; {COMPLETE}')
    assert work.ralph("plan", env={"ROODA_LOOP_ENV": "MARK=here"}).code == 0
    assert (work.path / "mark").read_text() == "here\n"
    done = work.ralph("plan", env={"ROODA_LOOP_AI_CMD_FALLBACKS": "no-such-agent"})
    assert done.code == 1
    assert "AI command binary not found: no-such-agent" in done.err


@pytest.mark.real
def test_variable_cannot_move_the_agent_out_of_the_project(work: Ralphs) -> None:
    work.agent_does(f"pwd > where; {COMPLETE}")
    assert work.ralph("plan", env={"ROODA_LOOP_WORKING_DIR": "/"}).code == 0
    assert (work.path / "where").read_text() == f"{work.path}\n"


@pytest.mark.long
def test_rooda_s_own_config_files_are_ignored(work: Ralphs) -> None:
    work.config("loop: [broken")
    work.global_config(f"loop: {{max_attempts: 1, git: {{commit: false}}}}\n{PROCEDURE}")
    work.agent_does("exit 1", f"{WORKS}; {COMPLETE}")
    done = work.ralph("plan", env={"ROODA_LOOP_PRESET": "v1"})
    assert (done.code, work.starts) == (0, 2)
    assert len(work.commits()) == 1
    assert "rooda-config.yml" not in done.err


# -- the test command ------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "config,root,home,found",
    [
        pytest.param("config", "root", "home", "config", marks=pytest.mark.long),
        (None, "root", "home", "root"),
        pytest.param(None, None, "home", "home", marks=pytest.mark.long),
        pytest.param("", "root", "home", None, marks=pytest.mark.long),
        (None, "", "home", None),
        pytest.param(None, None, None, None, marks=pytest.mark.long),
    ],
)
def test_places_of_the_test_command(
    planned: Ralphs, config: str | None, root: str | None, home: str | None, found: str | None
) -> None:
    def command(place: str | None) -> str:
        return f"echo {place} > {planned.marker('tested')}" if place else ""

    for folder, place in ((".", root), (".ralph", home)):
        words = "" if place is None else f"```sh\nTEST_COMMAND='{command(place)}'\n```\n"
        planned.write(f"{folder}/AGENTS.md", words)
    planned.agent_does(WORKS, **({} if config is None else {"TEST_COMMAND": command(config)}))
    done = planned.ralph("build", "1")
    assert done.code == 0
    tested = planned.marker("tested")
    assert (tested.read_text().strip() if tested.exists() else None) == found
    assert ("WARN: no test command was found" in done.err) == (found is None)
    assert ("Tests: none found\n" in planned.log()) == (found is None)


@pytest.mark.long
def test_label_in_agents_md_names_the_test_command(planned: Ralphs) -> None:
    planned.write("AGENTS.md", "# Notes\n\n- **Test**: `test -e tested`\n")
    planned.agent_does(WORKS, "touch tested")
    assert (planned.ralph("build", "1").code, planned.starts) == (0, 2)


# -- before the first iteration --------------------------------------------------------------


@pytest.mark.git
@pytest.mark.parametrize(
    "arguments,words",
    [
        ([], "name a mode: plan, build or prompt"),
        (["bild"], "Did you mean 'build'?"),
        pytest.param(["build", "many"], "'many' is not a number", marks=pytest.mark.long),
        pytest.param(["build", "0"], "'0' is not a number", marks=pytest.mark.long),
        pytest.param(["plan", "--max-iterations", "-1"], "not a number", marks=pytest.mark.long),
        pytest.param(["prompt"], "Missing argument 'FILE'", marks=pytest.mark.long),
        pytest.param(["plan", "--unlimited"], "No such option", marks=pytest.mark.long),
        pytest.param(["prompt", "ask.md", "-n", "2"], "No such option", marks=pytest.mark.long),
    ],
)
def test_wrong_arguments_give_exit_code_1(work: Ralphs, arguments: list[str], words: str) -> None:
    work.agent_does(WORKS)
    done = work.ralph(*arguments)
    assert (done.code, work.starts, done.out) == (1, 0, "")
    assert words in done.err
    assert "--help" in done.err


@pytest.mark.long
def test_dry_run_shows_what_would_run_and_starts_nothing(unplanned: Ralphs) -> None:
    unplanned.agent_does(WORKS)
    arguments = ("build", "-n", "3", "--iteration-timeout", "45m", "--verbose", "-d")
    refused = unplanned.ralph(*arguments)
    assert (refused.code, refused.err) == (1, "")
    assert f"  ✗ Required file missing: {NO_PLAN}\n" in refused.out
    unplanned.plan()
    done = unplanned.ralph(*arguments)
    assert (done.code, done.err, unplanned.starts) == (0, "", 0)
    assert done.out.startswith("=== Dry-Run: ralph build ===\n")
    assert "  Max Iterations: 3 (cli: --max-iterations)\n" in done.out
    assert "  Iteration Timeout: 2700s (cli: --iteration-timeout)\n" in done.out
    assert "\n# Implement the next task of the plan\n" in done.out
    command = "ralph build -n 3 --iteration-timeout 45m --verbose"
    assert done.out.endswith(f"Dry-run complete. Ready to execute: {command}\n")
    assert not (unplanned.state).exists()
    assert not (unplanned.path / ".ralph/logs").exists()


@pytest.mark.real
def test_all_problems_are_reported_at_once(work: Ralphs) -> None:
    work.in_home("config", "MAX_RETRIES=many\nAGENT_CLI=/nowhere/agent\nFOO=1\n\nwhat is this\n")
    (work.path / ".ralph/prompts/plan.md").unlink()
    (work.path / ".git").rename(work.tools / "git")
    done = work.ralph("plan")
    assert done.code == 1
    assert "Error: .ralph/config:1: MAX_RETRIES: must be a whole number, not 'many'" in done.err
    assert "Error: .ralph/config:2: AGENT_CLI: AI command binary not found" in done.err
    assert "Error: .ralph/config:3: FOO: is not a known key" in done.err
    assert "Error: .ralph/config:5: is no KEY=VALUE line: 'what is this'" in done.err
    assert "Error: .ralph/prompts/plan.md does not exist" in done.err
    assert "is in no git work tree" in done.err
    assert not (work.path / ".ralph/logs").exists()


@pytest.mark.real
def test_misspelled_key_of_the_config_is_an_error_with_a_suggestion(planned: Ralphs) -> None:
    planned.agent_does(WORKS, MAX_RETRYS=1)
    done = planned.ralph("build")
    assert (done.code, planned.starts) == (1, 0)
    assert "Error: .ralph/config:2: MAX_RETRYS: is not a known key\n" in done.err
    assert "  Did you mean 'MAX_RETRIES'?\n" in done.err


@pytest.mark.long
def test_advice_names_only_flags_that_ralph_has(planned: Ralphs) -> None:
    planned.configure(AGENT_CLI="no-such-agent")
    wrong = {"ROODA_LOOP_ITERATION_MODE": "unlimited", "ROODA_LOOP_LOG_FILE": "no/such/folder"}
    done = planned.ralph("build", env=wrong)
    assert done.code == 1
    assert "  Install it, or choose another with AGENT_CLI\n" in done.err
    assert "  Choose another with ROODA_LOOP_LOG_FILE\n" in done.err
    assert "  Set --iteration-timeout, ROODA_LOOP_IDLE_TIMEOUT or ROODA_LOOP_MAX" in done.err
    planned.agent_does("echo no; exit 3", MAX_RETRIES=1)
    failed = planned.ralph("build")
    assert "  Try: Read its output above\n" in failed.err


@pytest.mark.real
def test_misspelled_variable_is_an_error(planned: Ralphs) -> None:
    planned.agent_does(WORKS)
    done = planned.ralph("build", env={"ROODA_LOOP_MAX_COSTS": "5"})
    assert (done.code, planned.starts) == (1, 0)
    assert "  Did you mean 'ROODA_LOOP_MAX_COST'?\n" in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "missing,words",
    [
        ("git", "is in no git work tree"),
        ("agent", "no agent is named"),
        ("prompt", ".ralph/prompts/build.md does not exist"),
        ("file", "nofile.md does not exist"),
        ("config", "elsewhere: the file does not exist"),
    ],
)
def test_each_missing_prerequisite_gives_exit_code_1(
    planned: Ralphs, missing: str, words: str
) -> None:
    planned.agent_does(WORKS)
    arguments = {"file": ["prompt", "nofile.md"], "config": ["build", "--config", "elsewhere"]}
    match missing:
        case "git":
            (planned.path / ".git").rename(planned.tools / "git")
        case "agent":
            planned.in_home("config", "")
        case "prompt":
            (planned.path / ".ralph/prompts/build.md").unlink()
        case _:
            pass
    done = planned.ralph(*arguments.get(missing, ["build"]))
    assert (done.code, planned.starts) == (1, 0)
    assert words in done.err
    assert not (planned.path / ".ralph/logs").exists()


@pytest.mark.long
def test_missing_specs_are_a_warning(work: Ralphs) -> None:
    work.agent_does(COMPLETE, SPECS_DIR="wishes")
    done = work.ralph("plan")
    assert done.code == 0
    assert "WARN: the folder of specifications is missing: wishes" in done.err


@pytest.mark.git
def test_init_overwrites_nothing(work: Ralphs) -> None:
    work.in_home("config", "AGENT_CLI=mine\n")
    work.write("AGENTS.md", "mine\n")
    (work.path / ".ralph/prompts/plan.md").unlink()
    done = work.ralph("init")
    assert done.code == 0
    assert "created  .ralph/prompts/plan.md\n" in done.out
    assert "kept     .ralph/config\n" in done.out
    assert (work.path / ".ralph/config").read_text() == "AGENT_CLI=mine\n"
    assert (work.path / "AGENTS.md").read_text() == "mine\n"
    assert work.git("diff", "--name-only").split() == [".ralph/config", "AGENTS.md"]


@pytest.mark.git
def test_init_says_what_else_a_folder_needs(work: Ralphs) -> None:
    done = work.ralph("init", within="specs")
    assert f"ralph uses this .ralph here, and not {work.path / '.ralph'}\n" in done.out
    (work.path / ".git").rename(work.tools / "git")
    again = work.ralph("init", within="specs")
    assert "Next: run git init, set AGENT_CLI in .ralph/config" in again.out


@pytest.mark.long
def test_folder_without_ralph_points_to_init(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.git("rm", "-qr", ".ralph")
        done = work.ralph("plan")
        assert done.code == 1
        assert "no agent is named\n  Make the file with `ralph init`. Write AGENT_CLI=" in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "plan,words",
    [
        ("Do this, then that.\n", "ralph finds no task in the plan"),
        ("- [x] a\n- [!] b\n", "every task of the plan is complete or blocked"),
        (PLAN, None),
    ],
)
def test_plan_without_a_task_to_work_on_is_a_warning(
    work: Ralphs, plan: str, words: str | None
) -> None:
    work.plan(f"{plan}\nmore\n")
    work.agent_does(WORKS, TEST_COMMAND="true")
    done = work.ralph("build", "--dry-run")
    found = [line for line in done.out.splitlines() if "implementation_plan.md: " in line]
    shown = f"  ! .ralph/implementation_plan.md: {words}"
    assert (done.code, found) == (0, [] if words is None else [shown])


@pytest.mark.git
def test_help_names_the_modes_and_the_exit_codes(work: Ralphs) -> None:
    done = work.ralph("--help")
    assert (done.code, done.err) == (0, "")
    for word in ("plan", "build", "prompt", "init", "0 complete", "5 git", "130 interrupted"):
        assert word in " ".join(done.out.split())
    assert work.ralph("--version").out.startswith("ralph ")


# -- shared with rooda -----------------------------------------------------------------------


@pytest.mark.real
def test_output_of_the_agent_goes_to_standard_error_and_the_log(work: Ralphs) -> None:
    work.agent_does(f"echo aloud; echo aside >&2; {COMPLETE}")
    done = work.ralph("plan")
    assert done.out == ""
    for word in ("aloud\n", "aside\n"):
        assert f"\n{word}" in done.err
        assert f"\n{word}" in work.log()


@pytest.mark.long
def test_interrupted_run_leaves_no_orphan_and_can_be_resumed(planned: Ralphs) -> None:
    pid = planned.marker("pid")
    planned.agent_does(WORKS, f"echo $$ > {pid}; exec sleep 60", f"{WORKS}; {COMPLETE}")
    running = planned.begin_ralph("build", "5")
    agent = int(wait_for(pid))
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    assert not alive(agent)
    assert "Exit Reason: interrupted by the user\nExit Code: 130\n" in planned.log()
    done = planned.ralph("build", "--resume")
    assert (done.code, planned.starts) == (0, 3)
    assert planned.commits() == [f"build: iteration {n} - Read the file" for n in (1, 2)]
    assert len(planned.rooda("history").out.splitlines()) == 2, "the resume is part of the same run"
    again = planned.ralph("build", "--resume")
    assert again.code == 1
    assert "ended as success" in again.err


@pytest.mark.long
def test_rooda_stop_now_ends_a_run_of_ralph(planned: Ralphs) -> None:
    pid = planned.marker("pid")
    planned.agent_does(f"echo $$ > {pid}; exec sleep 60")
    running = planned.begin_ralph("build")
    agent = int(wait_for(pid))
    done = planned.rooda("stop", "--now")
    assert done.code == 0
    assert "has ended: interrupted." in done.out
    assert running.finish().code == 130
    assert not alive(agent)


@pytest.mark.long
def test_resumed_build_keeps_its_maximum_and_its_config(planned: Ralphs) -> None:
    pid = planned.marker("pid")
    agent = planned.agents(WORKS, f"echo $$ > {pid}; exec sleep 60", WORKS)
    planned.configure(AGENT_CLI="false")
    other = planned.write("other/config", f"AGENT_CLI={shlex.quote(agent)}\n")
    planned.commit("another config")
    running = planned.begin_ralph("build", "3", "--config", "config", within="other")
    wait_for(pid)
    running.signal(signal.SIGTERM)
    ended = running.finish()
    name = planned.run_record()["run"]
    assert ended.err.endswith(
        f"\n  Next: rooda show · rooda report · ralph build --resume={name}\n"
    )

    found = planned.rooda("resume")
    assert found.code == 1
    assert f"Write: ralph build --resume={name}\n" in found.err
    done = planned.ralph("build", f"--resume={name}")
    assert (done.code, planned.starts) == (0, 4), done.err
    assert "Iteration 3/3 starting..." in done.log
    (line,) = [one for one in done.log if one.startswith("Resuming run")]
    assert line == (
        f"Resuming run {name} at iteration 2 in {other.parent} with its flags: --config config 3"
    )
    again = planned.ralph("build", "--resume", within="other")
    assert (again.code, planned.starts) == (1, 4)
    assert f"Ask for more in all: ralph build --resume={name} --max-iterations 13" in again.err
    more = planned.ralph("build", "4", "--resume", within="other")
    assert (more.code, planned.starts) == (0, 5), more.err


@pytest.mark.long
def test_resumed_prompt_keeps_its_file(work: Ralphs) -> None:
    work.write("ideas/tidy.md", "# Tidy the cellar\n")
    work.agent_does("exit 3", "exit 3", COMPLETE)
    assert work.ralph("prompt", "tidy.md", within="ideas").code == 4
    done = work.ralph("prompt", "--resume")
    assert done.code == 4, done.err
    assert work.ralph("prompt", "--resume=last", within="specs").code == 0
    assert work.prompts() == ["# Tidy the cellar\n"] * 3
    refused = work.ralph("prompt", "--resume")
    assert refused.code == 1
    assert "ended as success" in refused.err
    assert "Start a new run: ralph prompt" in refused.err
    missing = work.ralph("prompt")
    assert missing.code == 1
    assert "Missing argument 'FILE'" in missing.err


@pytest.mark.long
def test_rooda_show_and_why_explain_a_run_of_ralph(planned: Ralphs) -> None:
    planned.agent_does(WORKS, TEST_COMMAND="exit 1", MAX_RETRIES=2)
    assert planned.ralph("build").code == 3
    run = planned.run_record()
    assert (run["procedure"], run["status"], run["exit_code"]) == ("ralph build", "aborted", 3)
    shown = planned.rooda("show")
    assert "ralph build" in shown.out
    assert "aborted (exit code 3)" in shown.out
    why = planned.rooda("why").out
    assert "Rule: failure-threshold" in why
    assert "Failures in a row: 1 before, 2 after, of 2" in why
    (one,) = planned.record()
    assert (one["number"], one["kind"]) == (1, "verify")


@pytest.mark.real
def test_why_names_the_limit_that_ended_the_run_and_its_origin(planned: Ralphs) -> None:
    planned.agent_does("echo idle", MAX_RETRIES=1)
    assert planned.ralph("build").code == 4
    limits = planned.rooda("why").out.partition("Limits and settings:")[2]
    assert ".ralph/config:2" in limits
    assert "failure_threshold" not in limits


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_link_in_place_of_the_prompt_gives_the_agent_in_the_sandbox_no_file(work: Ralphs) -> None:
    key = work.write(str(work.path.parent / "key"), "PRIVATE-KEY-4711\n")
    prompt = ".ralph/prompts/build.md"
    work.agent_does(f"{WORKS}; rm {prompt}; ln -s {key} {prompt}; cat >> got", "cat >> got")
    env = {"ROODA_LOOP_SANDBOX_KIND": "bwrap", "ROODA_LOOP_SANDBOX_TRUST": "true"}
    done = work.ralph("build", "2", env=env)
    assert "which the sandbox does not show" in done.err
    assert "PRIVATE-KEY" not in (work.path / "got").read_text()


@pytest.mark.real
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_project_outside_of_the_tree_of_its_config_needs_trust_with_a_sandbox(
    work: Ralphs,
) -> None:
    other = work.path.parent / "other"
    other.mkdir()
    work.git("init", "-q", str(other))
    work.agent_does(WORKS, PROJECT_ROOT=str(other))
    flags = ("build", "1", "--dry-run")
    refused = work.ralph(*flags, env={"ROODA_LOOP_SANDBOX_KIND": "bwrap"})
    assert refused.code == 1
    assert f"PROJECT_ROOT: {other} is outside of the work tree" in refused.out
    trust = {"ROODA_LOOP_SANDBOX_TRUST": "true"}
    trusted = work.ralph(*flags, env={"ROODA_LOOP_SANDBOX_KIND": "bwrap", **trust})
    assert "is outside of the work tree" not in trusted.out
    inside = work.ralph(*flags)
    assert "is outside of the work tree" not in inside.out
