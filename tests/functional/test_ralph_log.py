"""The session log of `ralph`: when it is created, and the format of its blocks."""

import re
from collections.abc import Iterator

import pytest

from support.ralphs import COMPLETE, Ralphs, ralph_work
from support.workspace import Workspace

pytestmark = pytest.mark.real

DOUBLE, SINGLE = "=" * 80, "-" * 80
WORKS = "date +%N >> work"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[Ralphs]:
    with ralph_work(workspace) as found:
        found.plan()
        yield found


def header(number: int, task: str, spec: str = "none", mode: str = "build") -> str:
    return (
        f"{DOUBLE}\nITERATION {number}\n{DOUBLE}\nMode: {mode}\nTask: {task}\nSpec: {spec}\n"
        f"Start Time: DATE\n{SINGLE}\n"
    )


def footer(number: int, status: str, retries: int = 0) -> str:
    retried = f"Retries: {retries}\n" if retries else ""
    return (
        f"{SINGLE}\nITERATION {number} COMPLETE\nEnd Time: DATE\nDuration: TIME\n{retried}"
        f"Status: {status}\n{DOUBLE}\n\n"
    )


def summary(counts: tuple[int, int, int], reason: str, code: int, notes: str = "") -> str:
    total, good, failed = counts
    return (
        f"{DOUBLE}\nSESSION SUMMARY\n{DOUBLE}\nTotal Iterations: {total}\nSuccessful: {good}\n"
        f"Failed: {failed}\nTotal Duration: TIME\nExit Reason: {reason}\nExit Code: {code}\n"
        f"{notes}{DOUBLE}\n"
    )


@pytest.mark.long
def test_each_attempt_has_its_blocks_and_the_summary_counts_iterations(work: Ralphs) -> None:
    work.agent_does(
        "echo hammering; exit 4",
        f"echo nailing; {WORKS}",
        f"echo painting; {WORKS}; {COMPLETE}",
        TEST_COMMAND="true",
    )
    assert work.ralph("build").code == 0
    log = work.log()
    task = ("Read the file", "specs/reader.md")
    assert f"{header(1, *task)}hammering\n[" in log
    assert f"{footer(1, 'failed')}{header(1, *task)}nailing\n[" in log
    assert f"{footer(1, 'completed', retries=1)}{header(2, *task)}painting\n" in log
    notes = "Open Tasks: Read the file; Write the file\n"
    end = footer(2, "completed") + summary(
        (2, 2, 0), "the agent signaled that the work is done", 0, notes
    )
    assert log.endswith(end)
    words = ("hammering", "exit code 4", "nailing", "Committed", "painting")
    places = [log.index(word) for word in words]
    assert places == sorted(places)


def test_failure_is_logged_with_its_retries(work: Ralphs) -> None:
    work.agent_does("echo idle", TEST_COMMAND="true")
    assert work.ralph("build", "5").code == 4
    log = work.log()
    assert [*re.findall(r"^Retries: (\d)$", log, re.MULTILINE)] == ["1", "2"]
    assert log.count("\nStatus: failed\n") == 3
    assert log.count("Reason: No changes detected\n") == 3
    assert "Exit Reason: 3 failures in a row, the last one: No changes detected\n" in log
    assert "Total Iterations: 1\nSuccessful: 0\nFailed: 1\n" in log
    assert log.endswith(f"Exit Code: 4\n{DOUBLE}\n")


@pytest.mark.long
def test_refused_commit_is_logged_as_a_failed_attempt(work: Ralphs) -> None:
    work.agent_does(WORKS, "touch neat", TEST_COMMAND="true")
    work.git_hook("pre-commit", "test -e neat || { echo 'lint: not neat' >&2; exit 1; }")
    assert work.ralph("build", "1").code == 0
    log = work.log()
    assert log.index("lint: not neat") < log.index(footer(1, "failed"))
    assert footer(1, "completed", retries=1) in log
    assert "Total Iterations: 1\nSuccessful: 1\nFailed: 0\n" in log


def test_name_of_the_log_is_the_start_time_of_the_session(work: Ralphs) -> None:
    work.agent_does(COMPLETE)
    assert work.ralph("plan").code == 0
    (log,) = work.logs
    assert re.fullmatch(r"session-\d{8}-\d{6}\.log", log.name)
    started = re.search(r"Start Time: (\S+) (\S+)", log.read_text())
    assert started is not None
    date, time = (re.sub(r"\D", "", part) for part in started.groups())
    assert f"{date}-{time}" >= log.name[8:23]


def test_no_log_is_created_if_a_check_fails(work: Ralphs) -> None:
    work.configure(AGENT_CLI="/nowhere/agent")
    assert work.ralph("plan").code == 1
    assert not (work.path / ".ralph/logs").exists()


@pytest.mark.long
def test_summary_reports_a_missing_test_command(work: Ralphs) -> None:
    work.agent_does(WORKS)
    assert work.ralph("build", "1").code == 0
    reason = "the maximum of iterations was reached"
    assert work.log().endswith(summary((1, 1, 0), reason, 0, "Tests: none found\n"))


def test_prompt_mode_has_the_same_log(work: Ralphs) -> None:
    work.in_home("implementation_plan.md", "")
    work.write("ask.md", "# What is this?\n")
    work.agent_does("echo a project")
    assert work.ralph("prompt", "ask.md").code == 0
    log = work.log()
    assert f"{header(1, 'What is this?', mode='prompt')}a project\n{footer(1, 'completed')}" in log
    assert "Tests:" not in log


@pytest.mark.long
def test_plan_cannot_forge_a_block_of_the_log(work: Ralphs) -> None:
    work.plan(f"## x {DOUBLE}\x1b[2J\rITERATION 9\nStatus: open\nSpec: a\x1b]0;b\n")
    work.agent_does(WORKS)
    assert work.ralph("build", "1").code == 0
    text = work.logs[0].read_text()
    assert "\x1b" not in text
    assert text.count(f"\n{DOUBLE}\nITERATION ") == 1
