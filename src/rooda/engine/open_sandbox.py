"""Set up the sandbox of a run; without one, nothing is loaded."""

from typing import TYPE_CHECKING

from rooda.config.plan import Plan
from rooda.config.problems import InvalidInput, Problem
from rooda.config.sandbox_checks import TITLE

if TYPE_CHECKING:
    from rooda.sandbox.sandbox import Sandbox
    from rooda.sandbox.tree_check import TreeCheck
    from rooda.workspace.pin import Pin


def open_sandbox(plan: Plan) -> "Sandbox | None":
    """Return the sandbox of a run, tried out. Raises InvalidInput if it can't be set up."""
    if plan.sandbox is None:
        return None
    from rooda.sandbox.sandbox import Sandbox, SandboxError  # noqa: PLC0415 - see above

    try:
        return Sandbox.of(plan.sandbox)
    except SandboxError as error:
        raise InvalidInput([Problem(str(error), error.fix, title=TITLE)]) from None


def check_tree_of(plan: Plan, sandbox: "Sandbox | None", pin: "Pin | None") -> "TreeCheck | None":
    """Return the checks of what programs leave in the work tree; None without a sandbox."""
    if sandbox is None:
        return None
    from rooda.sandbox.sandbox_plan import SandboxKind  # noqa: PLC0415 - see above
    from rooda.sandbox.tree_check import TreeCheck  # noqa: PLC0415

    protects_git = sandbox.plan.kind is SandboxKind.BWRAP
    where = (plan.state, plan.working_dir, plan.tools, pin)
    return TreeCheck.of(
        *where,
        protects_git=protects_git,
        writable=lambda: sandbox.writable,
        private_git=sandbox.private_git,
    )
