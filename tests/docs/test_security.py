"""docs/reference/security.md: each test and each trial that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

from rooda.front.selftest.run_trials import all_trials
from support.tables import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/security.md").read_text()


@cache
def names_in(module: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{module}.py").read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@each_row("module,test", sorted(set(re.findall(r"`([\w/]+)::(test_\w+)`", PAGE))))
def test_named_test_exists(module: str, test: str) -> None:
    assert test in names_in(module)


def test_each_named_trial_exists_and_each_trial_of_the_sandbox_is_named() -> None:
    trials = {one.name for one in all_trials() if one.name.startswith("sandbox: ")}
    named = set(re.findall(r"`(sandbox: [a-z ]+)`", PAGE)) - {"sandbox: bwrap", "sandbox: none"}
    assert named <= trials
    assert trials - named <= {"sandbox: soft stop"}, "it is a promise about stopping"


def test_each_kind_of_danger_has_its_section() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    for kind in (
        "careless agent",
        "hostile agent",
        "hostile repository",
        "Another user",
        "web page",
    ):
        assert [title for title in titles if kind in title], kind
