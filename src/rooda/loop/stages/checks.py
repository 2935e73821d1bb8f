"""The stages that run the user's check: before the first iteration, after each, in a clean copy."""

import contextlib
import os
from collections.abc import Iterator

from msgspec import Struct

from rooda.base.paths import first_names
from rooda.base.secrets.sensitive import without_secret_values
from rooda.base.times import format_duration
from rooda.loop.context import IterationContext
from rooda.loop.events.verify import CleanCheckEnded, TestsLost
from rooda.loop.events.work import BaselineEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.progress import read_tests
from rooda.loop.publish.user_git import LeftOut, Staging, UserGit
from rooda.loop.services import Services
from rooda.loop.stages import verify
from rooda.loop.stages.cannot_run import Obstacle
from rooda.loop.stages.changes import find_tests
from rooda.loop.stages.verify import SHOWN, Check, indented
from rooda.loop.waiting import note_user_changes
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    KILL_GRACE,
    PARSE_TESTS,
    SHOW_AI_OUTPUT,
    TEST_REPORTS,
    VERIFY_BASELINE,
    VERIFY_CLEAN,
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_RETRIES,
    VERIFY_SHRINK,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.files.beneath import Beneath
from rooda.world.git.clean_copy import clean_folder, copy_files
from rooda.world.git.git import Git, GitError, GitInterruptedError
from rooda.world.git.pin import Pin
from rooda.world.state.folder import CLEAN_CHECK, VERIFY, keep_file, place_of
from rooda.world.testresults.census import LossKind, TestCensus, TestLoss, compare, next_reference
from rooda.world.tools import Command, Finished

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


def run_verify(context: IterationContext) -> None:
    """Run the user's check, read the tests that it prints, and compare them with the last ones."""
    outcome = context.decided
    if not verify.is_due(context.plan, outcome):
        return
    context.others_may_change_files()
    before = context.state.failed_before
    check, as_before = verify.run(
        context.plan, context.number, context.services, context.place, before
    )
    find_tests(context, check.finished.output)
    context.add_feedback(verify.feedback(context.plan, check.finished, as_before=as_before))
    command = context.plan.values[VERIFY_COMMAND] or ""
    context.outcome = verify.judge(outcome, check.finished, command, as_before=as_before)
    if context.plan.values[PARSE_TESTS]:
        _compare_tests(context, check)


def _compare_tests(context: IterationContext, check: Check) -> None:
    """Report tests that are gone or skipped since the last verify; where asked, fail for them.

    Only a check that passed is judged: one that failed may have stopped at its first failed test.
    """
    fails, passed = context.plan.values[VERIFY_SHRINK] == "fail", check.finished.passed
    before, now = context.census, verify.tests_of(context.plan, check)
    if now is None and not context.changed_anything:
        return  # a build tool that has nothing to do runs no tests
    context.census = next_reference(before, now, passed=passed, keeps=fails)
    loss = compare(before, now) if passed else None
    if loss is None:
        return
    is_failure = fails and loss.kind is LossKind.FEWER
    lost = TestsLost(context.number, loss, is_failure)
    context.learn(tests_lost=lost)
    context.services.emit(lost)
    if is_failure:
        reason = f"verify passed with fewer tests: {loss.brief}"
        context.outcome = Outcome(
            Verdict.FAILURE, FailureKind.FEWER_TESTS, reason, evidence=loss.words
        )
        if context.plan.values[VERIFY_FEEDBACK]:
            shown = without_secret_values(context.plan.values[VERIFY_COMMAND] or "")
            context.add_feedback(_words(loss, shown))


def _words(loss: TestLoss, command: str) -> str:
    """Return what the next prompt says about lost tests."""
    first = (
        f"After the last iteration the check `{command}` passed, but with fewer tests than before: "
        f"{loss.numbers}. That does not count as success. Bring the missing tests back, and make "
        "skipped ones run again. If a test has to change, keep as many tests as there were."
    )
    lines = [first]
    for title, found, total in (
        ("Tests that are gone", loss.gone, loss.gone_total),
        ("Tests that are skipped now", loss.newly_skipped, loss.newly_skipped_total),
    ):
        if found:
            more = [f"... {total - len(found)} more"] if total > len(found) else []
            lines.append(f"{title}:\n\n{verify.indented(chr(10).join([*found, *more]))}")
    return "\n\n".join(lines)


_INDEX = "rooda-clean-index"  # beside the user's index: a split index refers to files there
_HINT = "a file that the work needs may be missing in the commit"


