from datetime import timedelta

import pytest
from msgspec.structs import replace

from rooda.loop.events.work import BaselineEnded, Committed, SnapshotTaken
from rooda.loop.next_steps import RunCommands
from rooda.loop.result import IterationResult
from rooda.loop.state import State
from rooda.loop.wait_kinds import WaitKind
from rooda.record.rows import IterationRow, RecordedSetting, RecordedWait, RunRow, Slept
from rooda.views.model.build import summarize
from rooda.views.model.summary import ProofState, RunSummary, SpanKind
from rooda.views.wording.labels import clock
from rooda.world.git.snapshots.tree_changes import LineCount, LineCounts
from rooda.world.process.events import NamedProcess
from support.nights import RUN, START, STEP, at, checked, failed, iteration, night, results, sha
from support.tables import each_row

NOW = START + timedelta(hours=9)


def summary(run: RunRow, *rows: IterationRow) -> RunSummary:
    return summarize(run, rows, NOW)


def good_night() -> RunSummary:
    rows = [
        iteration(1, results(4)),
        failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2")),
        iteration(3, results(9)),
        iteration(4, results(26), signal="SUCCESS", verdict="done"),
    ]
    assert rows[1].result is not None
    rows[1] = replace(rows[1], result=replace(rows[1].result, test_results=results(4, 2)))
    return summary(night(ended_at=at(4 * STEP)), *rows)


def test_totals_are_distinct_files_last_tests_and_wall_time() -> None:
    found = good_night()
    assert (found.good, found.failed, found.other) == (3, 1, 0)
    assert found.seconds == 4 * STEP
    assert found.files == 5, "one file that all changed, and one new file of each"
    assert (found.added, found.deleted) == (120, 16)
    assert found.tests_first is not None
    assert found.tests_last is not None
    assert (found.tests_first.passed, found.tests_last.passed) == (4, 26)
    assert [one.tests_gained for one in found.iterations] == [0, 0, 5, 17]
    assert found.commits == 3
    assert (found.first_commit, found.last_commit) == (sha(0), sha(4))
    assert found.cost == 2.0
    assert found.tokens is not None
    assert (found.tokens.total, found.tokens.cache_read) == (4000, 3400)
    assert found.changed[0].name == "src/parser.py"
    assert (found.changed[0].added, found.changed[0].iterations) == (80, (1, 2, 3, 4))
    assert found.project == "tabq"


def test_totals_count_the_lines_of_all_files() -> None:
    """The record names only the files with the most changed lines."""
    names = tuple(f"f{number}" for number in range(150))
    result = IterationResult(exit_code=0, files_created=names)
    named = tuple(LineCount(name, 1, 0) for name in names[:100])
    many = iteration(1, result=result, lines=LineCounts(150, 150, 7, named))
    found = summary(night(), many, iteration(2))
    assert (found.files, found.added, found.deleted) == (152, 180, 11)


def test_a_run_in_its_first_moment_has_spent_no_time() -> None:
    row = iteration(1, status="executing", ended_at=None, segments=(), duration=None, result=None)
    run = summarize(night(status="running", ended_at=None), [replace(row, verify=None)], START)
    assert (run.seconds, run.times) == (0.0, {})


def test_times_are_told_apart() -> None:
    found = good_night()
    assert found.times == {
        SpanKind.AGENT: 2000.0,
        SpanKind.VERIFY: 160.0,
        SpanKind.COMMIT: 8.0,
    }
    first = found.iterations[1].spans[0]
    assert (first.kind, first.start, first.seconds) == (SpanKind.AGENT, STEP + 0.5, 500.0)


def test_success_names_signal_limit_and_proof() -> None:
    found = good_night()
    expected = (
        "The agent signaled SUCCESS in iteration 4 of at most 40, and verify passed after it."
    )
    assert found.rule_text == expected
    proof = found.proof
    assert (proof.state, proof.command, proof.iteration) == (ProofState.PASSED, "make test", 4)
    assert (proof.commit, proof.after) == (sha(4)[:7], "")
    assert proof.tests is not None
    assert proof.tests.passed == 26
    commands = [one.command for one in found.next_commands]
    assert commands[0] == f"git log --oneline --stat {sha(0)[:7]}..{sha(4)[:7]}"
    assert not any("resume" in one for one in commands)


