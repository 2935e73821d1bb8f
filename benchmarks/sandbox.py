"""The start of a program in the sandbox, against its start without one; both by the warden.

In a repository, programs have a git folder of their own: what it costs to take a commit over.
"""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.measure import alternate, report
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest
from rooda.world.process.runner import Runner
from rooda.world.sandbox.sandbox import Sandbox
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan
from rooda.world.state.folder import StateFolder, make_state_folder
from rooda.world.tools import Tools

LIMIT_OF_COMMIT = 6.0  # two sandboxes more, and about fifteen commands of git outside
FILES = 2000
COMMIT = ("sh", "-c", "date +%N > new; git add new; git commit -qm new")
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
    is_good = report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT)
    return _measure_commit(folder) and is_good


def _measure_commit(folder: Path) -> bool:
    """Measure a commit in the agent's own git folder, against one in the user's folder."""
    own, shared = (_repository(folder / name) for name in ("own", "shared"))
    subprocess.run(["git", "config", "include.path", os.devnull], cwd=shared, check=True)
    home = folder / "home"
    environ = {**os.environ, "HOME": str(home)}
    with ExitStack() as closing:
        sandboxes = []
        for tree in (own, shared):
            tools = Tools(environ, [tree])
            closing.enter_context(tools.runner)
            place, state = tree.resolve(), StateFolder(folder / f"{tree.name}.state")
            make_state_folder(state)
            places = (place, (place,), home.resolve(), state)
            plan = SandboxPlan(SandboxKind.BWRAP, *places, environ, tools)
            sandboxes.append(Sandbox.of(plan))
            closing.callback(sandboxes[-1].close)

        def commit(sandbox: Sandbox) -> float:
            plan = sandbox.plan
            began = time.perf_counter()
            wrapped = sandbox.wrap(COMMIT, plan.tree, environ)
            start(plan.tools.runner, wrapped.program, plan.tree, wrapped.environ, wrapped.jail)
            sandbox.settle(environ)
            return time.perf_counter() - began

        in_own, in_shared = (partial(commit, one) for one in sandboxes)
        ours, theirs = alternate(in_own, in_shared, rounds=15)
    name = "a commit inside, with a git folder of its own / with the user's"
    return report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT_OF_COMMIT)


def _repository(tree: Path) -> Path:
    tree.mkdir()
    for number in range(FILES):
        (tree / f"file{number}").write_text(f"{number}\n")
    script = (
        "git init -q && git config user.name B && git config user.email b@example.org"
        " && git add -A && git commit -qm first"
    )
    subprocess.run(["sh", "-c", script], cwd=tree, check=True)
    return tree


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