def run_clean_check(context: IterationContext) -> None:
    """Run the user's check in a clean copy, if the agent says that the work is done."""
    plan, services = context.plan, context.services
    command = plan.values[VERIFY_CLEAN]
    if command is None or context.decided.verdict is not Verdict.COMPLETE:
        return
    context.others_may_change_files()
    note_user_changes(services, context.number)
    left_out = LeftOut()
    try:
        finished, files = _run_in_copy(plan, services, command, left_out)
    except GitInterruptedError as error:
        context.outcome = Outcome(Verdict.INTERRUPTED, reason=str(error))
        return
    except (GitError, OSError) as error:
        reason = f"no clean copy of the work could be made: {error}"
        context.outcome = Outcome(Verdict.FAILURE, FailureKind.CLEAN_CHECK, reason)
        return
    keep_file(plan.state, f"{context.place}/{CLEAN_CHECK}", finished.output)
    services.emit(_ended(context, command, finished, files))
    if finished.was_interrupted:
        context.outcome = Outcome(Verdict.INTERRUPTED, reason=finished.error)
    elif not finished.passed:
        took = format_duration(finished.duration)
        context.outcome = Outcome(
            Verdict.FAILURE,
            FailureKind.CLEAN_CHECK,
            f"the check in a clean copy failed: {finished.error}; {_HINT}",
            evidence=f"{finished.error} after {took} from {without_secret_values(command)}",
        )
        if plan.values[VERIFY_FEEDBACK]:
            context.add_feedback(_feedback(command, finished, left_out))


def _run_in_copy(
    plan: Plan, services: Services, command: str, left_out: LeftOut
) -> tuple[Finished, int]:
    """Copy the files that a commit would contain, and run the command there.

    Returns how it ended, and the number of files. Raises GitError and OSError.
    """
    pin = services.pin
    if pin is None:
        raise GitError("the run did not start in a git repository")
    if trouble := pin.trouble():
        raise GitError(f"the repository changed: {trouble}")
    with clean_folder(pin.top) as copy:
        with _index_of_commit(plan, services, pin, left_out) as git:
            files = copy_files(git, services.tools, pin.top, copy)
        folder = copy / os.path.relpath(plan.working_dir.resolve(), pin.top)
        folder.mkdir(parents=True, exist_ok=True)
        finished = services.tools.run(
            Command(
                what="verify",
                argv=services.tools.shell(command),
                cwd=folder,
                environ=plan.environ,
                timeout=plan.values[VERIFY_TIMEOUT],
                kill_grace=plan.values[KILL_GRACE],
                shown=without_secret_values(command),
                streams=plan.values[SHOW_AI_OUTPUT],
                copy=copy,
            )
        )
    return finished, files


@contextlib.contextmanager
def _index_of_commit(plan: Plan, services: Services, pin: Pin, left_out: LeftOut) -> Iterator[Git]:
    """Yield a git with an index of what rooda would commit now; the user's index stays as it is."""
    folder, index = Beneath(pin.git_dir), pin.git_dir / _INDEX
    _forget_index(folder)
    with contextlib.suppress(FileNotFoundError), folder.open("index") as content:
        folder.write_new(_INDEX, content, 0o600)  # else nothing is tracked yet
    try:
        user_git = UserGit(plan, services.tools, pin, index)
        staged = Staging(user_git, plan, services, pin, index).stage(left_out)
        if staged.was_interrupted:
            raise GitInterruptedError(staged.error)
        if not staged.passed:
            raise GitError(f"git add: {staged.last_words(SHOWN) or staged.error}")
        yield Git(pin.top, services.tools, {"GIT_INDEX_FILE": str(index)})
    finally:
        _forget_index(folder)


def _forget_index(folder: Beneath) -> None:
    for name in (_INDEX, f"{_INDEX}.lock"):  # the lock of a git that was killed
        with contextlib.suppress(FileNotFoundError):
            folder.remove(name)


def _ended(
    context: IterationContext, command: str, finished: Finished, files: int
) -> CleanCheckEnded:
    return CleanCheckEnded(
        iteration=context.number,
        command=without_secret_values(command),
        exit_code=finished.exit_code,
        error=finished.error,
        duration=finished.duration,
        output=finished.last_words(SHOWN),
        files=files,
        cleaned_up=finished.cleaned_up,
        is_shown=context.plan.values[SHOW_AI_OUTPUT],
    )


def _feedback(command: str, finished: Finished, left_out: LeftOut) -> str:
    """Return what the next prompt says about the failed check."""
    said = finished.last_words(SHOWN) or "(nothing)"
    absent = sorted({*left_out.secrets, *left_out.repositories})
    missing = f" Files that rooda never commits: {first_names(absent)}." if absent else ""
    return (
        "The last iteration signaled that the work is complete, but the check "
        f"`{command}` failed in a clean copy that has only the files of the commit: "
        f"{finished.error}. A file that the work needs may be ignored by git, or outside of the "
        f"repository.{missing} Make the check pass. The end of what it printed:\n\n{indented(said)}"
    )
