"""Measure how rooda is built: `python -m tools.structure` prints one table.

The numbers show where a change makes the structure simpler. They are not the aim.
"""

import ast
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "rooda"
LARGE = 30  # a record with more fields is listed with the records that it copies
SHARED = 10  # fields with the same name in two records; fewer are a coincidence
FACTS = "IterationFacts"  # the record of what is known of an iteration
RECIPES = ("StopRule", "WaitKind", "FailureKind")
_ROUNDS = 7
_SCRIPT = Path(sysconfig.get_path("scripts")) / "rooda"
_RUN = ("build", "--ai-cmd", "true", "--quiet")
_CODES = (0, 2)  # 2: a limit ended the run
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}

# Counts how often control passes from one module of rooda to another one, and lists its modules.
_OBSERVER = """
import json, os, sys
switches, last = 0, None

def observe(frame, event, _argument):
    global switches, last
    if event == "return":
        frame = frame.f_back
    elif event != "call":
        return
    name = frame.f_globals.get("__name__") if frame else None
    if isinstance(name, str) and name.partition(".")[0] == "rooda" and name != last:
        switches, last = switches + 1, name

from rooda.front.cli.main import main
sys.setprofile(observe)
try:
    code = main(sys.argv[2:])
except SystemExit as end:
    code = end.code
sys.setprofile(None)
modules = sorted(name for name in sys.modules if name.partition(".")[0] == "rooda")
with open(sys.argv[1], "w") as file:
    json.dump({"code": code, "switches": switches, "modules": modules}, file)
os._exit(0)
"""


class Record(NamedTuple):
    """A class that is a list of fields: a struct, a dataclass, a named tuple or an event."""

    name: str
    module: str
    fields: frozenset[str]


@dataclass(frozen=True)
class Module:
    """The text of a module and what Python makes of it."""

    name: str
    text: str
    tree: ast.Module

    @property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """Return all imports, also those in functions."""
        nodes = ast.walk(self.tree)
        return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


class Traced(NamedTuple):
    """What a run in an observed process has imported, and how it moved between modules."""

    modules: frozenset[str]
    switches: int


def read_modules(source: Path) -> list[Module]:
    """Return all modules below the folder of a package."""
    modules = []
    for path in sorted(source.rglob("*.py")):
        words = path.relative_to(source.parent).with_suffix("").parts
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        text = path.read_text()
        modules.append(Module(name, text, ast.parse(text)))
    return modules


def code_lines(module: Module) -> int:
    """Count the lines with code: without blank lines, comments and docstrings."""
    texts = set[int]()
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(end)):
                texts.update(range(first, end + 1))
            case _:
                pass
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def import_lines(module: Module) -> int:
    """Count the lines that imports take."""
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in module.imports)


