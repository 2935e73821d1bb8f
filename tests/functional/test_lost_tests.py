"""Tests that disappear between two checks, and flaky checks, through the installed command."""

import json
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"
# Writes a JUnit report with the tests in the file `tests`, one name on each line.
REPORT = r"""
{ echo '<testsuite name="s">'
sed 's|\(.*\) skip|<testcase name="\1"><skipped/></testcase>|; t; s|.*|<testcase name="&"/>|' tests
echo '</testsuite>'; } > report.xml
"""


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        (found.path / ".gitignore").write_text("report.xml\ndone\n")
        yield found


def passes(work: GitWork) -> str:
    """Return a check that prints as many passed tests as the file `count` says."""
    (work.path / "count").write_text("41 passed")
    work.commit()
    return 'echo "=== $(cat count) in 0.12s ==="'


def test_fewer_tests_are_reported_once_and_the_new_count_is_the_reference(work: GitWork) -> None:
    work.settings(verify=passes(work))
    fewer, skipping = "echo 38 passed > count", "echo 36 passed, 2 skipped > count"
    done = work.work(work.agents(fewer, "touch a", skipping, f"touch b; {SUCCESS}"))
    assert done.code == 0, "a warning does not fail the iteration"
    lines = [line.partition("] ")[2] for line in done.err.splitlines() if "fewer tests" in line]
    assert lines == [
        "WARN: Verify passed with fewer tests: 41 tests before, 38 now",
        "WARN: Verify passed with fewer tests: 0 skipped before, 2 now",
    ]
    assert " · tests 38/38 · 3 tests fewer" in done.err
    first, second, third, last = work.record()
    assert first["tests_lost"]["loss"]["before"] == 41
    assert first["tests_lost"]["loss"]["now"] == 38
    assert first["tests_lost"]["is_failure"] is False
    assert (second["tests_lost"], last["tests_lost"]) == (None, None)
    assert third["tests_lost"]["loss"]["skipped_now"] == 2
    assert not any("FEEDBACK" in one["prompt"] for one in work.record())
    assert "Tests lost  41 tests before, 38 now\n" in work.rooda("show", "1").out
    assert "Tests lost: 41 tests before, 38 now\n" in work.rooda("why", "1").out
    assert "1  3 tests fewer   41 tests before, 38 now." in work.rooda("show").out
    report = work.rooda("report", "--format", "markdown").out
    assert "1 **3 tests fewer**: 41 tests before, 38 now." in report


@pytest.mark.long
def test_fewer_tests_fail_until_they_are_back_or_the_user_accepts_the_loss(work: GitWork) -> None:
    work.settings(verify={"command": REPORT, "shrink": "fail"}, test_reports=["report.xml"])
    (work.path / "tests").write_text("adds\nsubtracts\ndivides\n")
    work.commit()
    agents = work.agents(
        "printf 'adds\\ndivides skip\\n' > tests",
        "touch a",
        "printf 'adds\\ntakes away\\ndivides\\n' > tests",
        f"printf 'adds\\ntakes away\\n' > tests; {SUCCESS}",
    )
    done = work.work(agents, "-n", "4", "--failure-threshold", "5", "--log-format", "json")
    assert done.code == 2
    kinds = [one["kind"] for one in work.record()]
    assert kinds == ["fewer-tests", "fewer-tests", None, "fewer-tests"]
    first, second, third, last = work.record()
    assert first["reason"] == "verify passed with fewer tests: 1 test fewer, 1 more skipped"
    assert first["tests_lost"]["loss"]["gone"] == ["subtracts"]
    assert first["tests_lost"]["loss"]["newly_skipped"] == ["divides"]
    assert "3 tests before, 2 now, 0 skipped before, 1 now. That does not" in second["prompt"]
    assert "Tests that are gone:\n\n    subtracts\n" in second["prompt"]
    assert "Tests that are skipped now:\n\n    divides\n" in second["prompt"]
    assert third["tests_lost"]["loss"]["kind"] == "replaced", "a rename is no loss"
    assert last["signal"] == "SUCCESS"
    assert last["tests_lost"]["loss"]["before"] == 3, "the reference stays after a failure"
    events = [json.loads(line) for line in done.err.splitlines()]
    lost = [one["is_failure"] for one in events if one["event"] == "tests_lost"]
    assert lost == [True] * 3, "a rename is only in a debug log"
    assert "Kind: fewer-tests (" in work.rooda("why").out
    resumed = work.rooda("resume", "-n", "6", "--verify-shrink", "warn")
    assert resumed.code == 0, resumed.err
    assert work.record()[-1]["tests_lost"]["is_failure"] is False


