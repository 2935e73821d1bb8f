"""`verify.baseline` through the installed command: the check runs once before the first agent."""

import json
import re
import shlex
import signal
import sys
from collections.abc import Iterator

import pytest

from rooda.loop.events.work import BaselineEnded
from support.gitwork import GitWork, git_work
from support.ralphs import COMPLETE, ralph_work
from support.workspace import Workspace, alive, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"
TESTS = "echo '=== 1 failed, 3 passed in 0.12s ==='"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


@pytest.mark.real
def test_failing_check_is_reported_with_its_tests_and_the_run_goes_on(work: GitWork) -> None:
    work.settings(verify=work.counted(f"touch made-by-the-check; {TESTS}; test -e roof"))
    done = work.work(work.agents(f"touch roof; {SUCCESS}"))
    assert (done.code, work.starts, work.checks()) == (0, 1, 2)
    assert "WARN: Verify fails before the first iteration: exit code 1 after " in done.err
    assert ", 3 of 4 tests passed; the run continues\n" in done.err
    assert "    | === 1 failed, 3 passed" in done.err
    found = work.run_record()["baseline"]
    assert (found["exit_code"], found["error"], found["cannot_run"]) == (1, "exit code 1", False)
    assert (found["tests"]["passed"], found["tests"]["total"]) == (3, 4)
    [one] = work.record()
    assert one["result"]["files_created"] == ["roof"], "files of the check are not the agent's"
    assert "FEEDBACK" not in one["prompt"]
    shown = work.rooda("show").out
    assert "Before   verify fails, exit code 1, 3 of 4 tests passed\n" in shown
    log = next((work.state / "runs").glob("*/0/verify.log"))
    assert "3 passed" in log.read_text()


def test_failing_check_without_output_says_so() -> None:
    text = BaselineEnded("false", 1, "exit code 1", 1.0, "\n").as_text() or ""
    assert text.splitlines()[1:] == ["  Output: none"]


@pytest.mark.real
def test_passing_check_is_reported_and_progress_is_still_counted_from_no_tests(
    work: GitWork,
) -> None:
    """The baseline of the first iteration is zero tests, whatever ran before it."""
    work.settings(verify=work.counted("echo '=== 3 passed in 0.12s ==='"))
    done = work.work(work.agents(SUCCESS))
    assert (done.code, work.checks()) == (0, 2)
    assert "Verify passes before the first iteration after " in done.err
    assert work.record()[0]["result"]["progress_detected"] is True


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "command,code", [("true; no-such-program", 127), (". ./README; ./README", 126)]
)
def test_check_that_cannot_run_ends_the_run_before_an_agent_starts(
    work: GitWork, command: str, code: int
) -> None:
    agent = work.agents(SUCCESS)
    done = work.work(agent, "--verify", f"({command})")
    assert (done.code, work.starts) == (1, 0)
    aborted = next(line for line in done.err.splitlines() if "Aborting" in line)
    assert f"verify can't run (exit code {code})" in aborted
    assert "start with --verify-baseline warn" in aborted
    run = work.run_record()
    assert (run["status"], run["rule"], run["exit_code"]) == ("aborted", "verify-baseline", 1)
    assert "Rule: verify-baseline." in work.rooda("why").out
    assert (work.rooda("resume").code, work.starts) == (1, 0), "a resumed run checks it again"
    again = work.work(agent, "--verify", f"({command})", "--no-verify-baseline", "-n", "1")
    assert (again.code, work.starts) == (2, 1)
    assert work.run_record()["baseline"] is None


@pytest.mark.long
def test_check_without_target_module_or_tests_costs_no_agent_and_warn_lets_the_agent_start(
    work: GitWork,
) -> None:
    agent = work.agents(SUCCESS)
    python = shlex.quote(sys.executable)
    for command, reason in (
        ("make tst", "make found no Makefile|make has no rule for the target tst"),
        (f"{python} -m no_such", "Python has no module no_such"),
        (f"{python} -m pytest -q .", "pytest found no tests"),
    ):
        done = work.work(agent, "--verify", command)
        assert (done.code, work.starts) == (1, 0), done.err
        [aborted] = [line for line in done.err.splitlines() if "Aborting" in line]
        assert re.search(reason, aborted)
        assert "start with --verify-baseline warn" in aborted
        assert re.search(f"Reason: verify can't run .*(?:{reason})", work.rooda("why").out)
        assert "Before   verify can't run, exit code" in work.rooda("show").out
    resumed = work.rooda("resume", "--verify-baseline", "warn", "-n", "1")
    assert (resumed.code, work.starts) == (2, 1)
    assert "Verify can't run before the first iteration: exit code 5" in resumed.err
    assert "pytest found no tests; the run continues\n" in resumed.err


