"""The user's check of an iteration (`verify`), whatever the agent has signaled."""

import time

from rooda.agents.failure_kinds import FailureKind
from rooda.config.plan import Plan
from rooda.config.sensitive import without_secret_values
from rooda.config.settings import (
    KILL_GRACE,
    PARSE_TESTS,
    SHOW_AI_OUTPUT,
    TEST_REPORTS,
    VERIFY_BASELINE,
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.iteration.progress import read_tests
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.work_events import BaselineEnded, VerifyEnded
from rooda.text.times import format_duration
from rooda.workspace.state_folder import VERIFY, keep_file, place_of
from rooda.workspace.tools import Command, Finished

_SHOWN = 4000  # characters of the end of its output
_LONGEST_BASELINE = 300.0  # seconds
_CANNOT_RUN = (126, 127)  # the exit codes of a shell that can't execute or find a program


def is_due(plan: Plan, outcome: Outcome) -> bool:
    """Return whether the check runs after an agent that ended like this."""
    wanted = plan.values[VERIFY_COMMAND] is not None and outcome.is_good
    return wanted and (plan.values[VERIFY_WHEN] == "always" or outcome.verdict is Verdict.COMPLETE)


def run(plan: Plan, number: int, services: Services) -> Finished:
    """Run the check after an iteration."""
    finished = _run(plan, services, plan.values[VERIFY_TIMEOUT])
    services.emit(
        VerifyEnded(
            iteration=number,
            command=without_secret_values(plan.values[VERIFY_COMMAND] or ""),
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(_SHOWN),
            cleaned_up=finished.cleaned_up,
            is_shown=plan.values[SHOW_AI_OUTPUT],
        )
    )
    return finished


def _run(plan: Plan, services: Services, timeout: float | None) -> Finished:
    services.note_program()
    return services.tools.run(
        Command(
            what="verify",
            argv=services.tools.shell(plan.values[VERIFY_COMMAND] or ""),
            cwd=plan.working_dir,
            environ=plan.environ,
            timeout=timeout,
            kill_grace=plan.values[KILL_GRACE],
            shown=without_secret_values(plan.values[VERIFY_COMMAND] or ""),
            streams=plan.values[SHOW_AI_OUTPUT],
            contained=True,
        )
    )


def run_baseline(plan: Plan, services: Services) -> Outcome | None:
    """Run the check once before the first iteration, if the settings ask for it.

    Returns the outcome if the check can't run at all, or was interrupted. A check that fails is no
    obstacle: to make it pass may be the task.
    """
    values = plan.values
    is_due = values[VERIFY_BASELINE] and values[VERIFY_WHEN] == "always"
    if not is_due or values[VERIFY_COMMAND] is None:
        return None
    began, limit = time.time(), values[VERIFY_TIMEOUT]
    finished = _run(plan, services, min(_LONGEST_BASELINE, limit or _LONGEST_BASELINE))
    if finished.was_interrupted:
        return Outcome(Verdict.INTERRUPTED, reason=finished.error)
    keep_file(plan.workspace, f"{place_of(services.run, 0)}/{VERIFY}", finished.output)
    tests = None
    if values[PARSE_TESTS]:
        tests = read_tests([finished.output], values[TEST_REPORTS], plan.working_dir, began)
    command = without_secret_values(values[VERIFY_COMMAND] or "")
    cannot_run = finished.exit_code in _CANNOT_RUN
    services.emit(
        BaselineEnded(
            command=command,
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(_SHOWN),
            cleaned_up=finished.cleaned_up,
            tests=tests,
            cannot_run=cannot_run,
            is_shown=values[SHOW_AI_OUTPUT],
        )
    )
    if not cannot_run:
        return None
    off = f"--no-{VERIFY_BASELINE.flag_name.removeprefix('--')}"
    reason = (
        f"verify can't run ({finished.error}): {command}; correct it, or start with {off} "
        "if the agent is to make it work"
    )
    return Outcome(Verdict.ABORT, FailureKind.VERIFY, reason)


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
