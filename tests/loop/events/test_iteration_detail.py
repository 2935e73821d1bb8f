"""The detail line of an iteration."""

from typing import Any

import pytest

from rooda.base.widths import width
from rooda.loop.events.iteration_detail import LONGEST, IterationDetail
from rooda.loop.result import IterationResult
from rooda.world.git.snapshots.tree_changes import LineCounts
from rooda.world.testresults.results import TestResults
from support.tables import each_row

COMMIT = "46e7c5b0123456789abcdef0123456789abcdef0"
ALL = IterationDetail(
    IterationResult(0, test_results=TestResults(41, 41, 0, 0)),
    LineCounts(3, 120, 14),
    3,
    COMMIT,
    0.44,
    50,
    "Implemented subtract with overflow checks",
)


def test_line_has_all_parts_with_the_headline_last() -> None:
    assert ALL.line() == (
        "  3 files +120 -14 · tests 41/41 (+3) · 46e7c5b · $0.44 · "
        "Implemented subtract with overflow checks"
    )


@each_row(
    "parts,expected",
    [
        ({}, ""),
        ({"cost": 0.0, "lines": LineCounts(0, 0, 0), "context_percent": 79}, ""),
        ({"lines": LineCounts(1, 0, 0)}, "  1 file"),
        ({"lines": LineCounts(2, 5, 0)}, "  2 files +5 -0"),
        ({"result": IterationResult(0, files_created=("a", "b"))}, "  2 files"),
        ({"result": IterationResult(0, test_results=TestResults(41, 38, 3, 0))}, "  tests 38/41"),
        (
            {
                "result": IterationResult(0, test_results=TestResults(41, 38, 3, 0)),
                "tests_gained": -3,
            },
            "  tests 38/41 (-3)",
        ),
        ({"cost": 0.0042}, "  $0.0042"),
        ({"cost": 12.345}, "  $12.35"),
        ({"context_percent": 80}, "  context 80% full"),
        ({"headline": "did \x1b[2Jthis\nand\tthat"}, "  did this and that"),
    ],
)
def test_line_leaves_out_what_is_unknown(parts: dict[str, Any], expected: str) -> None:
    assert IterationDetail(**parts).line() == expected


@pytest.mark.parametrize("word", ["word ", "字", "🚀"])
def test_long_headline_is_cut(word: str) -> None:
    line = IterationDetail(ALL.result, ALL.lines, 3, COMMIT, 0.44, 90, word * 500).line()
    assert line.startswith("  3 files +120 -14 · tests 41/41 (+3) · 46e7c5b · $0.44 · context 90%")
    assert line.endswith("…")
    assert LONGEST - 5 <= width(line) <= LONGEST
