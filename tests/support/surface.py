"""The plan of a run and its dry run in this process, for tests with tables of cases."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rooda.front.flags import without_dry_run
from rooda.plan.plan import Plan
from rooda.plan.prepare import Prepared, RunRequest, prepare
from rooda.plan.world import World
from rooda.views.terminal.dry_run import render
from support.workspace import PROCEDURE, Workspace

PHASES = ("observe", "orient", "decide", "act")
TAG = "<promise>SUCCESS</promise>"
TRUE = {"ai_cmd": ("--ai-cmd", "true")}


def procedure(name: str = "work", **phases: str) -> str:
    """Return a config with one procedure; a phase is given in YAML's flow style."""
    words = {phase: f"[{{content: my {phase} {TAG}}}]" for phase in PHASES} | phases
    lines = [f"    {phase}: {value}" for phase, value in words.items()]
    return "\n".join(["procedures:", f"  {name}:", *lines, ""])


def planned(
    workspace: Workspace,
    name: str = "work",
    flags: Mapping[str, tuple[str, str]] = TRUE,
    env: Mapping[str, str] | None = None,
    **request: Any,
) -> Prepared:
    """Return what `rooda NAME` would do in the workspace."""
    if not (workspace.path / "rooda-config.yml").exists():
        workspace.config(PROCEDURE)
    environ = {"PATH": os.environ["PATH"], "HOME": str(workspace.home), **(env or {})}
    return prepare(RunRequest(name, flags, **request), World(workspace.path, environ))


def plan(workspace: Workspace, name: str = "work", **request: Any) -> Plan:
    """Return the plan of `rooda NAME`, which must be valid."""
    prepared = planned(workspace, name, **request)
    assert prepared.valid, prepared.all_problems()
    assert prepared.plan is not None
    return prepared.plan


def dry(prepared: Prepared, *arguments: str) -> str:
    """Return the text of its dry run."""
    return render(prepared, ["rooda", *without_dry_run(arguments)])


def listing(*folders: Path) -> dict[str, tuple[int, int]]:
    """Return each file and folder below, with its size and its time of change."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}
