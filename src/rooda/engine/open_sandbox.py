"""Set up the sandbox of a run; without one, nothing is loaded."""

from typing import TYPE_CHECKING

from rooda.config.plan import Plan
from rooda.config.problems import InvalidInput, Problem
from rooda.config.sandbox_checks import TITLE

if TYPE_CHECKING:
    from rooda.sandbox.sandbox import Sandbox


def open_sandbox(plan: Plan) -> "Sandbox | None":
    """Return the sandbox of a run, tried out. Raises InvalidInput if it can't be set up."""
    if plan.sandbox is None:
        return None
    from rooda.sandbox.sandbox import Sandbox, SandboxError  # noqa: PLC0415 - see above

    try:
        return Sandbox.of(plan.sandbox)
    except SandboxError as error:
        raise InvalidInput([Problem(str(error), error.fix, title=TITLE)]) from None