def test_failures_come_first_and_say_how_the_run_went_on() -> None:
    (note,) = good_night().notes
    assert (note.iteration, note.title, note.is_failure) == (2, "failed: verify", True)
    assert note.text == (
        "2 of 6 tests failed, first test_0. All tests passed again after iteration 3."
    )


def blocked_night() -> RunSummary:
    run = night(
        status="aborted",
        rule="failure-threshold",
        reason="too many failures in a row",
        consecutive_failures=3,
        threshold=3,
        ended_at=at(5 * STEP),
    )
    words = "the agent says that it is blocked: I need TABQ_S3_KEY."
    nothing = IterationResult(exit_code=0)
    return summary(
        run,
        iteration(1, results(41)),
        iteration(2, results(49)),
        failed(3, "verify", "verify failed: exit code 2", verify=checked(3, "exit code 2")),
        failed(4, "signal", words, signal="FAILURE", verify=None),
        failed(5, "signal", words, signal="FAILURE", verify=None, result=nothing, lines=None),
    )


def test_failed_night_names_the_threshold_and_the_last_proven_state() -> None:
    found = blocked_night()
    assert found.rule_text == (
        "3 failures in a row reached failure_threshold (3, built-in). "
        f"Nothing ran after {clock(at(5 * STEP))}."
    )
    proof = found.proof
    assert (proof.state, proof.iteration, proof.commit) == (
        ProofState.NOT_PROVEN,
        2,
        sha(2)[:7],
    )
    assert proof.after == (
        "Iterations 3 to 4 left 3 changed files uncommitted, "
        "and verify failed on them (iteration 3)."
    )
    assert found.closing == "I need TABQ_S3_KEY."
    assert found.closing_iteration == 5
    assert [note.title for note in found.notes] == ["failed: verify"] + ["failed: signal"] * 2
    assert found.notes[2].text.endswith("Verify did not run. The run ended here.")
    assert found.notes[1].text == "The agent signaled FAILURE. Verify did not run."
    commands = [one.command for one in found.next_commands]
    assert commands[0] == f"rooda resume {RUN}"
    assert f"rooda show {RUN} 5" in commands
    assert f"rooda restore {RUN} 2" in commands
    assert found.next_hint.startswith("The agent signaled FAILURE: settle what it names")


def test_proof_knows_the_commits_of_the_agent() -> None:
    result = IterationResult(exit_code=0, files_created=tuple(map(str, range(70))))
    own = {"commit": None, "verify": None}
    rows = [iteration(2, commits=1, **own), iteration(3, commits=2, **own)]
    found = summary(night(), iteration(1), *rows)
    assert found.proof.after == (
        "Iterations 2 to 3 left 3 changed files (the agent made 3 commits), "
        "and verify did not run on them."
    )
    rows = [iteration(1), iteration(2, result=result, **own), iteration(3, **own)]
    after = [summary(night(), *rows[:number]).proof.after for number in (2, 3)]
    assert after[0].startswith("Iteration 2 left 70 changed files uncommitted")
    assert after[1].startswith("Iterations 2 to 3 left at least 70 changed files uncommitted")


@pytest.mark.parametrize("command,expected", [("none", ""), ("make test", " Verify did not run.")])
def test_a_run_without_verify_does_not_say_that_it_did_not_run(command: str, expected: str) -> None:
    settings = (RecordedSetting("loop.verify.command", command, "cli"),)
    row = failed(1, "signal", "blocked", signal="FAILURE", verify=None)
    (note,) = summary(night(settings=settings), row).notes
    assert note.text == f"The agent signaled FAILURE.{expected}"


def interrupted(number: int) -> IterationRow:
    """Return an iteration whose check was interrupted."""
    check = replace(checked(number, "interrupted"), exit_code=None)
    row = iteration(number, verify=check, commit=None, verdict="interrupted")
    return replace(row, status="interrupted", reason="interrupted")


def baseline(error: str = "", code: int = 0, *, cannot_run: bool = False) -> BaselineEnded:
    return BaselineEnded("make test", code, error, 1.0, "", cannot_run=cannot_run)


BAD = failed(1, "verify", "verify failed: exit code 2", verify=checked(1, "exit code 2"))
UNCHECKED = iteration(1, verify=None)