def imports_in_functions(module: Module) -> int:
    """Count the imports inside of functions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in ast.walk(module.tree) if isinstance(node, kinds))
    found = {
        id(node)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    return len(found)


def only_importers(modules: Sequence[Module]) -> int:
    """Count the modules that exactly one other module imports."""
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for module in modules:
        for used in set(_used(module, names)) - {module.name}:
            importers[used].add(module.name)
    return sum(len(found) == 1 for found in importers.values())


def _used(module: Module, names: set[str]) -> Iterator[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
            continue
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            if (found := inner if inner in names else node.module) in names and found:
                yield found


def records(modules: Iterable[Module]) -> list[Record]:
    """Return every class with fields of its own."""
    return [
        Record(node.name, module.name, fields)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and (fields := _fields(node))
    ]


def _fields(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and "ClassVar" not in ast.unparse(line.annotation)
    )


def copies(found: Sequence[Record]) -> list[tuple[Record, Record, int]]:
    """Return large records with the records whose fields they repeat, and how many of them."""
    pairs = [
        (large, other, len(large.fields & other.fields))
        for large, other in permutations(found, 2)
        if len(large.fields) > LARGE
    ]
    kept = [
        pair
        for pair in pairs
        if pair[2] >= SHARED
        and not (len(pair[1].fields) > LARGE and pair[1].fields > pair[0].fields)
        and (pair[0].name <= pair[1].name or len(pair[1].fields) <= LARGE)
    ]
    return sorted(kept, key=lambda pair: -pair[2])


def places_of_facts(found: Sequence[Record], row: str) -> float:
    """Return the mean number of records that have a field of this record."""
    fields = next((record.fields for record in found if record.name == row), frozenset[str]())
    places = [sum(field in record.fields for record in found) for field in fields]
    return statistics.mean(places) if places else 0.0


def places_of_members(modules: Sequence[Module], kind: str) -> float:
    """Return the mean number of modules that name a member of an enumeration."""
    members = {
        line.targets[0].id
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name == kind
        for line in node.body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
    }
    named = dict.fromkeys(members, 1)  # the module that defines it
    for module in modules:
        attributes = (node for node in ast.walk(module.tree) if isinstance(node, ast.Attribute))
        used = {
            node.attr
            for node in attributes
            if isinstance(node.value, ast.Name) and node.value.id == kind
        }
        for member in used & members:
            named[member] += 1
    return statistics.mean(named.values()) if named else 0.0


def trace(folder: Path, iterations: int) -> Traced:
    """Run scripted iterations in an observed process."""
    result = folder / "observed.json"
    words = [*_RUN, "--max-iterations", str(iterations)]
    _start([sys.executable, "-c", _OBSERVER, str(result), *words], folder)
    observed = json.loads(result.read_text())
    if observed["code"] not in _CODES:
        raise RuntimeError(f"the observed run ended with {observed['code']}")
    return Traced(frozenset(observed["modules"]), observed["switches"])


def cpu_seconds(words: Sequence[str], folder: Path) -> float:
    """Return the CPU time of a command and of all processes that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _start([str(_SCRIPT), *words], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(words: Sequence[str], folder: Path) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        words,
        cwd=folder / "tree",
        env={**kept, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in _CODES:
        raise RuntimeError(f"{' '.join(words[:3])} failed: {done.stderr[-500:]}")


def _scratch(folder: Path) -> None:
    """Make a repository with one commit."""
    tree = folder / "tree"
    tree.mkdir()
    (tree / "PLAN.md").write_text("- [ ] one task\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    _start(("git", "init", "-q"), folder)
    _start((*git, "add", "-A"), folder)
    _start((*git, "commit", "-qm", "first"), folder)


def static_rows(source: Path) -> Iterator[tuple[str, str]]:
    """Return what the text of a package shows."""
    modules = read_modules(source)
    found = records(modules)
    yield "modules", f"{len(modules)}"
    yield "modules with a single importer", f"{only_importers(modules)}"
    lines = [module.text.count("\n") for module in modules]
    yield "lines", f"{sum(lines):,}"
    yield "lines of the largest module", f"{max(lines):,}"
    yield "lines of code", f"{sum(map(code_lines, modules)):,}"
    yield "lines of imports", f"{sum(map(import_lines, modules)):,}"
    yield "imports inside of functions", f"{sum(map(imports_in_functions, modules))}"
    places = places_of_facts(found, FACTS)
    yield "records that have a fact of an iteration (mean)", f"{places:.1f}"
    for kind in RECIPES:
        places = places_of_members(modules, kind)
        yield f"modules that name a member of {kind} (mean)", f"{places:.1f}"
    pairs = copies(found)
    yield f"records of over {LARGE} fields that repeat fields of another", f"{len(pairs)} pairs"
    for large, other, shared in pairs:
        name = f"  {large.name} ({len(large.fields)}) and {other.name} ({len(other.fields)})"
        yield name, f"{shared} fields"


def running_rows(folder: Path, rounds: int = _ROUNDS) -> Iterator[tuple[str, str]]:
    """Return what runs in this empty folder show; CPU times are medians of this many rounds."""
    _scratch(folder)
    few, many = trace(folder, 1), trace(folder, 6)
    yield "modules that a run imports", f"{len(few.modules)}"
    yield "switches between modules in one iteration", f"{(many.switches - few.switches) / 5:.0f}"

    def median(*words: str) -> float:
        return statistics.median(cpu_seconds(words, folder) for _ in range(rounds))

    one = median(*_RUN, "--max-iterations", "1")
    eleven = median(*_RUN, "--max-iterations", "11")
    iteration = (eleven - one) / 10
    yield "CPU of `rooda --version`", f"{median('--version') * 1e3:.0f} ms"
    yield "CPU of `rooda show`", f"{median('show') * 1e3:.0f} ms"
    yield "CPU of a dry run", f"{median(*_RUN, '--dry-run') * 1e3:.0f} ms"
    yield "CPU of a run without its iteration", f"{(one - iteration) * 1e3:.0f} ms"
    yield "CPU of an iteration", f"{iteration * 1e3:.0f} ms"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows as lines of two columns."""
    kept = list(rows)
    width = max(len(name) for name, _ in kept)
    return "".join(f"{name:<{width}}  {value:>10}\n" for name, value in kept)


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [*static_rows(SOURCE), *running_rows(Path(folder))]
    sys.stdout.write(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
