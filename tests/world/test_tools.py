"""Commands run in the sandbox of the run, except for a few that the user can look up."""

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rooda.world.process.capture.buffers import Captured
from rooda.world.process.exits import Exited
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult, Wrapped
from rooda.world.tools import Command, Tools

ROOT = Path(__file__).parents[2]


class Jail:
    """A sandbox that only says that a program is inside, and counts those that have ended."""

    settled = 0

    def wrap(
        self,
        argv: Sequence[str],
        _cwd: Path,
        environ: Mapping[str, str],
        *,
        copy: Path | None = None,
    ) -> Wrapped:
        return Wrapped(("jail",) if copy is None else ("jail", str(copy)), tuple(argv), environ)

    def settle(self, _environ: Mapping[str, str]) -> None:
        self.settled += 1


def test_every_command_is_in_the_sandbox_unless_its_caller_says_otherwise(tmp_path: Path) -> None:
    started: list[tuple[str, ...]] = []

    def execute(request: ProcessRequest, _: Interrupts, __: Listener) -> ProcessResult:
        started.append(request.jail)
        nothing = Captured(b"", b"", 0)
        return ProcessResult(Exited(0), nothing, nothing, 0.0)

    tools = Tools({}, execute=execute)
    command = Command("check", ("true",), tmp_path, {})
    outside = Command("push", ("true",), tmp_path, {}, outside=True)
    tools.run(command)
    tools.sandbox = jail = Jail()
    tools.run(command)
    tools.stream(command, lambda _: None)
    tools.run(outside)
    tools.run(Command("own", ("true",), tmp_path, {}, jail=("bwrap",)))
    assert started == [(), ("jail",), ("jail",), (), ("bwrap",)]
    assert jail.settled == 2, "after each program in the sandbox of the run"


def test_security_page_names_every_place_whose_commands_are_outside() -> None:
    package = ROOT / "src/rooda"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(_says_outside(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    page = (ROOT / "docs/reference/security.md").read_text()
    section = page.partition("### What runs outside")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z_/]+\.py)`", section)) == found


def _says_outside(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return any(one.arg == "outside" and _is_true(one.value) for one in node.keywords)


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
