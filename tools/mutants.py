"""How many small faults do the first two rings of tests find? `python -m tools.mutants`.

It puts one fault after the other into the modules below, in place, and runs the tests until one
fails: first those of the package, then the whole first ring, then the second. It prints each fault
that no test found. The checkout must have no uncommitted changes; the last fault is undone at the
end, also after Ctrl+C.
"""

import argparse
import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

_ROOT = Path(__file__).parents[1]
MODULES = (
    "loop/stops.py",
    "loop/outcome.py",
    "loop/waits.py",
    "loop/stages/promises.py",
    "plan/layers.py",
    "world/agents/resets.py",
    "world/tasks/task_file.py",
    "base/secrets/masking.py",
    "world/process/clocks.py",
    "views/wording/labels.py",
)
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def faults(tree: ast.Module) -> Iterator[tuple[int, str, ast.Module]]:
    """Yield each fault: its line, what it changes, and the module with it."""
    for place, node in enumerate(ast.walk(tree)):
        for name in _CHANGES.get(type(node), ()):
            copy = deepcopy(tree)
            changed = next(one for number, one in enumerate(ast.walk(copy)) if number == place)
            if globals()[name](changed):
                yield getattr(node, "lineno", 0), name, copy


def compare(node: ast.Compare) -> bool:
    """Turn a comparison around."""
    node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    return True


def junction(node: ast.BoolOp) -> bool:
    """Put `or` in place of `and`, and the other way."""
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return True


def condition(node: ast.If | ast.IfExp | ast.While) -> bool:
    """Turn a condition around."""
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return True


def constant(node: ast.Constant) -> bool:
    """Change a number or a truth value."""
    if isinstance(node.value, bool):
        node.value = not node.value
        return True
    if isinstance(node.value, (int, float)):
        node.value += 1
        return True
    return False


def arithmetic(node: ast.BinOp) -> bool:
    """Put `-` in place of `+`, and the other way."""
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return False
    node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
    return True


def result(node: ast.Return) -> bool:
    """Return nothing."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return False
    node.value = ast.Constant(None)
    return True


_CHANGES: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Compare: ("compare",),
    ast.BoolOp: ("junction",),
    ast.If: ("condition",),
    ast.IfExp: ("condition",),
    ast.Constant: ("constant",),
    ast.BinOp: ("arithmetic",),
    ast.Return: ("result",),
}


def found_by(module: str) -> str:
    """Return the tests that fail with the fault; empty if none does."""
    package = f"tests/{Path(module).parent}"
    for name, words in {
        "tests of the package": ("--ring", "first", package),
        "first ring": ("--ring", "first"),
        "second ring of the package": ("--ring", "real", package),
        "second ring": ("--ring", "real", "--dist", "worksteal"),
    }.items():
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", *words]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, check=False)
        if done.returncode in (1, 2):
            return name
    return ""


def main() -> int:
    """Try the faults, and print those that no test finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=10, help="faults in each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args()
    changed = ["git", "status", "--porcelain", "src"]
    if subprocess.run(changed, cwd=_ROOT, capture_output=True, check=True).stdout:
        sys.exit("Error: src has uncommitted changes\n  Commit them: the faults are put into src")
    survivors = tried = 0
    for module in options.modules:
        path = _ROOT / "src/rooda" / module
        text = path.read_text()
        every = list(faults(ast.parse(text)))
        chosen = random.Random(options.seed).sample(  # noqa: S311
            every, min(options.number, len(every))
        )
        for line, name, tree in chosen:
            tried += 1
            try:
                path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
                where = found_by(module)
            finally:
                path.write_text(text)
            survivors += not where
            print(f"{module}:{line} {name}: {where or 'NOT FOUND'}", flush=True)  # noqa: T201
    print(f"{tried - survivors} of {tried} faults were found")  # noqa: T201
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
