"""`rooda show` and `rooda history` on rows of a night: what a person reads, and hostile rows."""

import re
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from rooda.base.colors import Color, Painter
from rooda.base.widths import width
from rooda.loop.result import IterationResult
from rooda.record.rows import IterationRow, RecordedWait, RunRow
from rooda.views.model.brief import brief_of
from rooda.views.model.build import summarize
from rooda.views.terminal.iteration_view import iteration_text
from rooda.views.terminal.run_view import Page, run_text, runs_text
from rooda.views.wording.words import AgentWords
from support.hostile import ALL
from support.nights import STEP, at, checked, doubtful_night, failed, iteration, night, results
from support.tables import each_row

NOW = datetime.fromisoformat(at(5 * STEP))
WAIT = RecordedWait(
    2, "limit", "claude", "resets at 6", at(1000), 300.0, waited=300.0, started_at=at(700)
)
LONG = "Moved error positions into one class so that every message has line and column"


def three(**more: Any) -> tuple[RunRow, list[IterationRow]]:
    """Return a run of three iterations with a failed check, a wait, and tests from 4 to 26."""
    rows = [
        iteration(1, results(4), headline=LONG),
        failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2")),
        iteration(3, results(26), signal="SUCCESS"),
    ]
    return night(waits=(WAIT,), ended_at=at(2000), **more), rows


def shown(row: RunRow, rows: list[IterationRow], page: Page | None = None) -> str:
    return "".join(run_text(row, summarize(row, rows, NOW), page or Page()))


def test_a_run_begins_with_its_outcome_its_rule_its_proof_and_honest_numbers() -> None:
    text = shown(*three())
    outcome, rule, empty, *lines = text.splitlines()
    assert outcome == "tabq: build ended as success (exit code 0) after 33m."
    assert rule.startswith("The agent signaled SUCCESS in iteration 3 of at most 40, and verify")
    assert not empty
    named = dict(re.split("  +", line, maxsplit=1) for line in lines[: lines.index("")])
    assert (
        named["Proof"] == "verify passed after iteration 3: 26/26 tests, commit 0000003 (make test)"
    )
    assert named["Tests"] == "4 to 26 passed"
    assert named["Iterations"] == "3 (2 good, 1 failed)"
    assert named["Changes"] == "4 files +90 -12, 2 commits"
    assert named["Cost"] == "$1.50, 3 k tokens (claude-sonnet-4-5)"
    assert named["Time"].startswith("33m (")
    assert named["Time"].endswith(
        ": agent 25m, verify 2m, commit 6.0s, waiting 5m (usage limit 5m)"
    )


def test_a_sum_of_costs_says_which_iteration_it_does_not_have() -> None:
    """An agent that rooda stopped has not told its cost."""
    row, rows = three()
    rows[1] = replace(rows[1], cost=None)
    assert "\nCost        $1.00 (iteration 2 not known), 3 k tokens" in shown(row, rows)
    run = summarize(row, rows, NOW)
    text = "".join(iteration_text(rows[1], run.iterations[1], run, AgentWords(""), Page()))
    assert "\nUsed       1 k tokens\n" in text
    rows = [replace(one, cost=None) for one in rows]
    assert "\nCost        3 k tokens" in shown(row, rows)


def test_each_iteration_has_one_row_with_its_headline_or_what_failed() -> None:
    table = shown(*three()).partition("\nNO ")[2].partition("\n\n")[0].splitlines()
    rows = [re.split("  +", line.strip()) for line in table]
    assert rows[0] == ["STATUS", "TIME", "WAITED", "FILES", "TESTS", "COST", "COMMIT", "HEADLINE"]
    assert rows[1] == ["1", "completed", "9m05s", "2 +30 -4", "4/4", "$0.50", "0000001", LONG]
    assert rows[2] == [
        *("2", "failed", "14m05s", "5m00s", "2 +30 -4", "$0.50", "verify failed: exit code 2"),
    ]
    assert rows[3][-2:] == ["0000003", "Finished step 3"]


@each_row("room", [60, 80, 100, 160])
def test_status_and_reason_stay_on_every_terminal(room: int) -> None:
    row, rows = three(status="aborted", rule="failure-threshold", reason="too many failures")
    text = shown(row, rows, Page(room))
    body = text.partition("\nNext\n")[0]  # a command is never cut: it is there to be copied
    assert max(map(width, body.splitlines())) <= room
    assert re.search(r"^ *2  failed .*  verify failed: exit code 2$", text, re.MULTILINE)
    runs = runs_text([brief_of(row, "x", NOW)], Page(room))
    assert max(map(width, runs.splitlines())) <= room
    assert re.search(r"^\S+ .*aborted .*  too many fail", runs, re.MULTILINE)


