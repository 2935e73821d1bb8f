"""Start a prepared run for a command, and turn what goes wrong into messages."""

import sys

from rooda.config.plan import Prepared
from rooda.config.problems import InvalidInput
from rooda.console import crash
from rooda.engine.invocation import Invocation
from rooda.engine.start import report, start_run
from rooda.process.interrupts import Interrupts


def launch(prepared: Prepared, interrupts: Interrupts, invocation: Invocation) -> int:
    """Run the plan to its end, and return the exit code."""
    try:
        result = start_run(prepared, interrupts, invocation)
    except InvalidInput as invalid:
        taken_up = invocation.taken_up
        problems = invalid.problems if taken_up is None else taken_up.explained(invalid.problems)
        report(problems, prepared.values)
        return 1
    for failure in result.failures:
        crash.tell(failure, sys.argv[1:])
    return result.exit_code
