"""docs/dev/conformance.md has a row for each promise; the tests and decisions it names exist."""

import ast
import re
from functools import cache
from pathlib import Path

from support.tables import each_row

ROOT = Path(__file__).parents[2]
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^\| (\d{3}-[A-Z]\d+) \| (.+) \| (.+) \|$",
    (ROOT / "docs/dev/conformance.md").read_text(),
    re.MULTILINE,
)
# Boxes (B), rows of the edge-case table (X), examples (E), testing requirements (T), promises (P),
# as many as the documents have.
PROMISES = {
    "000-B": 52,
    "000-X": 17,
    "001-B": 7,
    "001-X": 6,
    "001-E": 4,
    "002-P": 68,
    "003-B": 8,
    "003-T": 8,
    "004-B": 71,
    "004-E": 8,
    "005-P": 32,
    "006-P": 10,
    "007-P": 10,
}


@cache
def names_in(module: str) -> set[str]:
    path = ROOT / "tests" / f"{module}.py"
    tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@cache
def decisions() -> set[str]:
    text = (ROOT / "docs/dev/decisions.md").read_text()
    return set(re.findall(r"^\| (D\d+) \|", text, re.MULTILINE))


def test_every_promise_has_one_row() -> None:
    expected = [f"{kind}{n}" for kind, count in PROMISES.items() for n in range(1, count + 1)]
    assert sorted(row for row, _, _ in ROWS) == sorted(expected)


@each_row("row,promise,shown", ROWS, ids=[row for row, _, _ in ROWS])
def test_what_a_row_names_exists(row: str, promise: str, shown: str) -> None:
    named = re.findall(r"`([\w/]+)::(test_\w+)`", shown)
    decided = re.findall(r"\bD\d+\b", shown)
    assert promise.strip()
    assert named or decided, f"{row} names neither a test nor a decision"
    missing = [f"{module}::{test}" for module, test in named if test not in names_in(module)]
    assert not missing
    assert set(decided) <= decisions()
