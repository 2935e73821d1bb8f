"""`rooda.iteration`: its types and operations, as another program uses them."""

import gc
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs
from msgspec.structs import fields

from rooda import iteration as api
from rooda.iteration import (
    CommandSession,
    FileChangeTracker,
    HistoryConfig,
    HistorySummary,
    Iteration,
    IterationConfig,
    IterationExecutor,
    IterationHistory,
    IterationResult,
    IterationStatus,
    Printed,
    Response,
    TestDetail,
    TestResults,
    TestStatus,
)
from rooda.loop.progress import detect_progress, extract_summary
from support.tables import each_row
from support.workspace import alive, wait_for

S = IterationStatus


def counted(passed: int, failed: int = 0, skipped: int = 0) -> TestResults:
    return TestResults(passed + failed + skipped, passed, failed, skipped)


def result(**more: object) -> IterationResult:
    return IterationResult(**{"exit_code": 0, "duration_ms": 100} | more)  # type: ignore[arg-type]


def ended(number: int, status: IterationStatus = S.COMPLETED, **more: object) -> Iteration:
    one = Iteration(number, f"prompt {number}")
    one.end(status, result(**more))
    return one


# -- types ---------------------------------------------------------------------------------


def test_documented_names_are_exported() -> None:
    assert set(api.__all__) >= {
        "FileChangeTracker",
        "HistoryConfig",
        "HistorySummary",
        "Iteration",
        "IterationConfig",
        "IterationExecutor",
        "IterationHistory",
        "IterationResult",
        "IterationStatus",
        "TestDetail",
        "TestResults",
        "TestStatus",
    }
    assert all(getattr(api, name).__doc__ for name in api.__all__)


def test_statuses_are_the_documented_ones_and_interrupted() -> None:
    assert [str(status) for status in IterationStatus] == [
        "pending",
        "pre_hooks",
        "executing",
        "post_hooks",
        "completed",
        "failed",
        "timed_out",
        "skipped",
        "interrupted",
    ]
    assert {str(status) for status in TestStatus} >= {"passed", "failed", "skipped", "error"}


def test_new_iteration_is_pending_and_has_no_end() -> None:
    before = datetime.now(UTC)
    one = Iteration(3, "do it")
    assert before <= one.started_at <= datetime.now(UTC)
    assert (one.number, one.prompt, one.status) == (3, "do it", S.PENDING)
    assert (one.ended_at, one.result, one.metadata, one.duration()) == (None, None, {}, None)


def test_iteration_ends_as_completed_failed_or_timed_out() -> None:
    done, failed, late = Iteration(1), Iteration(2), Iteration(3)
    found = result()
    done.complete(found)
    failed.fail("no more tokens")
    late.timeout()
    assert (done.status, done.result) == (S.COMPLETED, found)
    assert (failed.status, failed.metadata) == (S.FAILED, {"error": "no more tokens"})
    assert late.status is S.TIMED_OUT
    for one in (done, failed, late):
        assert one.ended_at is not None
        assert one.duration() == one.ended_at - one.started_at
        assert timedelta(0) <= (one.duration() or timedelta(days=1)) < timedelta(seconds=5)


def test_failed_iteration_keeps_its_result() -> None:
    one = Iteration(1)
    one.fail("tests", result(exit_code=7))
    assert one.result is not None
    assert one.result.exit_code == 7


def test_results_have_a_success_rate() -> None:
    assert counted(3, 1).success_rate() == 75.0
    assert counted(0).success_rate() == 100.0
    assert counted(3).all_passed()
    assert not counted(3, 1).all_passed()
    detail = TestDetail("test_a", TestStatus.FAILED, 12, "assert 1 == 2")
    assert (detail.name, detail.duration_ms, detail.error) == ("test_a", 12, "assert 1 == 2")


def test_result_takes_output_as_text_and_reports_tests() -> None:
    one = result(stdout="out", stderr="err", test_results=counted(1))
    assert (one.stdout, one.stderr) == ("out", "err")
    assert one.tests_run
    assert structs.replace(result(), test_results=counted(1)).tests_run
    assert not result().tests_run
    assert result().context_usage_percent is None


