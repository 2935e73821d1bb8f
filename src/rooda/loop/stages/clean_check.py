"""The stage that proves SUCCESS in a clean copy of what a commit would contain (`verify.clean`)."""

import contextlib
import os
from collections.abc import Iterator

from rooda.base.paths import first_names
from rooda.base.secrets.sensitive import without_secret_values
from rooda.base.times import format_duration
from rooda.loop.context import IterationContext
from rooda.loop.events.verify import CleanCheckEnded
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.publish.staging import LeftOut, Staging
from rooda.loop.publish.user_git import UserGit
from rooda.loop.services import Services
from rooda.loop.stages.verify import SHOWN, indented
from rooda.loop.waiting import note_user_changes
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    KILL_GRACE,
    SHOW_AI_OUTPUT,
    VERIFY_CLEAN,
    VERIFY_FEEDBACK,
    VERIFY_TIMEOUT,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.files.beneath import Beneath
from rooda.world.git.clean_copy import clean_folder, copy_files
from rooda.world.git.git import Git, GitError, GitInterruptedError
from rooda.world.git.pin import Pin
from rooda.world.state.folder import CLEAN_CHECK, keep_file
from rooda.world.tools import Command, Finished

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
        finished, files = _run(plan, services, command, left_out)
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


def _run(plan: Plan, services: Services, command: str, left_out: LeftOut) -> tuple[Finished, int]:
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
