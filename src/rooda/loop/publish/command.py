"""The user's command that publishes an iteration; if it refuses, the run ends."""

from rooda.base.controls import one_line
from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.events.publish import PublishEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_PUBLISH, GIT_PUBLISH_TIMEOUT, KILL_GRACE
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.tools import Command, Finished

_SHOWN = 2000  # characters of its output


def publish(plan: Plan, services: Services, number: int, commit: str | None) -> Outcome | None:
    """Run the command for an iteration; return the outcome if it refuses, else None.

    It does not start after a signal, and one that a signal stops has not refused.
    """
    interrupts = services.interrupts
    if len(interrupts.received) > interrupts.acknowledged:
        return None
    command = plan.values[GIT_PUBLISH] or ""
    finished = services.tools.run(_command(plan, services, number, commit))
    if finished.was_interrupted:
        return None
    shown = without_secret_values(command)
    services.emit(_ended(number, shown, finished, commit))
    return None if finished.passed else _refused(shown, finished)


def _command(plan: Plan, services: Services, number: int, commit: str | None) -> Command:
    command = plan.values[GIT_PUBLISH] or ""
    about = {
        "ROODA_RUN": services.run,
        "ROODA_PROCEDURE": plan.procedure,
        "ROODA_ITERATION": str(number),
        "ROODA_COMMIT": commit or "",
    }
    return Command(
        what="publish",
        argv=services.tools.shell(command),
        cwd=plan.working_dir,
        environ={**services.tools.environ, **about},
        timeout=plan.values[GIT_PUBLISH_TIMEOUT],
        kill_grace=plan.values[KILL_GRACE],
        closing=True,
        shown=without_secret_values(command),
        outside=True,
    )


def _ended(number: int, shown: str, finished: Finished, commit: str | None) -> PublishEnded:
    return PublishEnded(
        iteration=number,
        command=shown,
        exit_code=finished.exit_code,
        error=finished.error,
        duration=finished.duration,
        output=finished.last_words(_SHOWN),
        commit=commit,
        cleaned_up=finished.cleaned_up,
    )


def _refused(shown: str, finished: Finished) -> Outcome:
    """Return the outcome of an iteration that was not published; its work stays where it is."""
    lines = [line for line in finished.last_words(_SHOWN).splitlines() if line.strip()]
    last = f": {one_line(lines[-1])}" if lines else ""
    reason = f"not published: {finished.error} from {one_line(shown)}{last}"
    evidence = f"{finished.error} from {shown}"
    return Outcome(Verdict.ABORT, FailureKind.PUBLISH, reason, evidence=evidence)
