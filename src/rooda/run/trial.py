"""Runs one iteration of a plan alone: without a lock, a record and views."""

from collections.abc import Callable

from rooda.base.event import Event
from rooda.loop.iteration import IterationReport, run_iteration
from rooda.loop.services import Execute, Services
from rooda.loop.state import State
from rooda.loop.tracker import FileChangeTracker
from rooda.plan.plan import Plan
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.runner import Runner


def run_once(
    plan: Plan,
    name: str,
    interrupts: Interrupts,
    emit: Callable[[Event], None],
    wrap: Callable[[Execute], Execute] = lambda execute: execute,
) -> IterationReport:
    """Run the first iteration of the plan under this name, and return its report.

    `emit` gets every event. `wrap` may replace the function that runs the programs.
    """
    with Runner(name) as runner:
        services = Services(
            emit,
            interrupts,
            wrap(runner.run),
            interrupts.stopwatch.now,
            run=name,
            tracker=FileChangeTracker(plan.workspace, plan.tools, state=plan.state),
        )
        return run_iteration(plan, State(), services)
