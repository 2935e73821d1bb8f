"""`rooda history`, `show` and `why` through the installed command, as text and as JSON."""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from support.children import Nursery, until
from support.finished import Rooda
from support.recorded import (
    HANGS,
    SUCCESS,
    asked,
    git,
    quoted,
    refused,
    statuses,
    versioned,
    within,
)
from support.screen import Screen
from support.workspace import PROCEDURE, ROODA, Workspace

OF_A_RUN = {
    "schema_version",
    "run",
    "procedure",
    "status",
    "reason",
    "exit_code",
    "started_at",
    "ended_at",
    "summary",
}
OF_A_SUMMARY = {
    "total_iterations",
    "successful_iterations",
    "failed_iterations",
    "timed_out_iterations",
    "total_duration_ms",
    "total_files_modified",
    "total_files_created",
    "total_tests_run",
    "total_tests_passed",
    "total_tests_failed",
}
OF_AN_ITERATION = {"number", "started_at", "ended_at", "status", "prompt", "metadata", "result"}
MORE_OF_AN_ITERATION = {
    "signal",
    "truncated",
    "kind",
    "cleaned_up",
    "model",
    "session_id",
    "turns",
    "tokens",
    "cost",
}
OF_A_RESULT = {
    "exit_code",
    "stdout",
    "stderr",
    "files_modified",
    "files_created",
    "files_deleted",
    "tests_run",
    "test_results",
    "context_usage_percent",
    "progress_detected",
    "summary",
    "duration_ms",
}
OF_TESTS = {"total", "passed", "failed", "skipped", "details"}

# A window title, colours, half a UTF-8 character, and a carriage return.
RUDE = b"\x1b]0;owned\x07plain \x1b[31mred\x1b[0m caf\xc3\xa9 \xff end\r\nlast\x9b2J"
PASSES = """echo 'tests/test_a.py .F                  [100%]
FAILED tests/test_a.py::test_b - assert 1 == 2
========================= 1 failed, 3 passed in 0.12s ========================='"""
OTHER = PROCEDURE.replace("work:", "other:").replace("procedures:", "")


@dataclass(frozen=True)
class Past:
    """A workspace with three runs: one succeeded, one crashed, one timed out."""

    workspace: Workspace
    good: str
    crashed: str
    slow: str


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("past")
    workspace = Workspace(folder / "work", folder / "home")
    workspace.path.mkdir()
    workspace.home.mkdir()
    versioned(workspace).config(PROCEDURE + OTHER)
    rude = workspace.write("agent.rude", RUDE)
    good = workspace.agents(
        f"cat {quoted(rude)}; echo oops >&2; echo 1 > new.txt; echo 'Summary: made a file'",
        "echo 2 > new.txt; rm kept.txt; exit 3",
        f"{PASSES}; {SUCCESS}",
    )
    assert workspace.rooda("work", "--ai-cmd", good).code == 0
    crashes = workspace.agent("kill -9 $$", "agent.crash")
    assert workspace.rooda("other", "--ai-cmd", crashes, "--failure-threshold", "1").code == 1
    sleeps = workspace.agent("exec sleep 60", "agent.sleep")
    late = ("--ai-cmd", sleeps, "-n", "1", "--iteration-timeout", "1")
    assert workspace.rooda("work", *late).code == 2
    slow, crashed, first = [run["run"] for run in asked(workspace.rooda, "history")]
    return Past(workspace, first, crashed, slow)


@pytest.fixture
def rooda(past: Past) -> Rooda:
    """Run `rooda ARGS` in that workspace, in this process, which is faster than a new process."""
    return past.workspace.inside


# -- history -------------------------------------------------------------------------------


@pytest.mark.real
def test_history_lists_runs_newest_first_and_truncates_nothing_in_a_pipe(past: Past) -> None:
    done = past.workspace.rooda("history")
    assert done.code == 0
    assert done.err == ""
    titles, *lines = [re.split("  +", line) for line in done.out.splitlines()]
    assert titles == ["RUN", "STARTED", "PROCEDURE", "STATUS", "ITERATIONS", "TIME", "WHY"]
    assert [(run, *rest[:3]) for run, _, *rest in lines] == [
        (past.slow, "work", "max-iters", "1 failed"),
        (past.crashed, "other", "aborted", "1 failed"),
        (past.good, "work", "success", "2 good, 1 failed"),
    ]
    reasons = [line[-1] for line in lines]
    assert reasons[0] == "the maximum of iterations was reached"
    assert reasons[1].startswith("1 failure in a row, the last one: ")
    # A good run names what it did last.
    assert reasons[2].startswith("tests/test_a.py .F [100%] FAILED ")
    assert "…" not in done.out