def test_failed_check_with_fewer_tests_is_not_judged_and_does_not_lower_the_reference(
    work: GitWork,
) -> None:
    check = f"{passes(work)}; test ! -e broken"
    work.settings(verify={"command": check, "shrink": "fail"})
    stops = "echo 1 failed, 2 passed > count; touch broken"
    done = work.work(work.agents(stops, f"rm broken; echo 40 passed > count; {SUCCESS}"), "-n", "2")
    assert done.code == 2
    first, second = work.record()
    assert (first["kind"], first["tests_lost"]) == ("verify", None)
    assert (second["kind"], second["tests_lost"]["loss"]["before"]) == ("fewer-tests", 41)


def test_check_that_runs_no_tests_is_a_loss_unless_nothing_has_changed(work: GitWork) -> None:
    check = f"test -e done || {passes(work)}"
    work.settings(verify={"command": check, "shrink": "fail"})
    done = work.work(work.agents("touch done", f"touch a; {SUCCESS}"), "-n", "2")
    assert done.code == 2
    first, second = work.record()
    assert (first["kind"], first["tests_lost"]) == (None, None), "only an ignored file is new"
    assert (second["kind"], second["tests_lost"]["loss"]["now"]) == ("fewer-tests", 0)


def test_check_that_passes_on_a_later_try_is_flaky_and_no_failure(work: GitWork) -> None:
    check = work.counted(f"echo try; test $(wc -l < {work.marker('checks')}) -ge 4")
    work.settings(verify={"command": check, "retries": 2})
    done = work.work(work.agents(SUCCESS))
    assert (done.code, work.starts, work.checks()) == (0, 1, 4), "the baseline has one try"
    assert "WARN: Verify failed on try 1 of 3, trying again: exit code 1" in done.err
    assert "WARN: Verify is flaky: it passed on try 3" in done.err
    [one] = work.record()
    assert (one["verify"]["is_flaky"], len(one["verify"]["failed_tries"])) == (True, 2)
    assert one["verify"]["failed_tries"][0]["error"] == "exit code 1"
    folder = next((work.state / "runs").glob("*/1"))
    assert sorted(file.name for file in folder.glob("verify*")) == [
        "verify-try-1.log",
        "verify-try-2.log",
        "verify.log",
    ]
    assert "passed on try 3 (flaky) after" in work.rooda("show", "1").out
    assert "verify is flaky" in work.rooda("show").out
    assert "Verify: passed on try 3 (flaky) after" in work.rooda("why", "1").out
    assert "verify is flaky" in work.rooda("report", "--format", "markdown").out


@pytest.mark.long
def test_check_that_fails_on_each_try_fails_the_iteration(work: GitWork) -> None:
    check = {"command": work.counted("exit 3"), "retries": 1, "baseline": False}
    work.settings(verify=check)
    done = work.work(work.agents(SUCCESS), "-n", "1")
    assert (done.code, work.checks()) == (2, 2)
    assert "WARN: Verify failed in 2 tries, the last one: exit code 3" in done.err
    assert work.record()[0]["kind"] == "verify"
    work.settings(verify=check | {"command": work.counted("exit 127")})
    assert work.work(work.agents(SUCCESS), "-n", "1").code == 2
    assert work.checks() == 3, "a check that can't run is not repeated"
    work.settings(verify=check | {"command": work.counted("sleep 60")}, max_duration=2)
    assert work.work(work.agents(SUCCESS), "-n", "1").code == 1
    assert work.checks() == 4, "the run is over"
