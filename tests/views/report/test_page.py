import base64
import hashlib
import itertools
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.loop.events.work import SnapshotTaken
from rooda.record.rows import IterationRow, RecordedWait, RunRow
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.views.report.details import DetailReader
from rooda.views.report.drawn_timeline import timeline
from rooda.views.report.make import html
from rooda.views.report.plots import nice, plots
from rooda.views.report.untrusted import plain_line, plain_text
from rooda.views.wording.labels import brief_duration, brief_number, clock
from rooda.world.tasks.standing import TaskCount
from support.hostile import TEXTS
from support.hostile_nights import hostile_night
from support.nights import (
    START,
    STEP,
    at,
    checked,
    doubtful_night,
    failed,
    iteration,
    night,
    results,
    sha,
)
from support.pages import Page, browser, opened
from support.states import record_at
from support.tables import each_row

CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
NOW = START + timedelta(hours=9)


def summary(run: RunRow, *rows: IterationRow) -> RunSummary:
    return summarize(run, rows, NOW)


def text_of(found: RunSummary, folder: Path) -> str:
    return "".join(html(found, record_at(folder), DetailReader(record_at(folder))))


def good_night(count: int = 4) -> RunSummary:
    rows = [iteration(number, results(3 + number)) for number in range(1, count + 1)]
    rows[-1] = replace(rows[-1], signal="SUCCESS", verdict="done")
    return summary(night(ended_at=at(count * STEP)), *rows)


def bad_night() -> RunSummary:
    run = night(
        status="aborted",
        rule="failure-threshold",
        consecutive_failures=2,
        threshold=2,
        ended_at=at(3 * STEP),
    )
    words = "the agent says that it is blocked: I need a key."
    return summary(
        run,
        iteration(1, results(41)),
        failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2")),
        failed(3, "signal", words, signal="FAILURE", verify=None),
    )


@pytest.mark.real
def test_iteration_shows_the_notes_of_the_user_as_text(tmp_path: Path) -> None:
    row = iteration(1, told=("use <b>tabs</b>\nplease", "two", "three", "four", "five"))
    page = text_of(summary(night(), row), tmp_path)
    assert "<dt>Your note</dt><dd><bdi>use &lt;b&gt;tabs&lt;/b&gt; please</bdi></dd>" in page
    assert "<dt>Your notes</dt><dd>2 more in the prompt</dd>" in page


@pytest.mark.real
@pytest.mark.parametrize(
    "tasks,heading,mark",
    [
        (TaskCount(14, 20), 'class="warn"', 'class="warn pf"'),
        (TaskCount(20, 20), 'class="good"', 'class="good pf"'),
    ],
)
def test_tasks_are_beside_the_proof_and_open_ones_are_a_warning(
    tmp_path: Path, tasks: TaskCount, heading: str, mark: str
) -> None:
    row, rows = doubtful_night(tasks=tasks, **({} if tasks.open else {"tasks_left": None}))
    page = text_of(summary(row, *rows), tmp_path)
    assert f'<h1 id="h" {heading}>' in page
    facts = page.partition("<dt>Proof</dt>")[2].partition("<dt>Next</dt>")[0]
    assert mark in facts.partition("<dt>Tasks</dt>")[2]
    assert f"<b>{tasks.words}</b>" in facts
    assert ("6 open in PLAN.md: Parse dates, Print dates" in facts) is bool(tasks.open)
    assert "<dt>Tasks</dt><dd>13 of 20 tasks</dd>" in page, "of an iteration"
    assert "<dt>Tasks</dt>" not in text_of(good_night(), tmp_path)


def hostile_summary(folder: Path) -> RunSummary:
    run, rows = hostile_night(folder)
    return summary(run, *rows)


@pytest.mark.real
def test_page_answers_what_how_and_what_next(tmp_path: Path) -> None:
    page = Page(text_of(good_night(), tmp_path))
    for expected in (
        "success",
        "The agent signaled SUCCESS in iteration 4 of at most 40, and verify passed after it.",
        "verify passed",
        "7/7 tests",
        "4 at the start, +3",
        "5 files +120 \u221216",
        "$2.00",
        "Finished step 3",
        "src/parser.py",
        f"git log --oneline --stat {sha(0)[:7]}..{sha(4)[:7]}",
        "The transcript is gone.",
    ):
        assert expected in page.text, expected
    assert page.elements["details"] == 2 * 4
    assert ("details", "open", "") not in page.attributes