@each_row(
    "before,rows,expected",
    [
        (None, [interrupted(1)], "It never passed; a signal interrupted it after iteration 1."),
        (
            None,
            [BAD, interrupted(2)],
            (
                "It never passed; it failed last after iteration 1, "
                "and a signal interrupted it after iteration 2."
            ),
        ),
        (
            None,
            [iteration(1), interrupted(2)],
            "Iteration 2 left 2 changed files uncommitted, and verify was interrupted on them.",
        ),
        (
            None,
            [iteration(1), iteration(2, verify=None, result=None)],
            "Iteration 2 came after it, and verify did not run on its result.",
        ),
        (None, [UNCHECKED], "The run had no verify command that ran."),
        (
            baseline(),
            [BAD],
            "It passed only before the first iteration; it failed last after iteration 1.",
        ),
        (
            baseline(),
            [UNCHECKED],
            "Verify ran only before the first iteration, and it passed.",
        ),
        (
            baseline("exit code 2", 2),
            [],
            "Verify ran only before the first iteration, and it failed (exit code 2).",
        ),
        (
            baseline("exit code 127", 127, cannot_run=True),
            [],
            "Verify can't run (exit code 127); rooda tried it before the first iteration.",
        ),
    ],
)
def test_proof_tells_failed_interrupted_and_earlier_checks_apart(
    before: BaselineEnded | None, rows: list[IterationRow], expected: str
) -> None:
    assert summary(night(baseline=before), *rows).proof.after == expected


def test_waits_attempts_and_sleep_are_on_the_timeline() -> None:
    wait = RecordedWait(
        2, "limit", "claude", "out", at(3600), 3000, waited=2990.0, started_at=at(610)
    )
    run = night(ended_at=at(5000), waits=(wait,))
    stopped = iteration(2, status="interrupted", kind="limit", verdict="limited", verify=None)
    again = iteration(2, attempt=2, started_at=at(3600), ended_at=at(4300))
    again = replace(again, slept=(Slept(at(3800), 100.0),))
    found = summary(run, iteration(1), replace(stopped, duration=10.0, segments=()), again)
    second = found.iterations[1]
    assert (second.number, second.attempt, second.status) == (2, 2, "completed")
    assert (second.waited, second.seconds, second.cost) == (2990.0, 555.0, 1.0)
    kinds = [(span.kind, span.start, span.seconds) for span in second.spans[-5:]]
    assert kinds == [
        (SpanKind.AGENT, 3600.5, 99.5),
        (SpanKind.ASLEEP, 3700.0, 100.0),
        (SpanKind.AGENT, 3800.0, 400.5),
        (SpanKind.VERIFY, 4201.0, 40.0),
        (SpanKind.COMMIT, 4241.5, 2.0),
    ]
    (waited,) = [span for span in found.spans if span.kind is WaitKind.LIMIT]
    assert (waited.start, waited.seconds, waited.iteration) == (610.0, 2990.0, 2)
    assert found.waited == 2990.0


def test_a_resumed_run_shows_the_time_in_which_it_did_not_run() -> None:
    later = iteration(2, started_at=at(7200), ended_at=at(7760))
    found = summary(night(ended_at=at(7760)), iteration(1), later)
    (pause,) = found.spans
    assert (pause.kind, pause.start, pause.seconds) == (SpanKind.STOPPED, 560.0, 6640.0)


def test_a_record_without_segments_lines_and_headlines_still_has_a_timeline() -> None:
    result = IterationResult(
        exit_code=0, files_created=("a",), summary="- Did all of **it**.\nMore", duration_ms=9000
    )
    old = iteration(1, result=result, segments=(), lines=None, headline=None)
    found = summary(night(waits=None, snapshot=None), old)
    (one,) = found.iterations
    assert one.headline == "Did all of it"
    assert [(span.kind, span.start, span.seconds) for span in one.spans] == [
        (SpanKind.AGENT, 0.0, 9.0),
        (SpanKind.VERIFY, 9.0, 40.0),
    ]
    assert (found.files, found.added, one.changed[0].name) == (1, None, "a")


def test_worth_a_look() -> None:
    process = NamedProcess(48211, "sort -S 2G")
    snapshot = SnapshotTaken(3, sha(103), sha(203), sha(2), ("big.bin",))
    found = summary(
        night(),
        iteration(1, results(9)),
        iteration(2, results(8), cleaned_up=(process,)),
        iteration(3, snapshot=snapshot),
        iteration(4, snapshot=snapshot),
        failed(5, "timeout", "iteration_timeout", status="timed_out", cleaned_up=(process,)),
    )
    assert [(note.iteration, note.title, note.text) for note in found.notes] == [
        (5, "timed_out", "Stopped by iteration_timeout; rooda ended 1 process."),
        (2, "1 test fewer", "9 to 8 tests."),
        (2, "process ended", "Left running by the agent: sort -S 2G (pid 48211)"),
        (3, "file left out", "In no snapshot: big.bin"),
    ]


