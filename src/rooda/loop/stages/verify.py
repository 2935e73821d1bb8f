"""The user's check of an iteration (`verify`), whatever the agent has signaled."""

import hashlib
import re
import time
from functools import cache
from pathlib import Path

from msgspec import Struct

from rooda.base.secrets.sensitive import without_secret_values
from rooda.base.times import format_duration
from rooda.loop.events.verify import VerifyRetried
from rooda.loop.events.work import AS_BEFORE, FailedTry, VerifyEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.progress import count_tests
from rooda.loop.services import Services
from rooda.loop.stages.cannot_run import Obstacle, cannot_run
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    KILL_GRACE,
    MAX_DURATION,
    PARSE_TESTS,
    SHOW_AI_OUTPUT,
    TEST_REPORTS,
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_RETRIES,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.exits import Exited, NotStarted, TimedOut
from rooda.world.state.folder import VERIFY, earlier_try, keep_file
from rooda.world.testresults.census import TestCensus
from rooda.world.tools import Command, Finished

# A digest of how a check failed, so that rooda finds the same failure again. Pure.


_LAST_LINES = 10

_UNIT = r"(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"

# What differs between two runs that fail in the same way. The numbers of tests stay.
_NOISE: tuple[tuple[str, str], ...] = (
    (r"\b\d{4}-\d\d-\d\d[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"(?<![\w:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?|[.,]\d+)(?: ?[AP]M)?\b", "TIME"),
    (r"\b\d{4}[-/]\d\d[-/]\d\d\b", "DATE"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (rf"(?<![\w.])(?:\d+(?:[.,]\d+)?\s?{_UNIT}(?:\s(?=\d))?)+(?!\w)", "SPAN"),
    (r"(\bduration_ms:?\s+)[\d.]+", r"\1SPAN"),
    (r"(\btook\s+|\bin\s+)\d+\.\d+(?!\S)", r"\1SPAN"),
    (r"\b\d+(?:[.,]\d+)?\s?[KMG]i?B\b", "SIZE"),
    (r"\b0x[0-9a-fA-F]+\b", "ADDRESS"),
    (r"==\d+==", "==PID=="),
    (r"(\b(?:pid|PID|process|thread)[ =:]+)\d+", r"\1PID"),
    (r"(\bseed[ =:]+)\d+", r"\1SEED"),
    (r"(\b(?:127\.0\.0\.1|localhost|\[::1\]):)\d+", r"\1PORT"),
    (r"(?:/private)?(?:/var/folders/\w+/\w+/T|/var/tmp|/tmp)/[\w.-]+", "/TMP"),
    (r"/tmp[\w.-]{4,}", "/TMP"),  # noqa: S108 - a pattern
    (r"\bpytest-\d+\b", "pytest-N"),
)


def failure_digest(exit_code: int | None, command: str, output: str, folder: Path) -> str:
    """Return a digest of how a check failed; empty if it printed nothing to compare.

    `folder` is where the check ran: another slot of a fleet has another one.
    """
    lines = last_lines(output, folder)
    if not lines:
        return ""
    text = "\n".join([str(exit_code), command, *lines])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def last_lines(output: str, folder: Path) -> tuple[str, ...]:
    """Return the last lines of an output without times, temporary paths, addresses and the like."""
    lines = [line for line in output.splitlines() if line.strip()]
    return tuple(map(_plain, (line.replace(str(folder), ".") for line in lines[-_LAST_LINES:])))


def _plain(line: str) -> str:
    for pattern, instead in _noise():
        line = pattern.sub(instead, line)
    # A runner fills its last line with signs up to the width of the terminal.
    return re.sub(r"([=\-_*.])\1{3,}", r"\1\1\1", " ".join(line.split()))


@cache
def _noise() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the compiled patterns. A run whose checks pass needs none of them."""
    return tuple((re.compile(pattern), instead) for pattern, instead in _NOISE)


SHOWN = 4000  # characters of the end of its output


def is_due(plan: Plan, outcome: Outcome) -> bool:
    """Return whether the check runs after an agent that ended like this."""
    wanted = plan.values[VERIFY_COMMAND] is not None and outcome.is_good
    return wanted and (plan.values[VERIFY_WHEN] == "always" or outcome.verdict is Verdict.COMPLETE)


class Check(Struct, frozen=True):
    """The last try of the check, the time at which it began, and the tries before it."""

    finished: Finished
    began: float
    failed: tuple[FailedTry, ...] = ()


def run(
    plan: Plan, number: int, services: Services, place: str, failed_before: str = ""
) -> tuple[Check, bool]:
    """Run the check after an iteration, with its retries; keep what it prints in `place`.

    Also return whether it failed like a check with the digest `failed_before`.
    """
    values = plan.values
    retries = values[VERIFY_RETRIES]
    check = try_check(plan, number, services, place, values[VERIFY_TIMEOUT], retries)
    finished = check.finished
    keep_file(plan.state, f"{place}/{VERIFY}", finished.output)
    as_before = bool(failed_before) and digest(plan, finished) == failed_before
    services.emit(
        VerifyEnded(
            iteration=number,
            command=without_secret_values(values[VERIFY_COMMAND] or ""),
            exit_code=finished.exit_code,
            error=finished.error,
            duration=finished.duration,
            output=finished.last_words(SHOWN),
            cleaned_up=finished.cleaned_up,
            is_shown=values[SHOW_AI_OUTPUT],
            failed_tries=check.failed,
            is_flaky=finished.passed and bool(check.failed),
            as_before=as_before,
        )
    )
    return check, as_before


def try_check(
    plan: Plan, number: int, services: Services, place: str, timeout: float | None, retries: int = 0
) -> Check:
    """Run the check until a try passes or none is left; `timeout` holds for each try."""
    failed: list[FailedTry] = []
    while True:
        began = time.time()
        finished = run_command(plan, services, plan.values[VERIFY_COMMAND] or "", timeout)
        if len(failed) >= retries or not _may_pass_again(plan, finished, services):
            return Check(finished, began, tuple(failed))
        failed.append(FailedTry(finished.exit_code, finished.error, finished.duration))
        keep_file(plan.state, f"{place}/{earlier_try(len(failed))}", finished.output)
        services.emit(_retried(plan, number, len(failed), finished))


def obstacle(plan: Plan, finished: Finished) -> Obstacle | None:
    """Return why the check can't run; None if it ran."""
    if isinstance(finished.exit, NotStarted) and finished.exit.is_about_files:
        return Obstacle(finished.error, "Correct the folder or the sandbox of the run")
    code = finished.exit.code if isinstance(finished.exit, Exited) else None
    return cannot_run(code, plan.values[VERIFY_COMMAND] or "", finished.last_words(SHOWN))


def digest(plan: Plan, finished: Finished) -> str:
    """Return the digest of how the check failed; empty if it passed or printed nothing."""
    if finished.passed or finished.was_interrupted:
        return ""
    command, output = plan.values[VERIFY_COMMAND] or "", finished.last_words(SHOWN)
    return failure_digest(finished.exit_code, command, output, plan.working_dir)


def is_cut_off(finished: Finished) -> bool:
    """Return whether the end of the run (`max_duration`) has stopped the check."""
    return isinstance(finished.exit, TimedOut) and finished.exit.clock == MAX_DURATION.key


def _may_pass_again(plan: Plan, finished: Finished, services: Services) -> bool:
    """Return whether another try makes sense: not if the check can't run, or the run is over."""
    if finished.passed or finished.was_interrupted or obstacle(plan, finished) is not None:
        return False
    return not (is_cut_off(finished) or services.interrupts.received)


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
        )
    )


def tests_of(plan: Plan, check: Check) -> TestCensus | None:
    """Return the tests of a check that ran to its end, as far as rooda can read them."""
    values, finished = plan.values, check.finished
    if not values[PARSE_TESTS] or not isinstance(finished.exit, Exited):
        return None
    return count_tests(finished.output, values[TEST_REPORTS], plan.working_dir, check.began)


def judge(
    outcome: Outcome, finished: Finished, command: str = "", *, as_before: bool = False
) -> Outcome:
    """Return the outcome after the check, which decides. Pure."""
    if finished.passed:
        return outcome
    if finished.was_interrupted:
        return Outcome(Verdict.INTERRUPTED, reason=finished.error)
    took, before = format_duration(finished.duration), f", {AS_BEFORE}" if as_before else ""
    return Outcome(
        Verdict.FAILURE,
        FailureKind.VERIFY,
        f"verify failed: {finished.error}{before}",
        evidence=f"{finished.error} after {took} from {without_secret_values(command)}",
    )


def feedback(plan: Plan, finished: Finished, *, as_before: bool = False) -> str:
    """Return what the next prompt says about a failed check; empty if the settings say so."""
    if finished.passed or not plan.values[VERIFY_FEEDBACK]:
        return ""
    said, before = finished.last_words(SHOWN) or "(nothing)", f", {AS_BEFORE}" if as_before else ""
    return (
        f"After the last iteration the check `{plan.values[VERIFY_COMMAND]}` failed: "
        f"{finished.error}{before}. Make it pass. The end of what it printed:\n\n{indented(said)}"
    )


def indented(text: str) -> str:
    """Return a text that can't imitate rooda's own headings."""
    return "\n".join(f"    {line}" for line in text.splitlines())