@pytest.mark.real
def test_page_of_a_failed_night_is_honest(tmp_path: Path) -> None:
    page = Page(text_of(bad_night(), tmp_path))
    for expected in (
        "aborted",
        "2 failures in a row reached failure_threshold (2, built-in).",
        "not proven",
        "The last verify that passed was after iteration 1: 41/41 tests",
        "I need a key.",
        "not checked by rooda",
        "failed: signal",
        "not run",
        "rooda resume",
    ):
        assert expected in page.text, expected
    opened = [tag for tag, name, _ in page.attributes if name == "open"]
    assert len(opened) == 2, "the iteration that ended the run, and the output of a failed check"


@pytest.mark.real
def test_page_loads_nothing_and_its_policy_allows_only_its_own_style_and_script(
    tmp_path: Path,
) -> None:
    page = Page(text_of(good_night(), tmp_path))
    for kind in ("script", "style"):
        digest = hashlib.sha256(page.raw[kind].encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in page.policy
    assert page.policy.startswith("default-src 'none';")
    assert all(re.fullmatch(r"#[a-z]+\d*", link) for link in page.links)
    assert not page.handlers
    assert not [value for _, name, value in page.attributes if name == "style"]
    loading = ("img", "link", "iframe", "object", "embed", "base", "form", "audio", "video")
    assert not any(page.elements[name] for name in loading)


@pytest.mark.real
def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    page = Page(text_of(hostile_summary(tmp_path), tmp_path))
    assert (page.elements["script"], page.elements["style"], page.elements["meta"]) == (1, 1, 6)
    assert not page.handlers
    assert all(re.fullmatch(r"#[a-z]+\d*", link) for link in page.links)
    assert not any(page.elements[name] for name in ("img", "iframe", "form", "base", "input"))
    assert "<script>document.documentElement.dataset.owned=1" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not re.search(f"[{CONTROLS}]", page.text)
    classes = {name for _, kind, value in page.attributes if kind == "class" for name in [value]}
    assert not any("<" in name or "owned" in name for name in classes)
    commands = re.findall(r"(?:rooda|git) [a-z]+ [^\n]{0,80}", page.text)
    assert not any("owned" in one for one in commands if one.startswith("rooda re"))


@each_row("text", TEXTS)
def test_plain_text_has_no_control_and_no_hidden_characters(text: str) -> None:
    shown = plain_text(text)
    shown.encode()
    assert not re.search(f"[{CONTROLS}\u200b-\u200f]", shown)
    assert not re.search("\u0301{4}", shown)
    assert "\n" not in plain_line(text)
    assert len(plain_line(text, 100)) <= 110


@pytest.mark.real
def test_a_long_run_has_a_bounded_page_with_every_failure(tmp_path: Path) -> None:
    rows = [iteration(number, results(number)) for number in range(1, 701)]
    rows[4] = failed(5, "verify", "verify failed: exit code 2")
    found = summary(night(ended_at=at(700 * STEP)), *rows)
    text = text_of(found, tmp_path)
    assert len(text.encode()) < 5_000_000
    assert 'id="i5"' in text
    assert 'id="i700"' in text
    assert "300 good iterations are not in this page" in Page(text).text


@each_row("lines,pixels", [(1, 1120.0), (2, 720.0), (4, 358.0)])
@each_row("count", [1, 3, 30, 300])
def test_timeline_fits_and_its_numbers_do_not_overlap(
    lines: int, pixels: float, count: int
) -> None:
    found = timeline(good_night(count), lines, pixels)
    assert len(found) == lines
    for one in found:
        boxes = [box for piece in one.pieces for box in piece.boxes]
        assert all(box.x >= 0 and box.x + box.width <= 100.01 for box in boxes)
        places = sorted(piece.label.x for piece in one.pieces if piece.label)
        gaps = [b - a for a, b in itertools.pairwise(places)]
        assert all(gap * pixels / 100 >= 8 for gap in gaps)
    numbers = [piece.label.text for one in found for piece in one.pieces if piece.label]
    assert len(numbers) == len(set(numbers))
    if count <= 30:
        assert numbers == [str(number) for number in range(1, count + 1)]


def test_failed_iterations_keep_their_number_and_kind_on_a_crowded_timeline() -> None:
    rows = [iteration(number) for number in range(1, 301)]
    rows[149] = failed(150, "timeout", "iteration_timeout", status="timed_out")
    (one,) = timeline(summary(night(ended_at=at(300 * STEP)), *rows), 1, 1120.0)
    kinds = [(piece.number, piece.kind.text) for piece in one.pieces if piece.kind]
    assert kinds == [(150, "timeout")]


def test_waits_are_named_on_the_timeline() -> None:
    wait = RecordedWait(2, "limit", "c", "x", at(3600), 3000, waited=3000.0, started_at=at(600))
    rows = [iteration(1), iteration(2, started_at=at(3600), ended_at=at(4160))]
    (one,) = timeline(summary(night(ended_at=at(4200), waits=(wait,)), *rows), 1, 1120.0)
    assert [label.text for label in one.waits] == ["usage limit 50m"]


def test_plots_exist_only_where_there_is_data() -> None:
    assert [plot.title for plot in plots(good_night())] == [
        "Tests passed",
        "Cost so far",
        "Lines changed",
    ]
    bare = iteration(1, cost=None, tokens=None, lines=None)
    assert plots(summary(night(), bare)) == []
    assert plots(summary(night())) == []
    tokens = plots(summary(night(), iteration(1, cost=None)))
    assert [plot.title for plot in tokens] == ["Tokens so far", "Lines changed"]


def test_tests_that_did_not_run_leave_a_gap() -> None:
    rows = [iteration(number, results(number) if number != 3 else None) for number in range(1, 6)]
    plot = plots(summary(night(), *rows))[0]
    assert (len(plot.lines), len(plot.dashed)) == (2, 1)


@pytest.mark.parametrize(
    "numbers,written",
    [
        ((0, 1, 59.6, 61, 599, 660), ["0s", "1s", "1m", "1m01s", "9m59s", "11m"]),
        ((3600, 27540, 86400 * 2), ["1h00m", "7h39m", "2d00h"]),
    ],
)
def test_durations_have_two_units(numbers: Sequence[float], written: list[str]) -> None:
    assert [brief_duration(one) for one in numbers] == written


def test_round_numbers() -> None:
    assert [nice(one) for one in (0, 1, 3, 26, 96, 101)] == [1, 1, 3, 30, 100, 150]
    assert [brief_number(one) for one in (950, 12_400, 23_800_000)] == ["950", "12.4 k", "23.8 M"]


@pytest.mark.real
def test_a_run_at_work_shows_the_agent_until_now(tmp_path: Path) -> None:
    current = IterationRow(
        run=night().run,
        number=2,
        attempt=1,
        status="executing",
        started_at=at(STEP),
        ended_at=None,
        agent="claude",
    )
    run = night(status="running", ended_at=None, rule=None)
    found = summarize(run, [iteration(1), current], START + timedelta(seconds=2 * STEP))
    (span,) = found.iterations[1].spans
    assert (span.kind, span.start, span.seconds) == ("agent", STEP, STEP)
    assert found.iterations[1].seconds == STEP
    page = Page(text_of(found, tmp_path))
    assert "The run is at work at iteration 2; nothing has ended it yet." in page.text
    assert "rooda follow" in page.text


def test_a_run_without_iterations_has_a_page(tmp_path: Path) -> None:
    run = night(status="aborted", rule="not-started", reason="no such file")
    page = Page(text_of(summary(run), tmp_path))
    assert "not checked" in page.text
    assert "No such file." in page.text
    assert page.elements["figure"] == 0


@pytest.mark.real
def test_waits_stand_beside_the_iteration_that_waited(tmp_path: Path) -> None:
    wait = RecordedWait(2, "limit", "c", "x", at(3600), 3000, waited=3000.0, started_at=at(600))
    outage = RecordedWait(2, "outage", "c", "x", at(3660), 60, waited=60.0, started_at=at(3600))
    rows = [iteration(1), iteration(2, started_at=at(3720), ended_at=at(4160))]
    run = night(ended_at=at(4200), waits=(wait, outage, outage))
    page = Page(text_of(summary(run, *rows), tmp_path))
    first, last = clock(at(600)), clock(at(3600))
    assert f"waited 50m (usage limit), {first} to {last}" in page.text
    assert "waited 2m (outage)" in page.text


@pytest.mark.real
def test_proof_names_the_commit_of_an_agent_that_commits(tmp_path: Path) -> None:
    row = iteration(1, commit=None, commits=2, snapshot=SnapshotTaken(1, sha(9), None, sha(7)))
    page = Page(text_of(summary(night(), row), tmp_path))
    assert f"the agent's commit {sha(7)[:7]}" in page.text
    assert "1 iteration \u00b7 rooda" in page.text
    assert f"2 by the agent, the last one {sha(7)[:7]}" in page.text
    assert "stayed in the work tree" not in page.text
    assert (
        "1 more by the agent"
        in Page(text_of(summary(night(), iteration(1, commits=1)), tmp_path)).text
    )
    row = iteration(1, commit=None)
    assert "not committed" in Page(text_of(summary(night(), row), tmp_path)).text


@pytest.mark.long
@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
def test_a_record_full_of_hostile_texts_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(text_of(hostile_summary(tmp_path), tmp_path))
    found, console = opened(page, (390, 800, 1280), tmp_path)
    for one in found:
        assert (one["owned"], one["images"], one["scripts"], one["frames"]) == (None, 0, 1, 0)
        assert one["needed"] <= one["width"], one
        assert one["wide"] == []
    assert "Content Security Policy" not in console
