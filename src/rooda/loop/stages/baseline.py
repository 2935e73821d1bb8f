"""The user's check before the first iteration (`verify.baseline`)."""

from msgspec import Struct

from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.events.work import BaselineEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.progress import read_tests
from rooda.loop.services import Services
from rooda.loop.stages import verify
from rooda.loop.stages.cannot_run import Obstacle
from rooda.loop.stages.verify import SHOWN, Check
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    PARSE_TESTS,
    SHOW_AI_OUTPUT,
    TEST_REPORTS,
    VERIFY_BASELINE,
    VERIFY_COMMAND,
    VERIFY_RETRIES,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.state.folder import VERIFY, keep_file, place_of
from rooda.world.testresults.census import TestCensus

_LONGEST = 300.0  # seconds, unless the check is required to pass


class Baseline(Struct, frozen=True):
    """What follows from the check before the first iteration.

    `ran` is false if the settings ask for none. `outcome` ends the run. `census` are the tests that
    ran. `failed`: the check did not pass, and `failure` is the digest of how, if it printed
    anything.
    """

    ran: bool = False
    outcome: Outcome | None = None
    census: TestCensus | None = None
    failed: bool = False
    failure: str = ""


def run_baseline(plan: Plan, services: Services, *, is_needed: bool = False) -> Baseline:
    """Run the check before the first iteration, if the settings ask for it or it is needed.

    A check that can't run ends the run, because an agent would cost money and could not pass it. A
    check that fails does so only if it is required to pass: to make it pass may be the task.
    """
    values = plan.values
    if values[VERIFY_COMMAND] is None or not (is_needed or _is_due(plan)):
        return Baseline()
    place = place_of(services.run, 0)
    check = _run(plan, services, place)
    finished = check.finished
    if finished.was_interrupted:
        return Baseline(ran=True, outcome=Outcome(Verdict.INTERRUPTED, reason=finished.error))
    keep_file(plan.state, f"{place}/{VERIFY}", finished.output)
    tests = None
    if values[PARSE_TESTS]:
        tests = read_tests([finished.output], values[TEST_REPORTS], plan.working_dir, check.began)
    obstacle = verify.obstacle(plan, finished)
    outcome = _outcome(plan, check, obstacle, is_contained=services.tools.sandbox is not None)
    digest = verify.digest(plan, finished)
    services.emit(
        BaselineEnded(
            command=without_secret_values(values[VERIFY_COMMAND] or ""),
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(SHOWN),
            cleaned_up=finished.cleaned_up,
            tests=tests,
            cannot_run=obstacle is not None,
            is_shown=values[SHOW_AI_OUTPUT],
            obstacle="" if obstacle is None else obstacle.reason,
            ends_run=outcome is not None,
            digest=digest,
        )
    )
    census = None if obstacle is not None else verify.tests_of(plan, check)
    return Baseline(
        ran=True, outcome=outcome, census=census, failed=not finished.passed, failure=digest
    )


def _is_due(plan: Plan) -> bool:
    """Return whether the check runs. One for the end of the work runs only if the user asks."""
    values = plan.values
    mode, is_last = values[VERIFY_BASELINE], values[VERIFY_WHEN] == "on-success"
    is_off = mode == "off" or (mode == "auto" and is_last)
    return not is_off


def _run(plan: Plan, services: Services, place: str) -> Check:
    """Run the check; where its failure ends the run, with the time and tries of a later check."""
    limit = plan.values[VERIFY_TIMEOUT]
    if plan.values[VERIFY_BASELINE] == "require":
        return verify.try_check(plan, 0, services, place, limit, plan.values[VERIFY_RETRIES])
    return verify.try_check(plan, 0, services, place, min(_LONGEST, limit or _LONGEST))


def _outcome(
    plan: Plan, check: Check, obstacle: Obstacle | None, *, is_contained: bool
) -> Outcome | None:
    """Return the outcome that ends the run, with its reason and what to do; None: continue."""
    mode, flag = plan.values[VERIFY_BASELINE], VERIFY_BASELINE.flag_name
    finished = check.finished
    # If max_duration stopped the check, the rule of max_duration ends the run.
    if finished.passed or mode in ("warn", "off") or verify.is_cut_off(finished):
        return None
    about = f"({finished.error}): {without_secret_values(plan.values[VERIFY_COMMAND] or '')}"
    if obstacle is not None:
        where = " in the sandbox" if is_contained else ""
        reason = (
            f"verify can't run{where} {about}; {obstacle.reason}. {obstacle.fix}; if the agent is "
            f"to make it work, start with {flag} warn"
        )
    elif mode == "require":
        reason = (
            f"verify fails before the first iteration {about}. Make it pass; if the agent is to "
            f"do that, start with {flag} auto"
        )
    else:
        return None
    return Outcome(Verdict.ABORT, FailureKind.VERIFY, reason)
