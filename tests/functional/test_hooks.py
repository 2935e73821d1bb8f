"""Hooks through the installed command: their events, input, process tree and timeout."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace, alive, wait_for

pytestmark = pytest.mark.real

MOMENTS = ("loop_start", "pre_iteration", "post_iteration", "on_failure", "loop_end")
SUCCESS = "echo '<promise>SUCCESS</promise>'"
HANGS = "exec sleep 60"
# A hook that records its call, its variables and its standard input.
NOTE = """
cat > "$0.$ROODA_EVENT$ROODA_ITERATION"
echo "$ROODA_EVENT:$ROODA_ITERATION:$ROODA_STATUS" >> "$0.order"
echo "$ROODA_RUN $ROODA_PROCEDURE" >> "$0.names"
"""


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def note(work: GitWork) -> str:
    return work.script("note", NOTE)


def order(work: GitWork) -> list[str]:
    return work.marker("note.order").read_text().splitlines()


def received(work: GitWork, moment: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(work.marker(f"note.{moment}").read_text())
    return found


def hangs(work: GitWork, name: str = "hook") -> str:
    """Return a command that writes its pid and then hangs."""
    return f"echo $$ > {work.marker(f'{name}.pid')}; {HANGS}"


def pid_in(path: Path) -> int:
    return int(wait_for(path))


@pytest.mark.long
def test_hooks_run_at_their_events_with_the_state_of_the_run(work: GitWork) -> None:
    work.settings(hooks={moment: ["echo oops; no-such-command", note(work)] for moment in MOMENTS})
    done = work.work(work.agents("touch new", "exit 7", SUCCESS))
    assert done.code == 0, "a failing hook is ignored by default"
    assert order(work) == [
        "loop_start::running",
        "pre_iteration:1:pre_hooks",
        "post_iteration:1:completed",
        "pre_iteration:2:pre_hooks",
        "post_iteration:2:failed",
        "on_failure:2:failed",
        "pre_iteration:3:pre_hooks",
        "post_iteration:3:completed",
        "loop_end:3:success",
    ]
    run = work.run_record()
    assert set(work.marker("note.names").read_text().splitlines()) == {f"{run['run']} work"}
    first, failed, end = (
        received(work, moment) for moment in ("post_iteration1", "on_failure2", "loop_end3")
    )
    assert (first["event"], first["run"], first["iteration"]) == ("post_iteration", run["run"], 1)
    assert first["result"]["files_created"] == ["new"]
    assert (failed["kind"], failed["reason"]) == ("exit", "exit code 7")
    assert (end["status"], end["exit_code"], end["iterations"]) == ("success", 0, 3)
    assert done.err.count("WARN: The pre_iteration hook failed") == 3


@pytest.mark.long
def test_output_of_hooks_is_recorded(work: GitWork) -> None:
    flood = "yes | head -c 20000000; echo the end >&2"
    work.settings(
        hooks={
            "loop_start": "echo started",
            "pre_iteration": [{"command": flood}, "exec <&-; exit 3"],
            "loop_end": "echo ended",
        }
    )
    assert work.work("true", "-n", "1").code == 2
    shown = json.loads(work.rooda("show", "1", "--json").out)["hooks"]
    assert [(one["hook"], one["exit_code"], one["error"]) for one in shown] == [
        ("pre_iteration", 0, ""),
        ("pre_iteration", 3, "exit code 3"),
    ]
    assert len(shown[0]["output"]) <= 64 * 1024
    assert shown[0]["output"].endswith("y\nthe end")
    assert shown[0]["command"] == flood
    of_run = [(one["hook"], one["output"]) for one in work.run_record()["hooks"]]
    assert of_run == [("loop_start", "started"), ("loop_end", "ended")]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "body,args,status",
    [
        ("exit 0", ["-n", "1"], "max-iters"),
        ("exit 1", ["--failure-threshold", "1"], "aborted"),
    ],
    ids=["max-iters", "aborted"],
)
def test_loop_end_hook_runs_whatever_the_status(
    work: GitWork, body: str, args: list[str], status: str
) -> None:
    work.settings(hooks={"loop_end": note(work)})
    done = work.work(work.agent(body), *args)
    assert order(work) == [f"loop_end:1:{status}"]
    assert received(work, "loop_end1")["exit_code"] == done.code


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_loop_end_hook_runs_after_an_interruption(work: GitWork, number: signal.Signals) -> None:
    work.settings(hooks={"post_iteration": note(work), "loop_end": note(work)})
    running = work.begin(work.agent(hangs(work, "agent")))
    agent = pid_in(work.marker("agent.pid"))
    running.signal(number)
    done = running.finish()
    assert done.code == 130
    assert order(work) == ["loop_end::interrupted"]
    assert received(work, "loop_end")["exit_code"] == 130
    assert not alive(agent)


# -- on_error --------------------------------------------------------------------------------


def test_failing_pre_iteration_hook_skips_the_iteration_and_counts_as_failure(
    work: GitWork,
) -> None:
    objects = {"command": "echo not now; test $ROODA_ITERATION != 2", "on_error": "fail"}
    work.settings(hooks={"pre_iteration": [objects, note(work)], "on_failure": note(work)})
    done = work.work(work.agents("exit 7", "exit 0"), "-n", "3")
    assert work.starts == 2, "the agent did not start"
    assert done.code == 2
    assert [one["status"] for one in work.record()] == ["failed", "skipped", "completed"]
    assert [one["failures_after"] for one in work.record()] == [1, 2, 0]
    skipped = work.record()[1]
    assert (skipped["number"], skipped["kind"], skipped["result"]) == (2, "hook", None)
    assert skipped["reason"] == "the pre_iteration hook failed: exit code 1"
    assert skipped["hooks"][0]["output"] == "not now"
    assert order(work) == [
        "pre_iteration:1:pre_hooks",
        "on_failure:1:failed",
        "on_failure:2:skipped",
        "pre_iteration:3:pre_hooks",
    ]
    assert any(
        line.startswith("Iteration 2/3 ") and line.endswith("(failure, consecutive: 2/3)")
        for line in done.log
    )


@pytest.mark.long
@pytest.mark.parametrize("form", ["text", "logfmt"])
def test_skipped_iteration_is_logged_with_its_reason_and_the_failure_count(
    work: GitWork, form: str
) -> None:
    work.settings(hooks={"pre_iteration": {"command": "exit 9", "on_error": "fail"}})
    done = work.work("true", "-n", "1", "--log-format", form)
    line = {
        "text": "Iteration 1/1 completed in 0.0s (failure, consecutive: 1/3)",
        "logfmt": "consecutive_failures=1 threshold=3 iteration=1",
    }[form]
    assert line in done.err
    assert "exit code 9" in done.err


def test_skipped_iterations_count_toward_the_failure_threshold(work: GitWork) -> None:
    work.settings(hooks={"pre_iteration": {"command": "false", "on_error": "fail"}})
    done = work.work(work.agents("exit 0"))
    assert (done.code, work.starts) == (1, 0)
    assert [one["status"] for one in work.record()] == ["skipped"] * 3
    assert "3 (0 good, 3 failed)" in work.rooda("show").out
    assert any("Aborting after 3 consecutive failures" in line for line in done.log)


def test_post_iteration_hook_can_turn_success_into_failure(work: GitWork) -> None:
    objects = {"command": "test $ROODA_ITERATION != 1", "on_error": "fail"}
    work.settings(hooks={"post_iteration": objects})
    assert work.work(work.agents(SUCCESS), "-n", "4").code == 0
    first, second = work.record()
    assert (first["status"], first["kind"], first["signal"]) == ("failed", "hook", "SUCCESS")
    assert second["status"] == "completed"


@pytest.mark.long
@pytest.mark.parametrize(
    "moment,starts",
    [
        pytest.param("loop_start", 0, marks=pytest.mark.long),
        ("pre_iteration", 0),
        pytest.param("post_iteration", 1, marks=pytest.mark.long),
        pytest.param("on_failure", 1, marks=pytest.mark.long),
    ],
)
def test_hook_with_on_error_abort_ends_the_run(work: GitWork, moment: str, starts: int) -> None:
    abort = {"command": "echo enough; exit 9", "on_error": "abort"}
    work.settings(hooks={moment: [abort, note(work)], "loop_end": note(work)})
    done = work.work(work.agents("exit 7"))
    assert (done.code, work.starts) == (1, starts)
    run = work.run_record()
    assert (run["status"], run["rule"]) == ("aborted", "hook")
    assert run["reason"] == f"the {moment} hook failed: exit code 9"
    assert order(work)[0].startswith("loop_end:"), "the next hook of the same event did not run"
    assert "enough" in done.err


def test_failing_loop_end_hook_changes_nothing(work: GitWork) -> None:
    objects = {"command": "false", "on_error": "abort"}
    work.settings(
        hooks={"loop_end": [objects, note(work)], "on_failure": objects | {"on_error": "fail"}}
    )
    done = work.work(work.agents("exit 7", SUCCESS))
    assert done.code == 0
    assert work.run_record()["status"] == "success"


# -- timeout and process tree ----------------------------------------------------------------


@pytest.mark.long
def test_timeout_kills_a_hook_and_all_processes_it_started(work: GitWork) -> None:
    """Including a child in its own session that ignores SIGTERM."""
    away = f"trap '' TERM; echo $$ > {work.marker('away.pid')}; while :; do sleep 60; done"
    hook = f"setsid sh -c {json.dumps(away).replace('$', chr(92) + '$')} & {hangs(work)}"
    work.settings(
        kill_grace=0.1,
        hooks={"pre_iteration": {"command": hook, "timeout": "2s", "on_error": "fail"}},
    )
    done = work.work(work.agents("exit 0"), "-n", "1")
    assert done.code == 2
    assert done.seconds < 20
    for name in ("hook", "away"):
        assert not alive(pid_in(work.marker(f"{name}.pid")))
    (skipped,) = work.record()
    assert (skipped["status"], skipped["hooks"][0]["error"]) == ("skipped", "timed out after 2s")


@pytest.mark.long
def test_orphan_of_a_hook_is_killed_and_named(work: GitWork) -> None:
    left = work.script("left-behind", f"echo $$ > {work.marker('left.pid')}; sleep 60")
    waits = f"while ! test -s {work.marker('left.pid')}; do sleep 0.01; done"
    hook = f"setsid {left} > /dev/null 2>&1 & {waits}"
    work.settings(hooks={"post_iteration": hook})
    done = work.work("true", "-n", "1")
    assert done.code == 2
    assert not alive(pid_in(work.marker("left.pid")))
    (found,) = work.record()[0]["hooks"]
    assert (found["error"], found["exit_code"]) == ("", 0)
    assert any("left-behind" in json.dumps(one) for one in found["cleaned_up"])


@pytest.mark.long
def test_changes_by_hooks_are_not_counted_as_the_agent_s(work: GitWork) -> None:
    busy = "date +%N%s >> changed-by-a-hook"
    work.settings(hooks={"pre_iteration": busy, "post_iteration": busy})
    work.work("true", "-n", "2")
    for one in work.record():
        result = one["result"]
        assert (result["files_created"], result["files_modified"]) == ([], [])
        assert result["progress_detected"] is False


# -- Ctrl+C ---------------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "moment,statuses",
    [
        pytest.param("loop_start", [], marks=pytest.mark.long),
        ("pre_iteration", ["interrupted"]),
        pytest.param("post_iteration", ["completed"], marks=pytest.mark.long),
    ],
)
def test_ctrl_c_during_a_hook_ends_the_run(work: GitWork, moment: str, statuses: list[str]) -> None:
    work.settings(hooks={moment: {"command": hangs(work), "timeout": "60s"}})
    running = work.begin("true")
    hook = pid_in(work.marker("hook.pid"))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert not alive(hook)
    assert done.err.count("Received SIGINT") == 1
    assert [one["status"] for one in work.record()] == statuses
    assert work.run_record()["status"] == "interrupted"


@pytest.mark.long
def test_after_ctrl_c_only_the_loop_end_hook_runs(work: GitWork) -> None:
    after = {"post_iteration": [hangs(work), note(work)], "on_failure": note(work)}
    work.settings(hooks=after | {"loop_end": note(work)})
    running = work.begin(work.agent("exit 7"))
    pid_in(work.marker("hook.pid"))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert order(work) == ["loop_end:1:interrupted"]
    assert done.err.count("Received SIGINT") == 1
    assert "on_failure" not in done.err


@pytest.mark.long
def test_ctrl_c_during_the_loop_end_hook_stops_the_hook_and_keeps_the_outcome(
    work: GitWork,
) -> None:
    work.settings(hooks={"loop_end": {"command": hangs(work), "timeout": "60s"}})
    running = work.begin("true", "-n", "1")
    hook = pid_in(work.marker("hook.pid"))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 2
    assert not alive(hook)
    assert work.run_record()["status"] == "max-iters"


@pytest.mark.long
@pytest.mark.parametrize("reaction", ["fail", "abort"])
def test_skipped_iterations_do_not_count_as_completed(work: GitWork, reaction: str) -> None:
    objects = {"command": "test $ROODA_ITERATION = 1", "on_error": reaction}
    work.settings(hooks={"pre_iteration": objects}, failure_threshold=1)
    done = work.work(work.agents("exit 0"))
    assert (done.code, work.starts) == (1, 1)
    assert "(1 iteration completed, " in done.err
    work.settings(hooks={"pre_iteration": {"command": "false", "on_error": reaction}})
    done = work.work(work.agents("exit 0"), "--failure-threshold", "1")
    assert (done.code, work.starts) == (1, 1)
    assert "(0 iterations completed, " in done.err