@each_row(
    "fields,rule,proof",
    [
        ({"status": "running", "ended_at": None, "rule": None}, "at work at iteration 1", "passed"),
        ({"status": "interrupted", "rule": None, "reason": None}, "was killed", "passed"),
        (
            {"status": "interrupted", "rule": "stopped"},
            f"`rooda stop` at {clock(at(STEP))}",
            "passed",
        ),
        ({"status": "max-iters", "rule": "max-iterations"}, "All 40 iterations ran", "passed"),
        (
            {"status": "max-iters", "rule": "max-iterations", "max_iterations": 1},
            "The only iteration ran",
            "passed",
        ),
        (
            {"status": "aborted", "rule": "max-cost", "reason": "$5.00 of $5.00 spent (max_cost)"},
            "as much as it may. $5.00 of $5.00 spent (max_cost).",
            "passed",
        ),
        ({"status": "aborted", "rule": "a-later-one"}, "no rule ended", "passed"),
    ],
)
def test_every_kind_of_end_has_its_sentence(
    fields: dict[str, str | int | None], rule: str, proof: str
) -> None:
    found = summary(night(**fields), iteration(1))
    assert rule in found.rule_text
    assert found.proof.state == proof
    why = " ".join(one.why for one in found.next_commands)
    assert ("the rule that decided" in why) == (found.status != "running")


def test_refused_success_in_the_last_iteration_is_a_signal() -> None:
    run = night(status="max-iters", rule="max-iterations", max_iterations=2)
    refused = failed(2, "not-done", "PLAN.md has 1 open task", signal="SUCCESS")
    words = "All 2 iterations ran; the agent signaled SUCCESS in the last one, but it failed"
    assert summary(run, iteration(1), refused).rule_text == f"{words} (not-done)."
    blocked = failed(2, "signal", "it is blocked", signal="FAILURE")
    assert summary(run, iteration(1), blocked).rule_text.endswith("the work is done.")


def test_a_run_without_iterations_and_without_verify() -> None:
    empty = summary(night(status="aborted", rule="not-started", reason="no such file"))
    assert empty.proof.state is ProofState.NOT_CHECKED
    assert (empty.tests_last, empty.cost, empty.tokens, empty.files) == (None, None, None, 0)
    unchecked = summary(night(), iteration(1, results(3), verify=None))
    assert unchecked.proof.state is ProofState.NOT_CHECKED


@each_row(
    "procedure,rule,setting,expected",
    [
        ("build", "stall", ("x", "y"), f"rooda resume {RUN}"),
        ("build", "max-iterations", ("x", "y"), f"rooda resume {RUN} --max-iterations 50"),
        ("build", "max-cost", ("loop.max_cost", "$5.00"), f"rooda resume {RUN} --max-cost 10"),
        (
            "build",
            "max-duration",
            ("loop.max_duration", "28800s"),
            f"rooda resume {RUN} --max-duration 57600s",
        ),
        (
            "build",
            "max-tokens",
            ("loop.max_tokens", "1000000"),
            f"rooda resume {RUN} --max-tokens 2000000",
        ),
        ("build", "max-cost", ("x", "y"), f"rooda resume {RUN} --max-cost MORE"),
        ("ralph build", "stall", ("x", "y"), f"ralph build --resume={RUN}"),
        (
            "ralph build",
            "max-iterations",
            ("x", "y"),
            f"ralph build --resume={RUN} --max-iterations 50",
        ),
        (
            "ralph build",
            "max-cost",
            ("loop.max_cost", "$5.00"),
            f"ROODA_LOOP_MAX_COST=10 ralph build --resume={RUN}",
        ),
        ("ralph build; rm -rf /", "stall", ("x", "y"), f"rooda resume {RUN}"),
    ],
)
def test_the_first_command_continues_the_run(
    procedure: str, rule: str, setting: tuple[str, str], expected: str
) -> None:
    known = (RecordedSetting(*setting, "cli"),)
    run = night(status="aborted", rule=rule, procedure=procedure, settings=known)
    found = summary(run, iteration(1))
    assert found.next_commands[0].command == expected


