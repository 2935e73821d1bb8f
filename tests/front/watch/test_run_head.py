"""The headline of a run: how it stands, or its outcome, the rule, the proof and what to do next."""

import pytest

from rooda.base.colors import Color, Painter
from rooda.base.widths import width
from rooda.front.watch.run_head import aged, head_text
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from support.nights import START, doubtful_night, failed, iteration, night, results
from support.watched import at_work

PLAIN = Painter()
MODEL = "(claude-sonnet-4-5)"


def ended() -> RunSummary:
    rows = [iteration(1, results(4)), iteration(2, results(5), signal="SUCCESS")]
    return summarize(night(), rows, START)


def test_a_run_that_has_ended_shows_outcome_rule_proof_and_next_commands() -> None:
    text = head_text(ended(), 100, 24, PLAIN)
    assert text.splitlines() == [
        "✓ tabq: build ended as success (exit code 0) after 10m.",
        "The agent signaled SUCCESS in iteration 2 of at most 40, and verify passed after it.",
        f"iterations 2 (2 good, 0 failed) of at most 40 · $1.00, 2 k tokens {MODEL} · 3 files +60…",
        "Proof  verify passed after iteration 2: 5/5 tests, commit 0000002 (make test)",
        "Next   git log --oneline --stat 0000000..0000002   # Read the 2 commits",
        "       git diff 0000000..0000002   # Review the whole run as one diff",
    ]


def test_a_high_terminal_gets_all_numbers_and_commands() -> None:
    text = head_text(ended(), 100, 50, PLAIN)
    for name in ("Proof", "Tests", "Time", "Iterations", "Changes", "Cost", "Next"):
        assert f"\n{name} " in text
    assert "rooda why" in text


def test_words_of_an_agent_that_gave_up_are_marked_as_not_checked() -> None:
    rows = [failed(1, "signal", "the agent signaled FAILURE: no key")]
    run = summarize(night(status="aborted", rule="failure_threshold", exit_code=1), rows, START)
    text = head_text(run, 100, 50, PLAIN)
    assert "✗ tabq: build ended as aborted" in text
    assert "Agent says  no key (not checked by rooda)" in text


def test_a_run_at_work_grows_older_with_its_iteration() -> None:
    row = iteration(1, status="executing", ended_at=None, duration=None, result=None, segments=())
    run = summarize(at_work(), [row], START)
    older = aged(run, 60)
    assert older.seconds == run.seconds + 60
    assert older.iterations[0].seconds == run.iterations[0].seconds + 60
    assert aged(ended(), 60) == ended()
    first = aged(summarize(at_work(), [], START), 60)
    assert first.is_running
    assert first.seconds >= 60


@pytest.mark.parametrize("room", [1, 8, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [5, 24, 50])
def test_the_headline_fits_every_width(room: int, height: int) -> None:
    for run in (ended(), summarize(at_work(), [iteration(1)], START)):
        lines = head_text(run, room, height, PLAIN).splitlines()
        if room >= 40:
            assert all(width(line) <= room for line in lines)


@pytest.mark.parametrize("height", [10, 24, 50])
def test_success_with_open_tasks_is_a_warning_beside_the_proof(height: int) -> None:
    row, rows = doubtful_night()
    run = summarize(row, rows, START)
    lines = head_text(run, 120, height, PLAIN).splitlines()
    assert lines[0].startswith("! tabq: build ended as success (exit code 0)")
    proof = next(at for at, line in enumerate(lines) if line.startswith("Proof"))
    assert lines[proof + 1].split(maxsplit=1)[1].startswith("14 of 20 tasks; 6 open in PLAN.md: ")
    colored = head_text(run, 120, height, Painter(is_on=True))
    assert colored.startswith(Color.WARNING)
    assert f"{Color.WARNING}Tasks" in colored


def test_run_at_work_shows_how_many_tasks_are_done() -> None:
    _, rows = doubtful_night()
    row = at_work(tasks=rows[0].tasks)
    line = head_text(summarize(row, rows[:1], START), 120, 24, PLAIN).splitlines()[2]
    assert line.startswith("13 of 20 tasks · iterations 1 (1 good, 0 failed)")