def test_json_of_an_iteration_keeps_prompt_and_output() -> None:
    one = ended(1, stdout="out \u2713\n", stderr="err", test_results=counted(2, 1))
    data = json.loads(json.dumps(one.to_json()))
    assert (data["prompt"], data["result"]["stdout"]) == ("prompt 1", "out \u2713\n")
    assert data["result"]["tests_run"] is True
    assert Iteration.from_json(data) == one
    assert one.result is not None
    assert IterationResult.from_json(data["result"]) == one.result


# -- history -------------------------------------------------------------------------------


def test_history_keeps_the_last_hundred_by_default() -> None:
    assert IterationHistory().config == HistoryConfig(100, persist=True, persist_path=None)
    history = IterationHistory(HistoryConfig(max_in_memory=3))
    for number in range(1, 6):
        history.add(ended(number))
    assert [one.number for one in history.get_last(9)] == [5, 4, 3]
    assert [one.number for one in history.get_last(2)] == [5, 4]
    assert history.get_last(0) == []
    assert history.get(2) is None
    assert history.get(4) == history.get_last(2)[1]
    # The summary includes iterations that are no longer in memory.
    assert history.get_summary().total_iterations == 5


def test_filter_returns_matching_iterations() -> None:
    history = IterationHistory(None, [ended(1), ended(2, S.FAILED), ended(3), ended(4, S.FAILED)])
    found = history.filter(lambda one: one.status is S.FAILED)
    assert [one.number for one in found] == [2, 4]


@each_row(
    "statuses,streak",
    [
        ((), 0),
        ((S.COMPLETED,), 0),
        ((S.FAILED, S.COMPLETED), 0),
        ((S.COMPLETED, S.FAILED, S.TIMED_OUT), 2),
        # Neither success nor failure: the streak continues.
        ((S.FAILED, S.INTERRUPTED, S.TIMED_OUT), 2),
        ((S.COMPLETED, S.SKIPPED, S.FAILED), 2),
    ],
    ids=str,
)
def test_success_ends_the_streak_of_failures(
    statuses: tuple[IterationStatus, ...], streak: int
) -> None:
    history = IterationHistory(None, [ended(n, status) for n, status in enumerate(statuses, 1)])
    assert history.get_failure_streak() == streak


