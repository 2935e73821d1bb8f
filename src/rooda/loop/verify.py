"""The user's check of an iteration (`verify`), whatever the agent has signaled."""

import time

from msgspec import Struct

from rooda.agents.failure_kinds import FailureKind
from rooda.config.plan import Plan
from rooda.config.sensitive import without_secret_values
from rooda.config.settings import (
    KILL_GRACE,
    MAX_DURATION,
    PARSE_TESTS,
    SHOW_AI_OUTPUT,
    TEST_REPORTS,
    VERIFY_BASELINE,
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_RETRIES,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.iteration.progress import count_tests, read_tests
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.verify_events import VerifyRetried
from rooda.loop.work_events import BaselineEnded, FailedTry, VerifyEnded
from rooda.process.exits import Exited, TimedOut
from rooda.testresults.census import TestCensus
from rooda.text.times import format_duration
from rooda.workspace.state_folder import VERIFY, earlier_try, keep_file, place_of
from rooda.workspace.tools import Command, Finished

SHOWN = 4000  # characters of the end of its output
_LONGEST_BASELINE = 300.0  # seconds
_CANNOT_RUN = (126, 127)  # the exit codes of a shell that can't execute or find a program


def is_due(plan: Plan, outcome: Outcome) -> bool:
    """Return whether the check runs after an agent that ended like this."""
    wanted = plan.values[VERIFY_COMMAND] is not None and outcome.is_good
    return wanted and (plan.values[VERIFY_WHEN] == "always" or outcome.verdict is Verdict.COMPLETE)


class Check(Struct, frozen=True):
    """The last try of the check, and the time at which it began."""

    finished: Finished
    began: float


def run(plan: Plan, number: int, services: Services, place: str) -> Check:
    """Run the check after an iteration, with its retries; keep what it prints in `place`."""
    most, command = plan.values[VERIFY_RETRIES] + 1, plan.values[VERIFY_COMMAND] or ""
    failed: list[FailedTry] = []
    while True:
        began = time.time()
        finished = run_command(plan, services, command, plan.values[VERIFY_TIMEOUT])
        if len(failed) + 1 >= most or not _may_pass_again(finished, services):
            break
        failed.append(FailedTry(finished.exit_code, finished.error, finished.duration))
        keep_file(plan.workspace, f"{place}/{earlier_try(len(failed))}", finished.output)
        services.emit(_retried(plan, number, len(failed), finished))
    keep_file(plan.workspace, f"{place}/{VERIFY}", finished.output)
    services.emit(
        VerifyEnded(
            iteration=number,
            command=without_secret_values(command),
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(SHOWN),
            cleaned_up=finished.cleaned_up,
            is_shown=plan.values[SHOW_AI_OUTPUT],
            failed_tries=tuple(failed),
            is_flaky=finished.passed and bool(failed),
        )
    )
    return Check(finished, began)


def _may_pass_again(finished: Finished, services: Services) -> bool:
    """Return whether another try makes sense: not if the check can't run, or the run is over."""
    if finished.passed or finished.was_interrupted or finished.exit_code in _CANNOT_RUN:
        return False
    is_at_its_end = isinstance(finished.exit, TimedOut) and finished.exit.clock == MAX_DURATION.key
    return not (is_at_its_end or services.interrupts.received)


def _retried(plan: Plan, number: int, attempt: int, finished: Finished) -> VerifyRetried:
    return VerifyRetried(
        number,
        attempt,
        plan.values[VERIFY_RETRIES] + 1,
        without_secret_values(plan.values[VERIFY_COMMAND] or ""),
        finished.exit_code,
        finished.error,
        finished.duration,
        finished.last_words(SHOWN),
    )


def run_command(
    plan: Plan, services: Services, command: str, timeout: float | None, what: str = "verify"
) -> Finished:
    """Run a check of the user to its end: in the sandbox, if there is one."""
    services.note_program()
    return services.tools.run(
        Command(
            what=what,
            argv=services.tools.shell(command),
            cwd=plan.working_dir,
            environ=plan.environ,
            timeout=timeout,
            kill_grace=plan.values[KILL_GRACE],
            shown=without_secret_values(command),
            streams=plan.values[SHOW_AI_OUTPUT],
            contained=True,
        )
    )


class Baseline(Struct, frozen=True):
    """The check before the first iteration.

    `outcome` is set if the check can't run at all, or was interrupted. `tests` are those that it
    ran. `failed`: it ran and failed, which is no obstacle: to make it pass may be the task.
    """

    outcome: Outcome | None = None
    tests: TestCensus | None = None
    failed: bool = False


def run_baseline(plan: Plan, services: Services) -> Baseline:
    """Run the check once before the first iteration, if the settings ask for it. It has one try."""
    values = plan.values
    is_due = values[VERIFY_BASELINE] and values[VERIFY_WHEN] == "always"
    if not is_due or values[VERIFY_COMMAND] is None:
        return Baseline()
    began, limit = time.time(), values[VERIFY_TIMEOUT]
    most = min(_LONGEST_BASELINE, limit or _LONGEST_BASELINE)
    finished = run_command(plan, services, values[VERIFY_COMMAND] or "", most)
    if finished.was_interrupted:
        return Baseline(Outcome(Verdict.INTERRUPTED, reason=finished.error))
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
            output=finished.last_words(SHOWN),
            cleaned_up=finished.cleaned_up,
            tests=tests,
            cannot_run=cannot_run,
            is_shown=values[SHOW_AI_OUTPUT],
        )
    )
    if not cannot_run:
        return Baseline(None, tests_of(plan, Check(finished, began)), not finished.passed)
    off = f"--no-{VERIFY_BASELINE.flag_name.removeprefix('--')}"
    reason = (
        f"verify can't run ({finished.error}): {command}; correct it, or start with {off} "
        "if the agent is to make it work"
    )
    return Baseline(Outcome(Verdict.ABORT, FailureKind.VERIFY, reason))


def tests_of(plan: Plan, check: Check) -> TestCensus | None:
    """Return the tests of a check that ran to its end, as far as rooda can read them."""
    values, finished = plan.values, check.finished
    if not values[PARSE_TESTS] or not isinstance(finished.exit, Exited):
        return None
    return count_tests(finished.output, values[TEST_REPORTS], plan.working_dir, check.began)


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
    said = finished.last_words(SHOWN) or "(nothing)"
    return (
        f"After the last iteration the check `{plan.values[VERIFY_COMMAND]}` failed: "
        f"{finished.error}. Make it pass. The end of what it printed:\n\n{indented(said)}"
    )


def indented(text: str) -> str:
    """Return a text that can't imitate rooda's own headings."""
    return "\n".join(f"    {line}" for line in text.splitlines())
