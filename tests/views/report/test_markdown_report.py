import json
import re
from datetime import timedelta

from msgspec.structs import replace

from rooda.record.rows import IterationRow, RunRow
from rooda.views.model.build import summarize
from rooda.views.report.make import as_json
from rooda.views.report.markdown_report import markdown, words
from support.hostile import TEXTS
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
from support.tables import each_row


def text_of(run: RunRow, *rows: IterationRow) -> str:
    return "".join(markdown(summarize(run, rows, START + timedelta(hours=9))))


def test_markdown_has_what_the_page_has() -> None:
    bad = failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2"))
    last = iteration(3, results(26), signal="SUCCESS")
    text = text_of(night(ended_at=at(3 * STEP)), iteration(1, results(4)), bad, last)
    for expected in (
        "# tabq: success\n",
        "- **Rule**: The agent signaled SUCCESS in iteration 3 of at most 40, and verify passed",
        "- **Proof**: verify passed (`make test`) after iteration 3, 26/26 tests, commit `0000003`",
        "- **Iterations**: 3 (2 good, 1 failed)",
        "- **Tests**: 26/26; 4 at the start",
        "- 2 **failed: verify**: Verify failed: exit code 2. Iteration 3 completed.",
        "| 3 | completed | Finished step 3 | 9m05s | 2 files +30 \u22124 | 26/26 | `0000003` |",
        "```text\nthe end of the output\n```",
        "| agent | 25m | 83 % |",
        "- `src/parser.py`: +60 \u221212",
        f"git diff {sha(0)[:7]}..{sha(3)[:7]}   # Review the whole run as one diff",
    ):
        assert expected in text, expected


def test_a_sum_of_costs_says_which_iteration_it_does_not_have() -> None:
    text = text_of(night(), iteration(1), iteration(2, cost=None))
    assert "- **Cost**: $0.50 (iteration 2 not known)\n" in text


def test_notes_of_the_user_are_there_once_each() -> None:
    rows = (iteration(1, told=("use *tabs*", "go on")), iteration(2, told=("go on",)))
    text = text_of(night(), *rows)
    notes = ["- Iteration 1: use \\*tabs\\*", "- Iteration 1 and 1 more: go on"]
    assert "\n".join(["## Your notes to the agent", "", *notes]) in text
    assert "Your notes" not in text_of(night(), iteration(1))


def test_no_block_for_a_check_that_printed_nothing() -> None:
    silent = replace(checked(1, "exit code 1"), output="")
    text = text_of(night(), failed(1, "verify", "verify failed: exit code 1", verify=silent))
    assert "### Iteration 1: failed: verify" in text
    assert "printed" not in text


def test_commits_of_the_agent_are_in_the_table() -> None:
    assert "| not run | 2 by agent |" in text_of(night(), iteration(1, commit=None, commits=2))


@each_row("text", TEXTS)
def test_hostile_words_are_no_markup(text: str) -> None:
    shown = words(text)
    assert not re.search(r"(?<!\\)[<>`\[\]|*_#&@]", shown)
    row = iteration(1, headline=text, model=text)
    assert "\n<script" not in text_of(night(), row)


@each_row(
    "text", ["see https://evil.example/x", "www.evil.example", "@user #12", "![x](//evil) | a"]
)
def test_words_make_no_links_and_no_mentions(text: str) -> None:
    shown = words(text)
    assert "://" not in shown
    assert "www." not in shown
    assert not re.search(r"(?<!\\)[@#\[|]", shown)


def test_code_with_backticks_stays_code() -> None:
    bad = failed(1, "verify", "x", verify=checked(1, "exit code 2"))
    verify = bad.verify
    assert verify is not None
    hostile = failed(
        1, "verify", "x", verify=type(verify)(1, "a `b` c", 2, "no", 1.0, "```\n<b>\n````")
    )
    text = text_of(night(), hostile)
    assert "`` a `b` c ``" in text
    assert "`````text\n```\n<b>\n````\n`````" in text


def test_json_is_the_summary() -> None:
    rows = [iteration(1, results(4), headline="\udcff")]
    found = json.loads("".join(as_json(summarize(night(), rows, START))))
    assert found["schema_version"] == 1
    assert found["status"] == "success"
    assert found["iterations"][0]["headline"] == "\udcff"
    assert found["tests_last"]["passed"] == 4
    assert found["times"]["agent"] == 500.0


def test_success_with_open_tasks_has_a_warning_below_the_proof() -> None:
    row, rows = doubtful_night()
    lines = text_of(row, *rows).splitlines()
    assert lines[0] == "# tabq: success, 14 of 20 tasks"
    proof = next(at for at, line in enumerate(lines) if line.startswith("- **Proof**"))
    assert lines[proof + 1].startswith(
        "- **Tasks**: **Warning**: 14 of 20 tasks; 6 open in PLAN.md"
    )
    found = json.loads("".join(as_json(summarize(row, rows, START))))
    assert found["tasks"] == {"done": 14, "total": 20, "blocked": 0}
    assert found["tasks_left"]["open"][0] == "Parse dates"
    assert [one["tasks"]["done"] for one in found["iterations"]] == [13, 14]