def test_summary_counts_each_iteration_with_a_result() -> None:
    assert {field.name for field in fields(HistorySummary)} == {
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
    history = IterationHistory()
    history.add(
        ended(1, files_created=("a", "b"), files_modified=("c",), test_results=counted(3, 1))
    )
    history.add(ended(2, S.FAILED, files_modified=("c",), test_results=counted(1, 1, 1)))
    history.add(ended(3, S.TIMED_OUT))
    nothing = Iteration(4)
    nothing.fail("it could not be started")
    history.add(nothing)
    assert history.get_summary() == HistorySummary(4, 1, 2, 1, 300, 2, 2, 7, 4, 2)


def test_persisted_history_is_loaded_with_its_summary(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    config = HistoryConfig(persist_path=path)
    detail = TestDetail("test_a", TestStatus.FAILED, 12, "assert 1 == 2")
    history = IterationHistory(config)
    history.add(
        ended(
            1,
            stdout="out",
            stderr="err",
            files_created=("new\udcff.txt",),
            test_results=TestResults(1, 0, 1, 0, (detail,)),
            summary="did it",
        )
    )
    history.add(ended(2, S.TIMED_OUT, exit_code=None))
    history.persist()
    loaded = IterationHistory(config, [ended(9)])  # load() replaces these
    loaded.load()
    assert loaded.get_last(9) == history.get_last(9)
    assert loaded.get_summary() == history.get_summary()
    assert json.loads(path.read_text())[0]["prompt"] == "prompt 1"


def test_nothing_is_read_or_written_without_persist_or_path(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    for config in (HistoryConfig(persist=False, persist_path=path), HistoryConfig()):
        history = IterationHistory(config, [ended(1)])
        history.persist()
        history.load()
        assert history.get(1) is not None
    assert list(tmp_path.iterdir()) == []
    history = IterationHistory(HistoryConfig(persist_path=path), [ended(1)])
    history.load()  # there is no file yet
    assert history.get_summary().total_iterations == 1


@each_row("content", ["", "nonsense", "{}", "[7]", '[{"number": 1}]', "[" * 9999])
def test_broken_file_is_an_error_and_changes_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "history.json"
    path.write_text(content)
    history = IterationHistory(HistoryConfig(persist_path=path), [ended(1)])
    with pytest.raises(ValueError, match="has no history"):
        history.load()
    assert history.get(1) is not None
    assert history.get_summary().total_iterations == 1


# -- summary and progress ------------------------------------------------------------------


@each_row(
    "text,summary",
    [
        ("nothing of the kind", None),
        ("Summary: made it", "made it"),
        ("## Summary\n\nmade it\n", "made it"),
        ("### Summary\na\nb\nc\nd\ne\nf", "a\nb\nc\nd"),
        ("## Summary of it\na\nb\nc\nd\ne", "of it\na\nb\nc\nd"),
        ("Summary: first\n## Summary\nsecond", "first\n## Summary\nsecond"),
        ("## Summary\n\n\n\n\n\ntoo late", None),
        ("Summary:\x1b[31m red\x1b[0m", "red"),
    ],
)
def test_summary_is_five_lines_from_the_first_marker(text: str, summary: str | None) -> None:
    assert extract_summary(text.encode()) == summary


@each_row(
    "now,before,better",
    [
        (None, None, False),
        (counted(0), None, False),
        (counted(3), None, True),
        (counted(0, 3), None, False),
        (counted(3), counted(3), False),
        (counted(4), counted(3), True),
        (counted(3, 1), counted(3, 2), True),
        (counted(2, 1), counted(3, 1), False),
        (counted(0), counted(3, 2), False),
        (None, counted(3, 2), False),
    ],
    ids=str,
)
def test_progress_is_files_commits_or_better_tests(
    now: TestResults | None, before: TestResults | None, *, better: bool
) -> None:
    assert detect_progress(files_changed=False, tests=now, tests_before=before) is better
    assert detect_progress(files_changed=True, tests=now, tests_before=before)
    assert detect_progress(files_changed=False, commits_made=1, tests=now, tests_before=before)


# -- execution -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shell() -> Iterator[CommandSession]:
    """Yield a session that runs its prompt as a shell script."""
    with CommandSession(["sh"]) as session:
        yield session


def config(folder: Path, **more: object) -> IterationConfig:
    return structs.replace(IterationConfig(working_dir=folder), **more)


@pytest.mark.real
def test_executed_iteration_has_its_measured_result(tmp_path: Path, shell: CommandSession) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "gone.txt").write_text("gone")
    script = (
        'echo "$WORD"; echo oops >&2; echo new > deep.txt; mkdir d; mv deep.txt d/; rm gone.txt; '
        "echo newer >> old.txt; echo 'Summary: three files'"
    )
    one = Iteration(1, script)
    executor = IterationExecutor(config(tmp_path, env_vars={"WORD": "hello"}))
    found = executor.execute(one, shell)
    assert (one.status, one.result) == (S.COMPLETED, found)
    assert one.ended_at is not None
    assert found.exit_code == 0
    assert found.stdout.startswith("hello\n")
    assert found.stderr == "oops\n"
    assert found.files_created == ("d/deep.txt",)
    assert found.files_modified == ("old.txt",)
    assert found.files_deleted == ("gone.txt",)
    assert found.summary == "three files"
    assert found.progress_detected
    assert found.context_usage_percent is None
    assert found.duration_ms >= 0


@pytest.mark.real
def test_progress_is_relative_to_the_iteration_before(
    tmp_path: Path, shell: CommandSession
) -> None:
    executor = IterationExecutor(config(tmp_path))
    words = "echo '===== 2 passed in 0.10s ====='"
    first, second, third = (
        executor.execute(Iteration(n, script), shell)
        for n, script in enumerate((words, words, f"{words}; echo > new"), 1)
    )
    assert first.test_results == counted(2)
    assert (first.progress_detected, second.progress_detected) == (True, False)
    assert third.progress_detected
    assert third.files_created == ("new",)


@pytest.mark.real
def test_what_the_caller_changes_between_iterations_is_not_the_agents(
    tmp_path: Path, shell: CommandSession
) -> None:
    executor = IterationExecutor(config(tmp_path))
    executor.execute(Iteration(1, "true"), shell)
    (tmp_path / "of-the-caller").touch()
    found = executor.execute(Iteration(2, "true"), shell)
    assert (found.files_created, found.progress_detected) == ((), False)


@pytest.mark.real
def test_disabled_measurements_are_skipped(tmp_path: Path, shell: CommandSession) -> None:
    executor = IterationExecutor(config(tmp_path, track_file_changes=False, parse_tests=False))
    script = "echo > new; echo '===== 2 passed in 0.10s ====='"
    found = executor.execute(Iteration(1, script), shell)
    assert (found.files_created, found.test_results, found.tests_run) == ((), None, False)
    assert not found.progress_detected


@pytest.mark.real
@pytest.mark.parametrize(
    "script,code,error",
    [("exit 7", 7, "exit code 7"), ("kill -9 $$", 137, "killed by SIGKILL")],
)
def test_failing_command_has_a_result(
    tmp_path: Path, shell: CommandSession, script: str, code: int, error: str
) -> None:
    one = Iteration(1, f"echo > new; {script}")
    found = IterationExecutor(config(tmp_path)).execute(one, shell)
    assert one.status is S.FAILED
    assert one.metadata == {"error": error}
    assert found.exit_code == code
    assert found.files_created == ("new",)


@pytest.mark.real
def test_timeout_kills_the_whole_process_tree(tmp_path: Path, shell: CommandSession) -> None:
    child = f"{sys.executable} -S -c 'import os, time; os.setsid(); time.sleep(60)'"
    script = f"{child} & echo $! > child.pid; echo half; exec sleep 60"
    one = Iteration(1, script)
    started = time.monotonic()
    found = IterationExecutor(config(tmp_path, timeout=0.5)).execute(one, shell)
    assert time.monotonic() - started < 5
    assert one.status is S.TIMED_OUT
    assert found.exit_code == 143, "SIGTERM"
    assert found.stdout == "half\n"
    assert not alive(int(wait_for(tmp_path / "child.pid")))


@pytest.mark.real
def test_each_call_of_a_session_closes_its_descriptors(
    tmp_path: Path, shell: CommandSession
) -> None:
    IterationExecutor(config(tmp_path)).execute(Iteration(1, "true"), shell)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        IterationExecutor(config(tmp_path)).execute(Iteration(1, "true"), shell)
    gc.collect()
    assert len(list(Path("/dev/fd").iterdir())) <= before


@pytest.mark.real
def test_missing_command_is_a_failure(tmp_path: Path) -> None:
    one = Iteration(1, "anything")
    with CommandSession([str(tmp_path / "missing")]) as session:
        found = IterationExecutor(config(tmp_path)).execute(one, session)
    assert one.status is S.FAILED
    assert found.exit_code is None
    assert one.metadata["error"]


@pytest.mark.real
def test_any_object_with_the_methods_is_a_session(tmp_path: Path) -> None:
    class Parrot:
        def execute_prompt(self, prompt: str, config: IterationConfig) -> Response:
            (config.working_dir / "answer").write_text(prompt)
            return Response(S.COMPLETED, 0, Printed.of(prompt))

        def get_context_usage(self) -> int | None:
            return 42

    found = IterationExecutor(config(tmp_path)).execute(Iteration(1, "Summary: hello"), Parrot())
    assert (found.stdout, found.summary) == ("Summary: hello", "hello")
    assert found.context_usage_percent == 42
    assert found.files_created == ("answer",)


@pytest.mark.real
def test_tracker_detects_changes_between_two_scans(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    tracker = FileChangeTracker(tmp_path)
    tracker.snapshot()
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").write_text("2")
    assert tracker.detect_changes() == (["a"], ["b"], [])
    assert tracker.detect_changes() == ([], [], [])


@pytest.mark.real
def test_tracker_without_an_earlier_scan_detects_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    assert FileChangeTracker(tmp_path).detect_changes() == ([], [], [])


@pytest.mark.real
def test_failed_scan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        FileChangeTracker(tmp_path / "missing").detect_changes()


@pytest.mark.real
def test_snapshot_always_starts_from_now(tmp_path: Path) -> None:
    tracker = api.FileChangeTracker(tmp_path)
    tracker.snapshot()
    (tmp_path / "of-the-caller").touch()
    tracker.snapshot()
    (tmp_path / "new").touch()
    assert tracker.detect_changes() == ([], ["new"], [])