def test_each_next_command_has_its_purpose_beside_it_or_above_it() -> None:
    row, rows = three()
    wide = shown(row, rows, Page(100)).partition("\nNext\n")[2].splitlines()
    assert any(re.fullmatch(rf"  rooda why {row.run} +# See the rule .*", line) for line in wide)
    narrow = shown(row, rows, Page(60)).partition("\nNext\n")[2].splitlines()
    place = narrow.index(f"  rooda why {row.run}")
    assert narrow[place - 1].startswith("  # See the rule ")
    assert max(map(width, [*wide, *narrow])) <= 100


def test_an_iteration_tells_how_it_spent_its_time_and_what_verify_printed() -> None:
    row, rows = three()
    run = summarize(row, rows, NOW)
    words = AgentWords("I stop here.\n<promise>FAILURE</promise>")
    text = "".join(iteration_text(rows[1], run.iterations[1], run, words, Page()))
    assert text.startswith("Iteration 2 failed (verify): Verify failed: exit code 2.\n")
    assert "\nTime       14m05s: agent 8m20s, verify 40.0s, commit 2.0s, waiting 5m00s\n" in text
    assert "\nWhat verify printed\n  the end of the output\n" in text
    assert "\nWhat the agent said last\n  I stop here.\n\n" in text
    assert f"\n  rooda show {row.run} 2 --output " in text


def test_colors_only_where_they_are_wanted() -> None:
    assert "\x1b" not in shown(*three())
    text = shown(*three(), Page(paint=Painter(is_on=True)))
    assert f"{Color.BAD}failed\x1b[0m" in text
    assert f"{Color.GOOD}completed\x1b[0m" in text


def test_hostile_words_stay_on_their_line_and_send_nothing_to_the_terminal() -> None:
    row, rows = three(procedure=ALL, command=ALL, reason=ALL, workspace=f"/tmp/{ALL}")
    hostile = replace(
        rows[1],
        headline=ALL,
        reason=ALL,
        evidence=ALL,
        model=ALL,
        session_id=ALL,
        agent=ALL,
        kind=ALL,
        status="failed",
        verify=checked(2, ALL),
        result=IterationResult(exit_code=1, files_created=(ALL,) * 3),
    )
    rows[1] = hostile
    run = summarize(row, rows, NOW)
    page = Page(80)
    text = shown(row, rows, page)
    text += "".join(iteration_text(hostile, run.iterations[1], run, AgentWords(ALL), page))
    text += runs_text([brief_of(row, ALL, NOW)], page)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200f]", text)
    assert len(text) < 100_000


# -- tasks ---------------------------------------------------------------------------------------

LEFT = "14 of 20 tasks; 6 open in PLAN.md: Parse dates, Print dates, Round dates, 3 more"


def test_success_with_open_tasks_is_a_warning_beside_the_proof() -> None:
    text = shown(*doubtful_night(), Page(paint=Painter(is_on=True)))
    first, *others = text.splitlines()
    assert first.startswith(f"{Color.WARNING}tabq: build ended as success (exit code 0)")
    proof = next(at for at, line in enumerate(others) if "Proof" in line)
    assert others[proof].startswith(f"{Color.GOOD}Proof")
    assert others[proof + 1].startswith(f"{Color.WARNING}Tasks")
    assert others[proof + 1].endswith(f" {LEFT}")


def test_tasks_of_an_iteration_are_in_its_view_and_in_the_table() -> None:
    row, rows = doubtful_night()
    run = summarize(row, rows, NOW)
    text = "".join(iteration_text(rows[1], run.iterations[1], run, AgentWords(""), Page()))
    assert "\nTasks      14 of 20 tasks\n" in text
    assert re.findall(r" (\d+/20) ", shown(row, rows)) == ["13/20", "14/20"]
    narrow = shown(row, rows, Page(60))
    assert "TASKS" not in narrow, "other columns are more important"


def test_list_of_runs_shows_the_open_tasks_instead_of_the_claim_of_the_agent() -> None:
    row, _ = doubtful_night()
    page = Page(paint=Painter(is_on=True))
    text = runs_text([brief_of(row, "All tasks are done", NOW)], page)
    assert f"{Color.WARNING}success" in text
    assert f"{Color.WARNING}14 of 20" in text
    assert LEFT in text
    assert "All tasks are done" not in text


def test_run_without_a_task_file_shows_no_tasks() -> None:
    row, rows = three()
    assert "task" not in shown(row, rows).casefold()
    assert "TASKS" not in runs_text([brief_of(row, "", NOW)], Page())