@pytest.mark.real
def test_history_json_has_everything_of_a_run_except_its_iterations(
    past: Past, rooda: Rooda
) -> None:
    runs = asked(rooda, "history")
    assert [run["run"] for run in runs] == [past.slow, past.crashed, past.good]
    for run in runs:
        assert run.keys() >= OF_A_RUN
        assert "iterations" not in run
        assert run["summary"].keys() == OF_A_SUMMARY
        assert run["schema_version"] == 1
        begin, end = (datetime.fromisoformat(run[key]) for key in ("started_at", "ended_at"))
        assert begin.tzinfo is not None
        assert begin <= end
        assert run["wall_seconds"] == pytest.approx((end - begin).total_seconds(), abs=0.01)
        assert run["waited_seconds"] == 0
    assert runs[2]["headline"].startswith("tests/test_a.py .F")
    assert [run["exit_code"] for run in runs] == [2, 1, 0]
    assert [run["status"] for run in runs] == ["max-iters", "aborted", "success"]
    assert all(run["reason"] for run in runs)
    summary = runs[2]["summary"]
    assert summary["total_duration_ms"] >= 0
    assert {**summary, "total_duration_ms": 0} == {
        "total_iterations": 3,
        "successful_iterations": 2,
        "failed_iterations": 1,
        "timed_out_iterations": 0,
        "total_duration_ms": 0,
        "total_files_modified": 1,
        "total_files_created": 1,
        "total_tests_run": 4,
        "total_tests_passed": 3,
        "total_tests_failed": 1,
    }
    assert runs[0]["summary"]["timed_out_iterations"] == 1
    assert runs[0]["summary"]["total_duration_ms"] >= 1000


@pytest.mark.real
def test_history_filters_by_status_procedure_date_and_count(past: Past, rooda: Rooda) -> None:
    today = datetime.now().astimezone().date()
    for words, found in {
        ("--status", "aborted"): [past.crashed],
        ("--procedure", "work", "--until", str(today)): [past.slow, past.good],
        ("--since", str(today - timedelta(days=1)), "-n", "1"): [past.slow],
        ("--until", str(today - timedelta(days=1))): [],
    }.items():
        assert [run["run"] for run in asked(rooda, "history", *words)] == found, words


@pytest.mark.real
def test_history_says_that_no_run_matches(rooda: Rooda) -> None:
    done = rooda("history", "--procedure", "missing")
    assert (done.code, done.out) == (0, "")
    assert "No run matches." in done.err


@pytest.mark.real
@pytest.mark.parametrize("words", [("--since", "garbage"), ("--until", "2025-13-40")])
def test_invalid_date_gives_a_clear_error(rooda: Rooda, words: tuple[str, str]) -> None:
    refused(rooda("history", *words), words[1])


@pytest.mark.real
def test_tables_fit_a_narrow_terminal(past: Past) -> None:
    for words in (("history",), ("show", past.good)):
        screen = Screen(columns=48, rows=100)
        try:
            screen.start(past.workspace, *words, "--color", "never")
            assert screen.finish() == 0
            shown = screen.sent.decode().split("\r\n")
        finally:
            screen.close()
        rows = [line for line in shown if "Next" not in line and not line.startswith("  ")]
        assert max(map(len, rows)) == 48, rows
        assert any(line.endswith("…") for line in rows)
        assert any(past.good in line for line in rows)


