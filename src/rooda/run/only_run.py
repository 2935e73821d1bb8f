"""One command in the place of a run: where its programs would run, in its sandbox if it has one."""

from contextlib import ExitStack

from msgspec import Struct

from rooda.base.paths import first_names
from rooda.base.problems import InvalidInput, errors
from rooda.plan.plan import Plan
from rooda.plan.preflight.sandbox import TITLE
from rooda.plan.prepare import Prepared
from rooda.run.lock import hold_run_lock
from rooda.run.services.sandbox import check_tree_of, open_sandbox
from rooda.world.git.pin import Pin
from rooda.world.process.exits import Exited
from rooda.world.process.interrupts import INTERRUPTED, Interrupts
from rooda.world.sandbox.tree_findings import Action
from rooda.world.state.folder import make_state_folder
from rooda.world.tools import Command, Finished

_PLACE = "only-run"  # in the state folder: what the check of the work tree removes
_FAILED = 1


class Alone(Struct, frozen=True):
    """The exit code of the command, what it printed, and what is wrong besides."""

    exit_code: int
    output: bytes
    troubles: tuple[str, ...] = ()


def run_alone(prepared: Prepared, command: str, interrupts: Interrupts) -> Alone:
    """Run a command of the user instead of the run, with its variables.

    What would stop the run, such as a missing agent, does not matter here, except for the sandbox:
    the command never runs outside instead. Raises InvalidInput.
    """
    plan = _plan(prepared)
    plan.tools.interrupts = interrupts
    with interrupts.deferred(), ExitStack() as closing:
        make_state_folder(plan.state)
        closing.enter_context(hold_run_lock(plan))
        closing.enter_context(plan.tools.runner)
        sandbox, pin = open_sandbox(plan), Pin.of(plan.working_dir, plan.tools)
        for opened in (sandbox, pin):
            if opened is not None:
                closing.callback(opened.close)
        check = check_tree_of(plan, sandbox, pin)
        plan.tools.sandbox = sandbox
        finished = plan.tools.run(
            Command(
                "command",
                plan.tools.shell(command),
                plan.started_in or plan.working_dir,
                plan.environ,
            )
        )
        handled = [] if check is None else check.run(_PLACE)
        refused = [one for one in handled if one.action is Action.REFUSED]
        troubles = [f"it left {one.finding.what}: {first_names(one.names)}" for one in refused]
        if not isinstance(finished.exit, Exited):
            troubles.append(finished.error)
        return Alone(_code(finished, is_safe=not refused), finished.output, tuple(troubles))


def _plan(prepared: Prepared) -> Plan:
    """Return the plan. Raises InvalidInput without one, or if its sandbox is not possible."""
    plan = prepared.plan
    problems = [one for one in prepared.all_problems() if plan is None or one.title == TITLE]
    if plan is None or errors(problems):
        raise InvalidInput(problems)
    return plan


def _code(finished: Finished, *, is_safe: bool) -> int:
    if finished.was_interrupted:
        return INTERRUPTED
    if isinstance(finished.exit, Exited) and is_safe:
        return finished.exit.code
    return finished.exit_code or _FAILED