@each_row(
    "resume,expected",
    [(f"ralph build --resume={RUN}", f"ralph build --resume={RUN}"), ("rm -rf /", "rooda resume")],
)
def test_the_record_keeps_the_command_that_resumes_the_run(resume: str, expected: str) -> None:
    kept = RunCommands("ralph build", resume)
    run = night(status="aborted", rule="stall", procedure="work", commands=kept)
    assert summary(run, iteration(1)).next_commands[0].command.startswith(expected)


def test_without_snapshots_no_command_needs_one() -> None:
    seen = SnapshotTaken(0, sha(1), None, sha(0))
    rows = [
        iteration(1, results(9), snapshot=seen),
        iteration(2, results(8), verify=None, snapshot=seen),
    ]
    for run in (night(snapshot=seen), night(snapshot=None)):
        for some in (rows, rows[:1]):
            text = " ".join(one.command for one in summary(run, *some).next_commands)
            assert "rooda why" in text
            assert "rooda diff" not in text
            assert "rooda restore" not in text


def test_without_commits_the_snapshots_show_the_whole_run() -> None:
    kept = SnapshotTaken(1, sha(3), sha(4), sha(0))
    for commit, expected in ((None, f"rooda diff {RUN}"), (Committed(1, sha(1), "x"), "git diff")):
        rows = [iteration(1, commit=commit, snapshot=kept)]
        commands = [one.command for one in summary(night(), *rows).next_commands]
        (whole,) = [one for one in commands if "diff" in one]
        assert whole.startswith(expected)


def test_the_diff_of_the_whole_run_has_what_is_not_committed() -> None:
    """`git diff` of the commits would not show it."""
    left = failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2"))
    rows = [iteration(1), left]
    (whole,) = [one for one in summary(night(), *rows).next_commands if " diff " in one.command]
    assert whole.command == f"rooda diff {RUN}"
    assert whole.why == "Review the whole run, also what is not committed"


def test_commit_of_the_agent_may_lack_the_work_of_an_earlier_iteration() -> None:
    """A commit of rooda has all of it."""
    left = failed(1, "verify", "verify failed: exit code 2", verify=checked(1, "exit code 2"))
    for commit, commits, expected in (
        (None, 1, f"rooda diff {RUN}"),
        (Committed(2, sha(2), "x"), None, "git diff"),
    ):
        rows = [left, iteration(2, commit=commit, commits=commits)]
        found = summary(night(), *rows).next_commands
        (whole,) = [one for one in found if " diff " in one.command]
        assert whole.command.startswith(expected)
        assert whole.why.startswith("Review the whole run")


def test_the_diff_of_an_iteration_is_named_where_it_shows_what_is_odd() -> None:
    """A process that the agent left running is in no diff."""
    left = iteration(1, results(9), cleaned_up=(NamedProcess(7, "sleep 600"),))
    found = summary(night(), left, iteration(2, results(8)))
    assert [note.title for note in found.notes] == ["process ended", "1 test fewer"]
    (looked,) = [one for one in found.next_commands if one.command.startswith("rooda diff")]
    assert (looked.why, looked.command) == (
        "Look at the change of iteration 2",
        f"rooda diff {RUN} 2",
    )


def test_without_snapshots_the_diff_is_that_of_the_commits() -> None:
    before, seen = (SnapshotTaken(0, sha(9), None, head) for head in (sha(0), sha(1)))
    rows = [
        iteration(1, snapshot=seen),
        failed(2, "verify", "no", verify=checked(2, "exit code 2"), snapshot=seen),
    ]
    found = summary(night(snapshot=before), *rows).next_commands
    (whole,) = [one for one in found if " diff " in one.command]
    assert whole.command == f"git diff {sha(0)[:7]}..{sha(1)[:7]}"
    assert whole.why == "Review the commits as one diff"


@pytest.mark.parametrize(
    "status,ended,expected",
    [
        ("aborted", 0, "Continue at iteration 1; failures count from 0"),
        ("aborted", 1, "Continue at iteration 2; failures count from 0"),
        ("interrupted", 0, "Continue at iteration 1"),
    ],
)
def test_the_run_continues_where_its_state_says(status: str, ended: int, expected: str) -> None:
    """A failed attempt that is tried again has not ended its iteration."""
    state = replace(State(), iteration=ended).saved()
    run = night(status=status, rule="stall", state=state)
    found = summary(run, failed(1, "agent", "no"))
    assert found.next_commands[0].why == expected
    broken = summary(replace(run, unreadable={"state": "no"}), failed(1, "agent", "no"))
    assert not any("resume" in one.command for one in broken.next_commands)
