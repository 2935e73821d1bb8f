"""Checks whether a sandbox works on this machine, and says what it means to have none."""

from collections.abc import Iterator
from pathlib import Path

from rooda.front.doctor.findings import Finding, Mark
from rooda.plan.preflight.sandbox import NO_SANDBOX
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import SANDBOX_COMMAND, SANDBOX_KIND
from rooda.world.git.work_tree import work_tree
from rooda.world.process.libc import has_socket_scopes
from rooda.world.sandbox.private_git import about_git
from rooda.world.sandbox.probe import try_bwrap
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind
from rooda.world.tools import Tools

_NO_SCOPES = (
    "this kernel (older than Linux 6.12) can't hide abstract unix sockets: programs in the sandbox "
    "reach those of X11 and of old D-Bus services while they have the network"
)


def check_sandbox(values: Values, tools: Tools, working_dir: Path) -> Iterator[Finding]:
    """Check the sandbox that the settings choose, and whether bubblewrap works here."""
    kind = values[SANDBOX_KIND]
    if kind == SandboxKind.NONE:
        yield Finding("sandbox", Mark.OK, f"no sandbox is on: {NO_SANDBOX}", "Set loop.sandbox")
    elif kind == SandboxKind.COMMAND:
        yield Finding("sandbox", Mark.OK, f"programs run behind `{values[SANDBOX_COMMAND]}`")
    is_chosen = kind == SandboxKind.BWRAP
    try:
        path = try_bwrap(tools)
    except SandboxError as error:
        yield Finding("bwrap", Mark.PROBLEM if is_chosen else Mark.ABSENT, str(error), error.fix)
        return
    state = "is on" if is_chosen else "would work here"
    yield Finding("bwrap", Mark.OK, f"sandbox bwrap {state}: {path}")
    if words := about_git(work_tree(working_dir)):
        yield Finding("git folder", Mark.OK, f"with sandbox bwrap, {words}")
    if not has_socket_scopes():
        advice = "Use a newer kernel, or sandbox.network: false"
        yield Finding("sockets", Mark.WARNING if is_chosen else Mark.OK, _NO_SCOPES, advice)