@pytest.mark.real
def test_why_names_the_origin_of_each_limit_on_a_narrow_terminal_in_a_pager(past: Past) -> None:
    whole = past.workspace.rooda("why", past.good).out
    origins = re.findall(r"\((?:built-in|cli: \S+|[^()]*yml[^()]*)\)\n", whole)
    assert origins
    screen = Screen(columns=40, rows=3)
    try:
        screen.start(past.workspace, "why", past.good, env={"PAGER": "sed s/$/@/"})
        assert screen.finish() == 0
        shown = screen.sent.decode().replace("@", "").replace("\r\n", " ")
    finally:
        screen.close()
    assert b"@" in screen.sent
    assert "…" not in shown
    for origin in origins:
        assert " ".join(origin.split()) in " ".join(shown.split())


# -- show ----------------------------------------------------------------------------------


@pytest.mark.real
def test_show_prints_a_run_with_one_line_for_each_iteration(past: Past, rooda: Rooda) -> None:
    done = rooda("show", past.good)
    assert done.code == 0
    outcome, rule, *_ = done.out.splitlines()
    assert re.fullmatch(r"work: work ended as success \(exit code 0\) after \d+\.\ds\.", outcome)
    assert rule == "The agent signaled SUCCESS in iteration 3 of at most 5."
    assert "Iterations  3 (2 good, 1 failed)\n" in done.out
    assert "Tests       3 passed, 1 failed\n" in done.out
    assert "Changes     2 files +2 -2, 0 commits\n" in done.out
    table = done.out.partition("\nNO ")[2].partition("\n\n")[0]
    rows = [re.split("  +", line.strip()) for line in table.splitlines()[1:]]
    assert [row[:2] for row in rows] == [["1", "completed"], ["2", "failed"], ["3", "completed"]]
    assert rows[0][3:] == ["1 +1 -0", "made a file"]
    assert rows[1][3:] == ["2 +1 -2", "exit code 3"]
    assert rows[2][3:5] == ["none", "3/4"]
    assert "\n2  failed: exit  Exit code 3. Iteration 3 completed.\n" in done.out
    assert f"\n  rooda why {past.good} " in done.out.partition("\nNext\n")[2]


@pytest.mark.real
def test_colors_are_printed_on_a_terminal_or_if_asked_for(past: Past, rooda: Rooda) -> None:
    for words in (("show",), ("show", "1"), ("history",)):
        assert "\x1b" not in rooda(*words).out
        assert "\x1b[31m" in rooda(*words, "--color", "always").out
    screen = Screen(rows=100)
    try:
        screen.start(past.workspace, "history", env={"NO_COLOR": None})
        assert screen.finish() == 0
    finally:
        screen.close()
    assert b"\x1b[32msuccess\x1b[0m" in screen.sent


@pytest.mark.real
def test_show_without_a_name_shows_the_last_run(past: Past, rooda: Rooda) -> None:
    assert f"Run         {past.slow}\n" in rooda("show").out


@pytest.mark.real
def test_show_prints_everything_known_of_an_iteration(past: Past, rooda: Rooda) -> None:
    done = rooda("show", past.good, "2")
    assert done.code == 0
    for line in ("Status     failed", "Exit code  3", "Progress   yes"):
        assert f"{line}\n" in done.out
    assert done.out.startswith("Iteration 2 failed (exit): Exit code 3.\n")
    assert "Modified\n  new.txt +1 -1\n" in done.out
    assert "Deleted\n  kept.txt +0 -1\n" in done.out
    assert f"\nNext\n  rooda diff {past.good} 2 " in done.out
    tests = rooda("show", past.good, "3").out
    assert "Tests      3 of 4 passed, 1 failed\n" in tests
    assert "Failed tests\n  tests/test_a.py::test_b: assert 1 == 2\n" in tests
    assert "What the agent said last\n" in tests


