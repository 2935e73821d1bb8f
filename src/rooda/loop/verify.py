"""The user's check of an iteration (`verify`), whatever the agent has signaled."""

from rooda.agents.failure_kinds import FailureKind
from rooda.config.plan import Plan
from rooda.config.sensitive import without_secret_values
from rooda.config.settings import (
    KILL_GRACE,
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.work_events import VerifyEnded
from rooda.text.times import format_duration
from rooda.workspace.tools import Command, Finished

_SHOWN = 4000  # characters of the end of its output


def is_due(plan: Plan, outcome: Outcome) -> bool:
    """Return whether the check runs after an agent that ended like this."""
    wanted = plan.values[VERIFY_COMMAND] is not None and outcome.is_good
    return wanted and (plan.values[VERIFY_WHEN] == "always" or outcome.verdict is Verdict.COMPLETE)


def run(plan: Plan, number: int, services: Services) -> Finished:
    """Run the check."""
    values = plan.values
    command = values[VERIFY_COMMAND] or ""
    finished = services.tools.run(
        Command(
            what="verify",
            argv=services.tools.shell(command),
            cwd=plan.working_dir,
            environ=plan.environ,
            timeout=values[VERIFY_TIMEOUT],
            kill_grace=values[KILL_GRACE],
        )
    )
    services.emit(
        VerifyEnded(
            iteration=number,
            command=without_secret_values(command),
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(_SHOWN),
            cleaned_up=finished.cleaned_up,
        )
    )
    return finished


def judge(outcome: Outcome, finished: Finished, command: str = "") -> Outcome:
    """Return the outcome after the check, which decides. Pure."""
    if finished.passed:
        return outcome
    if finished.was_interrupted:
        return Outcome(Verdict.INTERRUPTED, reason=finished.error)
    took = format_duration(finished.duration)
    return Outcome(
        Verdict.FAILURE,
        FailureKind.VERIFY,
        f"verify failed: {finished.error}",
        evidence=f"{finished.error} after {took} from {without_secret_values(command)}",
    )


def feedback(plan: Plan, finished: Finished) -> str:
    """Return what the next prompt says about a failed check; empty if the settings say so."""
    if finished.passed or not plan.values[VERIFY_FEEDBACK]:
        return ""
    said = finished.last_words(_SHOWN) or "(nothing)"
    return (
        f"After the last iteration the check `{plan.values[VERIFY_COMMAND]}` failed: "
        f"{finished.error}. Make it pass. The end of what it printed:\n\n{indented(said)}"
    )


def indented(text: str) -> str:
    """Return a text that can't imitate rooda's own headings."""
    return "\n".join(f"    {line}" for line in text.splitlines())
