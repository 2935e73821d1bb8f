"""The start of a program in the sandbox, against its start without one; both by the warden."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import alternate, report
from rooda.process.interrupts import Interrupts
from rooda.process.request import ProcessRequest
from rooda.process.runner import Runner
from rooda.sandbox.sandbox import Sandbox
from rooda.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan
from rooda.workspace.state_folder import StateFolder, make_state_folder
from rooda.workspace.tools import Tools

LIMIT = 30.0  # about 60 mounts, three processes more, and two look-ups of paths
PROGRAM = ("true",)


def measure(folder: Path) -> bool:
    tree, home = folder / "work", folder / "home"
    for place in (tree, home):
        place.mkdir()
    environ = {**os.environ, "HOME": str(home)}
    tools = Tools(environ, [tree])
    state = StateFolder(folder / "state")
    make_state_folder(state)
    places = (tree.resolve(), (tree,), home.resolve(), state)
    plan = SandboxPlan(SandboxKind.BWRAP, *places, environ, tools)
    try:
        sandbox = Sandbox.of(plan)
    except SandboxError as error:
        print(f"sandbox: skipped, {error}")
        return True
    with Runner() as runner:

        def inside() -> float:
            began = time.perf_counter()
            wrapped = sandbox.wrap(PROGRAM, tree, environ)
            start(runner, wrapped.program, tree, wrapped.environ, wrapped.jail)
            return time.perf_counter() - began

        def plain() -> float:
            began = time.perf_counter()
            start(runner, PROGRAM, tree, environ)
            return time.perf_counter() - began

        ours, theirs = alternate(inside, plain, rounds=40)
    sandbox.close()
    name = "start of a program in the sandbox / without"
    return report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT)


def start(
    runner: Runner,
    argv: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    jail: Sequence[str] = (),
) -> None:
    with Path(os.devnull).open("rb") as nothing:
        request = ProcessRequest(argv, cwd, environ, nothing, 1024, jail=tuple(jail))
        runner.run(request, Interrupts(), lambda _: None)