@pytest.mark.real
def test_show_json_of_a_run_has_the_documented_keys(past: Past) -> None:
    run = asked(past.workspace.rooda, "show", past.good)
    assert run.keys() >= OF_A_RUN | {"iterations"}
    assert [one["number"] for one in run["iterations"]] == [1, 2, 3]
    assert run["headline"] == asked(past.workspace.rooda, "history")[2]["headline"]
    assert (run["commits"], run["lines"]) == (0, {"files": 2, "added": 2, "deleted": 2})
    assert run["wall_seconds"] >= sum(one["wall_seconds"] for one in run["iterations"]) > 0
    for one in run["iterations"]:
        assert one.keys() >= OF_AN_ITERATION | MORE_OF_AN_ITERATION
        assert one["result"].keys() == OF_A_RESULT
        # A shell script as an agent reports none of these.
        unknown = {"model", "session_id", "turns", "tokens", "cost"}
        assert {one[name] for name in unknown} == {None}
        assert one["result"]["context_usage_percent"] is None
        assert one["prompt"].startswith("# OODA Loop Iteration")
    first, second, third = (one["result"] for one in run["iterations"])
    assert first["stdout"] == RUDE.decode("utf-8", "replace") + "Summary: made a file\n"
    assert first["stderr"] == "oops\n"
    assert first["summary"] == "made a file"
    assert first["test_results"] is None
    assert first["tests_run"] is False
    assert (first["files_created"], first["files_modified"]) == (["new.txt"], [])
    assert (second["exit_code"], second["files_deleted"]) == (3, ["kept.txt"])
    assert second["files_modified"] == ["new.txt"]
    assert third["tests_run"] is True
    assert third["test_results"].keys() == OF_TESTS
    assert third["test_results"]["details"] == [
        {
            "name": "tests/test_a.py::test_b",
            "status": "failed",
            "duration_ms": third["test_results"]["details"][0]["duration_ms"],
            "error": "assert 1 == 2",
        }
    ]
    assert [one["signal"] for one in run["iterations"]] == [None, None, "SUCCESS"]
    assert [one["kind"] for one in run["iterations"]] == [None, "exit", None]
    assert run["iterations"][1]["metadata"]["error"]
    assert run["iterations"][0]["metadata"] == {}


@pytest.mark.real
def test_show_json_of_an_iteration_is_the_same_object_as_in_its_run(
    past: Past, rooda: Rooda
) -> None:
    whole = asked(rooda, "show", past.crashed)["iterations"][0]
    alone = asked(rooda, "show", past.crashed, "1")
    assert alone == whole
    assert alone["result"]["exit_code"] == 128 + 9
    assert (alone["status"], alone["kind"]) == ("failed", "crash")


@pytest.mark.real
def test_exit_code_after_a_timeout_is_that_of_the_stopped_agent(rooda: Rooda) -> None:
    (one,) = asked(rooda, "show")["iterations"]
    assert one["status"] == "timed_out"
    assert one["result"]["exit_code"] == 128 + 15
    assert one["kind"] == "timeout"


@pytest.mark.real
def test_running_run_has_no_end_yet(workspace: Workspace, nursery: Nursery) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agents("exit 0", HANGS))
    nursery.pid("agent")
    run = asked(workspace.rooda, "show")
    assert (run["status"], run["ended_at"], run["exit_code"]) == ("running", None, None)
    assert run["reason"] is None
    assert statuses(run) == [(1, "completed"), (2, "executing")]
    assert run["iterations"][1]["result"] is None
    assert run["iterations"][1]["ended_at"] is None
    assert run["iterations"][1]["prompt"]
    assert "is still running" in workspace.rooda("why").out
    running.process.kill()


