"""What speaks against a sandbox before a run starts. Changes nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

from rooda.base.paths import file_mode
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan


def check_plan(plan: SandboxPlan) -> Iterator[SandboxError]:
    """Yield what is wrong with the folders of a sandbox."""
    if plan.kind is not SandboxKind.BWRAP:
        return
    yield from _check_tree(plan)
    for path in plan.readable:
        yield from _check_path("readable", path, plan)
    for path in plan.writable:
        yield from _check_path("writable", path, plan)
        if plan.tree.is_relative_to(_real(path)):
            yield SandboxError(
                f"sandbox.writable contains the work tree: {path}", "Name a folder next to it"
            )


def _check_tree(plan: SandboxPlan) -> Iterator[SandboxError]:
    tree = plan.tree
    if _real(plan.home).is_relative_to(tree):
        yield SandboxError(
            f"the work tree {tree} contains your home folder, so the agent could read all of it",
            "Start in a folder of its own",
        )
        return
    try:
        owner = tree.stat().st_uid
    except OSError:
        return
    if os.geteuid() == 0 and owner != 0:
        yield SandboxError(
            f"{tree} belongs to another user, so root can't write to it in the sandbox",
            f"Start rooda as that user, or run `chown -R root {tree}`",
        )


def _check_path(name: str, path: Path, plan: SandboxPlan) -> Iterator[SandboxError]:
    if not file_mode(path):
        yield SandboxError(f"sandbox.{name} does not exist: {path}", "Correct the path")
    elif _real(plan.home).is_relative_to(_real(path)):
        yield SandboxError(
            f"sandbox.{name} contains your home folder: {path}", "Name the folders that are needed"
        )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
