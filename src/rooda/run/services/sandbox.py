"""Set up the sandbox of a run; without one, nothing is loaded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooda.base.problems import InvalidInput, Problem, errors
from rooda.plan.plan import Plan
from rooda.plan.preflight.git import check_changes
from rooda.plan.preflight.sandbox import TITLE

if TYPE_CHECKING:
    from rooda.world.git.pin import Pin
    from rooda.world.sandbox.private_git import GitNotice
    from rooda.world.sandbox.sandbox import Sandbox
    from rooda.world.sandbox.tree_check import TreeCheck


def open_sandbox(plan: Plan) -> "Sandbox | None":
    """Return the sandbox of a run, tried out. Raises InvalidInput if it can't be set up."""
    if plan.sandbox is None:
        return None
    from rooda.world.sandbox.sandbox import Sandbox, SandboxError  # noqa: PLC0415 - see above

    try:
        return Sandbox.of(plan.sandbox)
    except SandboxError as error:
        raise InvalidInput([Problem(str(error), error.fix, title=TITLE)]) from None


def take_over_left(plan: Plan, *, resumed: bool) -> "list[GitNotice]":
    """Take over the agent's commits of a run that was killed; return what to report about them.

    After that, check the files of the user, which `prepare` could not. Raises InvalidInput.
    """
    if plan.sandbox is None or not plan.sandbox.has_left_git:
        return []
    sandbox = open_sandbox(plan)
    notices = [] if sandbox is None else sandbox.closed()
    problems = [*check_changes(plan.values, plan.working_dir, plan.tools, resumed=resumed)]
    if errors(problems):
        raise InvalidInput(problems)
    return notices


def check_tree_of(
    plan: Plan,
    sandbox: "Sandbox | None",
    pin: "Pin | None",
    notices: "Sequence[GitNotice]" = (),
) -> "TreeCheck | None":
    """Return the checks of what programs leave in the work tree; None without a sandbox."""
    if sandbox is None:
        return None
    from rooda.world.sandbox.sandbox_plan import SandboxKind  # noqa: PLC0415 - see above
    from rooda.world.sandbox.tree_check import TreeCheck  # noqa: PLC0415

    protects_git = sandbox.plan.kind is SandboxKind.BWRAP
    where = (plan.state, plan.working_dir, plan.tools, pin)
    return TreeCheck.of(
        *where,
        protects_git=protects_git,
        writable=lambda: sandbox.writable,
        private_git=sandbox.private_git,
        notices=notices,
    )