@pytest.mark.real
def test_required_baseline_ends_the_run_if_it_fails_or_times_out(work: GitWork) -> None:
    agent, required = work.agents(SUCCESS), ("--verify-baseline", "require")
    done = work.work(agent, "--verify", "echo broken; exit 3", *required)
    assert (done.code, work.starts) == (1, 0)
    assert "verify fails before the first iteration (exit code 3): echo broken" in done.err
    assert work.run_record()["rule"] == "verify-baseline"
    slow = ("--verify", "sleep 60", "--verify-timeout", "1s")
    done = work.work(agent, *slow, *required, "--verify-when", "on-success")
    assert (done.code, work.starts) == (1, 0), "an explicit word holds for the check at the end too"
    assert "verify fails before the first iteration (timed out after 1s)" in done.err
    once = f"test -e {work.marker('tried')} || {{ touch {work.marker('tried')}; exit 1; }}"
    done = work.work(agent, "--verify", once, "--verify-retries", "1", *required)
    assert (done.code, work.starts) == (0, 1), "a required check has its retries"


@pytest.mark.real
def test_later_failure_like_the_baseline_is_reported_also_after_a_resume(work: GitWork) -> None:
    """Each slot of a fleet runs an iteration like this: `--pause-after`, then resume."""
    work.settings(
        verify="echo took $$ms; echo broken at $(date +%H:%M:%S); test -e roof && echo x; exit 1"
    )
    words = "in the same way as before the first iteration"
    agent = work.agents("exit 0", "exit 0", "touch roof")
    assert work.work(agent, "--pause-after", "1", "--failure-threshold", "9").code == 0
    assert work.rooda("resume", "--pause-after", "2").code == 0
    [first, second, third] = work.record()
    for one in (first, second):
        assert one["reason"] == f"verify failed: exit code 1, {words}"
        assert one["verify"]["as_before"] is True
    assert third["reason"] == "verify failed: exit code 1", "the check fails in another way now"
    assert f"failed: exit code 1, {words}. Make it pass." in second["prompt"]
    assert f"verify failed: exit code 1, {words}" in work.rooda("why", "2").out


@pytest.mark.real
def test_no_baseline_on_resume_with_on_success_in_a_dry_run_and_for_presets(
    work: GitWork,
) -> None:
    check = ("--verify", work.counted("true"))
    agent = work.agents("exit 0")
    assert work.work(agent, *check, "--dry-run").code == 0
    assert work.checks() == 0
    assert work.work(agent, *check, "--verify-when", "on-success", "-n", "1").code == 2
    assert work.checks() == 0
    assert work.work(agent, *check, "--preset", "v1", "--no-push", "-n", "1").code == 0
    assert work.checks() == 1, "after the iteration"
    assert work.work(agent, *check, "-n", "1").code == 2
    assert work.checks() == 3
    assert work.rooda("resume", "-n", "2").code == 2
    assert work.checks() == 4


@pytest.mark.real
def test_ralph_runs_no_baseline(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.plan()
        check = f"echo . >> {work.marker('checks')}"
        work.agent_does(f"touch new; {COMPLETE}", TEST_COMMAND=check)
        assert work.ralph("build").code == 0
        assert work.checks() == 1


@pytest.mark.real
def test_signal_and_timeout_stop_the_whole_process_tree_of_the_check(work: GitWork) -> None:
    hangs = f"sleep 60 & echo $! > {work.marker('child')}; wait"
    agent = work.agents("exit 0")
    running = work.begin(agent, "--verify", hangs)
    child = int(wait_for(work.marker("child")))
    running.signal(signal.SIGTERM)
    assert (running.finish().code, work.starts) == (130, 0)
    assert not alive(child)
    assert work.run_record()["baseline"] is None
    work.marker("child").unlink()
    once = f"test -e {work.marker('child')} || {{ {hangs}; }}"
    done = work.work(agent, "--verify", once, "--verify-timeout", "1s", "-n", "1")
    assert (done.code, work.starts) == (2, 1)
    assert "Verify fails before the first iteration: timed out after 1s" in done.err
    assert not alive(int(work.marker("child").read_text()))


@pytest.mark.real
def test_check_runs_after_the_hooks_of_the_start_and_not_after_one_that_objects(
    work: GitWork,
) -> None:
    hook = {"command": f"test ! -e {work.marker('no')} && touch roof", "on_error": "abort"}
    work.settings(hooks={"loop_start": hook}, verify=work.counted("test -e roof"))
    done = work.work(work.agent(SUCCESS), "--log-format", "json")
    assert done.code == 0
    events = [json.loads(line) for line in done.err.splitlines()]
    [found] = [event for event in events if event["event"] == "baseline_ended"]
    assert found["exit_code"] == 0
    work.marker("no").touch()
    assert work.work(work.agent(SUCCESS)).code == 1
    assert work.checks() == 2
