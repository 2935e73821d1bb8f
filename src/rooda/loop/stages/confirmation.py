"""The stage that asks for several iterations in a row with SUCCESS (`signals.confirm`)."""

from msgspec.structs import replace

from rooda.loop.context import IterationContext
from rooda.loop.outcome import Verdict
from rooda.plan.settings.settings import SIGNALS_CONFIRM

_WORDS = (
    "An earlier iteration reported that the work is complete. Check this yourself: compare the "
    "work with the task, and try it out. If something is missing or wrong, go on with it. If "
    "nothing is, report again that the work is complete."
)


def confirm_success(context: IterationContext) -> None:
    """Let the run go on until enough iterations in a row have signaled SUCCESS."""
    needed, outcome = context.plan.values[SIGNALS_CONFIRM], context.decided
    if needed == 1 or outcome.verdict is not Verdict.COMPLETE:
        return
    number = context.state.successes + 1
    outcome = replace(outcome, successes=number)
    if number < needed:
        outcome = replace(outcome, verdict=Verdict.CONTINUE)
        context.add_feedback(_WORDS)
    context.outcome = outcome
