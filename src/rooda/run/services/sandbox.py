"""Set up the sandbox of a run; without one, nothing is loaded."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rooda.base.problems import InvalidInput, Problem, Severity, errors
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


@contextlib.contextmanager
def take_over_left(plan: Plan, *, resumed: bool) -> "Iterator[list[GitNotice]]":
    """Take over the agent's commits of a run that was killed; yield what to report about them.

    After that, check the files of the user, which `prepare` could not. Raises InvalidInput. If the
    start is refused, now or later in this context, the error names the commits: no run reports
    them.
    """
    notices: list[GitNotice] = []
    try:
        if plan.sandbox is not None and plan.sandbox.has_left_git:
            sandbox = open_sandbox(plan)
            notices = [] if sandbox is None else sandbox.closed()
            _check_changes(plan, resumed=resumed)
        yield notices
    except InvalidInput as error:
        told = [problem for one in notices if (problem := _about(one)) is not None]
        raise InvalidInput([*error.problems, *told]) from None


def _check_changes(plan: Plan, *, resumed: bool) -> None:
    problems = [*check_changes(plan.values, plan.working_dir, plan.tools, resumed=resumed)]
    if errors(problems):
        raise InvalidInput(problems)


def _about(notice: "GitNotice") -> Problem | None:
    """Return a warning about commits that are not on their branch; None if they are."""
    if notice.refused:
        message = f"rooda could not take over the commits of an earlier run: {notice.refused}"
        advice = f"They are in {notice.folder}"
    elif notice.kept:
        message = f"commits of the agent of an earlier run are on {', '.join(notice.kept)}"
        advice = "The branch that it worked on has changed meanwhile; see them with `git log`"
    else:
        return None
    return Problem(message, advice, severity=Severity.WARNING, title=TITLE)


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