@pytest.mark.real
def test_run_is_found_by_a_unique_prefix_of_its_name(past: Past, rooda: Rooda) -> None:
    runs = [past.good, past.crashed, past.slow]
    shared = next(n for n in range(30) if len({run[:n] for run in runs}) > 1) - 1
    unique = next(n for n in range(30) if len({run[:n] for run in runs}) == 3)
    assert asked(rooda, "show", past.crashed[:unique])["run"] == past.crashed
    several = rooda("show", past.good[:shared])
    refused(several, "several runs begin with", *runs)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words,expected",
    [
        (("show", "nonsense"), ("there is no run 'nonsense'", "rooda history")),
        (("show", "7"), ("has no iteration 7", "it has 1")),
        (("why", "nonsense"), ("there is no run 'nonsense'",)),
        (("show", "1", "nonsense"), ("'nonsense' is not the number of an iteration",)),
        (("show", "1", "2", "3"), ("a run and an iteration, and no more",)),
        (("show", "7", "--output"), ("has no iteration 7",)),
        (("show", "../../etc/passwd"), ("there is no run",)),
    ],
    ids=lambda words: " ".join(words) if words[0] in ("show", "why") else "",
)
def test_missing_run_or_iteration_gives_one_clear_error(
    rooda: Rooda, words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    refused(rooda(*words), *expected)


def printed(past: Past, *words: str) -> bytes:
    """Return what `rooda show` prints about the good run in a pipe."""
    return subprocess.run(
        [str(ROODA), "show", past.good, *words],
        cwd=past.workspace.path,
        env=past.workspace.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    ).stdout


@pytest.mark.real
def test_show_raw_in_a_pipe_is_the_agent_s_output_byte_for_byte(past: Past) -> None:
    first = printed(past, "1", "--raw")
    # The two streams are in order of arrival, as exactly as rooda polls them.
    assert first.replace(b"oops\n", b"", 1) == RUDE + b"Summary: made a file\n"
    whole = printed(past, "--raw")
    assert whole.startswith(first)
    assert whole.endswith(b"<promise>SUCCESS</promise>\n")


@pytest.mark.real
def test_show_output_of_a_run_names_each_iteration(past: Past, rooda: Rooda) -> None:
    first = printed(past, "1", "--output")
    whole = printed(past, "--output")
    assert whole.startswith(b"=== iteration 1 ===\n" + first + b"=== iteration 2 ===\n=== iter")
    assert whole.endswith(b"<promise>SUCCESS</promise>\n")
    refused(rooda("show", "1", "--output", "--raw"), "exclude each other")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("rows,flag", [(3, "--output"), (40, "--raw")])
def test_output_longer_than_the_terminal_is_paged_and_without_control_codes(
    past: Past, rows: int, flag: str
) -> None:
    screen = Screen(rows=rows)
    try:
        # A program in the work tree may be the agent's.
        planted = past.workspace.write("planted/sed", "#!/bin/sh\necho planted\n")
        planted.chmod(0o755)
        path = f"{planted.parent}{os.pathsep}{os.environ['PATH']}"
        env = {"PAGER": "sed s/^/paged:/", "PATH": path}
        screen.start(past.workspace, "show", past.good, "1", flag, env=env)
        assert screen.finish() == 0
    finally:
        screen.close()
    sent = screen.sent.decode()
    mark = "paged:" if rows == 3 else ""
    assert f"{mark}plain red café \ufffd end\r\n" in sent
    assert "owned" not in sent
    assert not [char for char in sent if ord(char) < 32 and char not in "\r\n"]
    assert not [char for char in sent if 0x7F <= ord(char) < 0xA0]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("pager", ["head -n 1", "no-such-pager", "less 'half a quote"])
def test_any_pager_ends_a_page_without_an_error(past: Past, pager: str) -> None:
    screen = Screen(rows=5)
    try:
        screen.start(past.workspace, "show", past.good, env={"PAGER": pager})
        screen.wait_for("ended as success")
        screen.type(b"q")
        assert screen.finish() == 0
    finally:
        screen.close()
    assert b"rror" not in screen.sent


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("command", ["show --json", "history --json", "why --json"])
def test_closed_pipe_is_success(past: Past, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as out:
        done = subprocess.run(
            [ROODA, *command.split()],
            cwd=past.workspace.path,
            env=past.workspace.environ(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.real
def test_show_output_prints_no_error_if_the_reader_closes_the_pipe_early(past: Past) -> None:
    script = f'{quoted(ROODA)} show "$0" --output | head -c 1; exec sleep 0'
    done = subprocess.run(
        ["sh", "-c", script, past.good],
        cwd=past.workspace.path,
        env=past.workspace.environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


# -- why -----------------------------------------------------------------------------------


@pytest.mark.real
def test_why_names_the_rule_the_evidence_the_counters_and_the_limits(
    past: Past, rooda: Rooda
) -> None:
    done = rooda("why", past.crashed)
    assert done.code == 0
    for line in (
        f"Run {past.crashed} (other) ended as aborted, exit code 1.",
        "Rule: failure-threshold. Too many iterations failed in a row.",
        "Iteration 1: failed.",
        "Kind: crash (a signal ended it, or it was lost)",
        "Exit code of the agent: 137 (SIGKILL)",
        "Failures in a row: 0 before, 1 after, of 1",
    ):
        assert f"{line}\n" in done.out, done.out
    (limit,) = [line for line in done.out.splitlines() if "loop.failure_threshold" in line]
    assert limit.split() == ["loop.failure_threshold", "1", "(cli:", "--failure-threshold)"]
    assert "SIGKILL" in done.out


@pytest.mark.real
def test_why_of_an_iteration_quotes_the_output_that_decided(past: Past, rooda: Rooda) -> None:
    done = rooda("why", past.good, "3")
    assert done.code == 0
    assert "Iteration 3: completed.\n" in done.out
    assert "Evidence: " in done.out
    assert "<promise>SUCCESS</promise>" in done.out
    assert "Signal of the agent: SUCCESS\n" in done.out
    assert "Failures in a row: 1 before, 0 after, of 3\n" in done.out
    assert "loop.signals.success" in done.out


@pytest.mark.real
def test_why_json_has_the_same_facts(past: Past, rooda: Rooda) -> None:
    found = asked(rooda, "why")
    assert {key: found[key] for key in ("run", "status", "rule", "exit_code")} == {
        "run": past.slow,
        "status": "max-iters",
        "rule": "max-iterations",
        "exit_code": 2,
    }
    one = found["iteration"]
    assert (one["number"], one["status"], one["kind"]) == (1, "timed_out", "timeout")
    assert (one["failures_before"], one["failures_after"], one["threshold"]) == (0, 1, 3)
    settings = {one["name"]: (one["value"], one["origin"]) for one in found["settings"]}
    assert settings["loop.iteration_timeout"] == ("1s", "cli: --iteration-timeout")


# -- which folder --------------------------------------------------------------------------


@pytest.mark.real
def test_record_is_found_from_a_subfolder(past: Past) -> None:
    below = within(past.workspace, "deep/down")
    assert asked(below.rooda, "show", past.good, "1")["number"] == 1
    assert [run["run"] for run in asked(below.rooda, "history")][-1] == past.good


def test_folder_without_a_record_is_reported_and_stays_empty(workspace: Workspace) -> None:
    rooda = workspace.inside
    done = rooda("history")
    assert (done.code, done.out) == (0, "")
    assert "No run is recorded here yet." in done.err
    assert asked(rooda, "history") == []
    for words in (("show",), ("why", "1"), ("show", "--output"), ("follow",), ("diff", "1")):
        refused(rooda(*words), "no run has been recorded here yet")
    assert list(workspace.path.iterdir()) == []


# -- readers during a run ------------------------------------------------------------------


def read_until_the_end(workspace: Workspace, nursery: Nursery, iterations: int) -> list[Any]:
    """Run two readers in a loop during a run of quick iterations. Return what `show` read."""
    running = nursery.start(workspace, "work", "--ai-cmd", "true", "-n", str(iterations))
    until((workspace.state / "rooda.db").exists, "a record")

    def read(words: tuple[str, ...]) -> list[Any]:
        seen: list[Any] = []
        while running.process.poll() is None:
            done = workspace.start(*words, "--json").finish()
            if "no run has been recorded here yet" in done.err and not seen:
                continue  # the first row is not written yet
            assert (done.code, done.err) == (0, ""), done.err
            seen.append(json.loads(done.out))
        return seen

    with ThreadPoolExecutor(2) as pool:
        histories, shows = pool.map(read, [("history",), ("show",)])
    done = running.finish()
    assert done.code == 2
    assert "record" not in done.err
    assert histories
    assert shows
    for before, after in pairwise(shows):
        assert len(before["iterations"]) <= len(after["iterations"])
        ended = [one for one in statuses(before) if one[1] == "completed"]
        assert statuses(after)[: len(ended)] == ended
    return shows


@pytest.mark.real
def test_reading_the_record_never_disturbs_a_run(workspace: Workspace, nursery: Nursery) -> None:
    read_until_the_end(workspace, nursery, 25)
    assert len(asked(workspace.rooda, "show")["iterations"]) == 25


@pytest.mark.real
@pytest.mark.timeout(180)
def test_reading_the_record_never_disturbs_a_long_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    git(versioned(workspace), "status")
    assert len(read_until_the_end(workspace, nursery, 200)) > 1
    assert len(asked(workspace.rooda, "show")["iterations"]) == 200
