"""Publish the work of an iteration: commit it, push it, and run the user's own command."""

import os
from collections.abc import Iterable, Sequence

from rooda.base.controls import one_line
from rooda.base.secrets.sensitive import without_secret_values
from rooda.loop.events.publish import PublishEnded
from rooda.loop.events.work import (
    CommitFailed,
    Committed,
    Pushed,
    PushFailed,
    RepositoriesLeftOut,
    SecretsLeftOut,
)
from rooda.loop.history import IterationHistory
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.publish.commit_message import with_work_of
from rooda.loop.publish.refusals import (
    MOST_NAMED,
    LargeFiles,
    Refusal,
    check_commits,
    refusal_of,
    refusal_of_stopped,
    words_about_commit,
    words_about_push,
    words_about_repositories,
)
from rooda.loop.publish.user_git import LeftOut, Staging, UserGit
from rooda.loop.services import Services
from rooda.loop.stages.verify import indented
from rooda.plan.plan import Plan
from rooda.plan.preflight.git import FINISH_IT
from rooda.plan.settings.settings import (
    GIT_ALLOW_SECRETS,
    GIT_COMMIT_TIMEOUT,
    GIT_PUBLISH,
    GIT_PUBLISH_TIMEOUT,
    GIT_PUSH_TIMEOUT,
    KILL_GRACE,
    VERIFY_FEEDBACK,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.git.branches import push_remote
from rooda.world.git.git import Git, GitError, GitStoppedError, unfinished
from rooda.world.git.new_files import NewSecrets, changed_in_index
from rooda.world.git.pin import Pin
from rooda.world.git.snapshots.tree_changes import relative
from rooda.world.git.work_tree import work_tree
from rooda.world.process.exits import TimedOut
from rooda.world.tools import Command, Finished


def whose_work(
    services: Services, numbers: tuple[int, ...], names: Iterable[str]
) -> tuple[int, ...]:
    """Return those of the iterations that changed one of these files; names are from the top.

    An iteration whose files are no longer in memory counts as well.
    """
    pin, tracker = services.pin, services.tracker
    if not numbers or pin is None or tracker is None:
        return numbers
    folder = os.path.relpath(os.path.realpath(tracker.root), pin.top)
    files = {relative("" if folder == "." else folder, name) for name in names}
    changed = ((number, _changed_by(services.history, number)) for number in numbers)
    return tuple(number for number, own in changed if not own or own & files)


def _changed_by(history: IterationHistory, number: int) -> set[str]:
    """Return the files that all attempts at an iteration changed."""
    found: set[str] = set()
    for one in history.filter(lambda each: each.number == number):
        if one.result is not None:
            result = one.result
            found.update(result.files_created, result.files_modified, result.files_deleted)
    return found


_START_THERE = "Start in a git repository, or turn git.commit off"
_CHANGED = "Look at .git in the work tree, repair it, then start a new run"
_CHECK_REMOTE = "Check `git remote -v`; if the address is right, start a new run"
_TRY_STATUS = "Check that `git status` works here"


class Publisher:
    """Git in the work tree of one plan, for one iteration."""

    def __init__(self, plan: Plan, number: int, services: Services) -> None:
        self._plan = plan
        self._number = number
        self._services = services
        self._git = UserGit(plan, services.tools, services.pin)
        self._pin = services.pin
        self._left_out = LeftOut()
        self.made: Committed | None = None

    def commit(
        self,
        outcome: Outcome,
        message: str,
        left_out: Sequence[str] = (),
        earlier: tuple[int, ...] = (),
    ) -> tuple[Outcome, str]:
        """Commit everything but secrets; return the outcome, and words for the next prompt.

        `left_out` are the files that are in no snapshot, relative to the working directory, and
        `earlier` the failed iterations that may have left work: the message names those
        whose work is in the commit.
        """
        large = LargeFiles(self._plan.working_dir, left_out)
        try:
            found = self._commit(message, large, earlier)
        except GitStoppedError as error:
            found = refusal_of_stopped(error)
        if isinstance(found, Refusal) and found.interrupted:
            return Outcome(Verdict.INTERRUPTED, reason=found.error), ""
        words = self._report_left_out()
        if isinstance(found, Refusal):
            self._services.emit(CommitFailed(self._number, found.error, found.suggestion))
            reason = f"commit failed: {one_line(found.error.splitlines()[0])}"
            evidence = one_line(found.error)
            outcome = Outcome(Verdict.FAILURE, FailureKind.COMMIT, reason, evidence=evidence)
            if self._plan.values[VERIFY_FEEDBACK]:
                failed = "The last iteration could not be committed. Reason:"
                words = f"{failed}\n\n{indented(found.error)}\n\n{words}".rstrip()
        elif found is not None:
            self.made = found
            self._services.emit(found)
        return outcome, words

    def _report_left_out(self) -> str:
        """Report what is not in the commit; return words for the next prompt.

        The run warns the user and the agent once of each file and of each repository.
        """
        secrets, repositories = sorted(self._left_out.secrets), sorted(self._left_out.repositories)
        new = self._services.reported.not_yet([*secrets, *repositories])
        words = []
        if secrets:
            named = [name for name in secrets if name in new]
            shown = tuple(secrets[:MOST_NAMED])
            self._services.emit(SecretsLeftOut(self._number, shown, len(secrets), bool(named)))
            words += [words_about_commit(named)] if named else []
        if named := [name for name in repositories if name in new]:
            self._services.emit(
                RepositoriesLeftOut(self._number, tuple(named[:MOST_NAMED]), len(named))
            )
            words.append(words_about_repositories(named))
        return "\n\n".join(words)

    def push(self, *, is_last: bool = False) -> str:
        """Push the branch, and report a failure; `is_last`: no later iteration can retry.

        Returns words for the next prompt. Without a repository there is nothing to do: the start
        of the run has reported that.
        """
        if self._pin is None:
            return ""
        try:
            found = self._push(self._pin)
        except GitStoppedError as error:
            found = refusal_of_stopped(error)
        if isinstance(found, Pushed):
            self._services.emit(found)
        elif not found.interrupted:
            self._services.emit(_push_failed(self._number, found, is_last=is_last))
            if found.secrets:
                return words_about_push(found.secrets)
        return ""

    def _commit(
        self, message: str, large: LargeFiles, earlier: tuple[int, ...]
    ) -> Committed | Refusal | None:
        """Stage and commit; None when there is nothing to commit."""
        if self._pin is None:
            return Refusal("the run did not start in a git repository", _START_THERE)
        limit = self._plan.values[GIT_COMMIT_TIMEOUT]
        refusal = self._obstacle(self._pin) or large.refusal(limit)
        refusal = refusal or self._refused_stage(self._pin, large)
        if refusal is not None:
            return refusal
        if self._nothing_is_staged():
            return None
        holds = self._whose_work_is_staged(earlier)
        message = with_work_of(message, holds)
        before = self._git.ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        # A line of the message may begin with `#`: it is text, whatever commit.cleanup says.
        commit = ("commit", "--file=-", "--cleanup=whitespace")
        done = self._git.patiently(*commit, stdin=message.encode("utf-8", "replace"))
        if done.passed:
            made = self._git.ask("rev-parse", "HEAD")
        elif not (made := self._commit_after(before, message)):
            return refusal_of(done)
        return Committed(self._number, made, message, holds)

    def _commit_after(self, before: str, message: str) -> str:
        """Return the commit that git made before it was stopped or failed; empty if it made none.

        Git runs the hook `post-commit` and its housekeeping after the commit. A hook may have added
        words to the message, or written another first line.
        """
        last = self._git.ask("log", "-1", "--no-show-signature", "--format=%H%n%P%n%B", "HEAD")
        made, _, rest = last.partition("\n")
        parent, _, words = rest.partition("\n")
        is_new = made != before and parent == before
        is_ours = any(line.strip() in words for line in message.splitlines() if line.strip())
        return made if is_new and is_ours else ""

    def _obstacle(self, pin: Pin) -> Refusal | None:
        """Return why nothing can be committed in this state of the repository."""
        if trouble := pin.trouble():
            return Refusal(f"the repository changed: {trouble}", self._repair(pin))
        if reason := unfinished(pin.git_dir) or self._unfinished_inside():
            return Refusal(reason, FINISH_IT)
        if not self._git.ask("symbolic-ref", "-q", "HEAD"):
            return Refusal(
                "HEAD is detached: a commit would belong to no branch",
                "Switch to a branch: git switch -c NAME",
            )
        return None

    def _unfinished_inside(self) -> str:
        sandbox = self._services.sandbox
        return "" if sandbox is None else sandbox.unfinished_git

    def _repair(self, pin: Pin) -> str:
        """Return the advice about a repository that changed during the run."""
        top = work_tree(self._plan.working_dir)
        if top != pin.top and top.is_relative_to(pin.top):
            return f"Move {top / '.git'} away: it was made during the run"
        return _CHANGED

    def _refused_stage(self, pin: Pin, large: LargeFiles) -> Refusal | None:
        """Stage the work; return why that failed, if it did."""
        try:
            staged = Staging(self._git, self._plan, self._services, pin).stage(self._left_out)
        except GitStoppedError:
            raise
        except GitError as error:
            return Refusal(f"rooda could not list the new files: {error}", _TRY_STATUS)
        if staged.passed:
            return None
        refusal = refusal_of(staged)
        return large.explain(refusal) if isinstance(staged.exit, TimedOut) else refusal

    def _push(self, pin: Pin) -> Pushed | Refusal:
        if trouble := pin.trouble():
            return Refusal(
                f"the repository changed: {trouble}; nothing was pushed", self._repair(pin)
            )
        branch = self._git.ask("symbolic-ref", "-q", "--short", "HEAD")
        if not branch:
            return Refusal(
                "HEAD is detached: there is no branch to push",
                "Switch to a branch: git switch -c NAME",
            )
        if self._services.sandbox is not None and branch != pin.branch:
            return Refusal(
                f"the branch is {branch} now, and the run started on {pin.branch or 'no branch'}; "
                "nothing was pushed",
                f"Push it by hand if you want it: git push origin {branch}",
            )
        upstream = self._git.ask("config", f"branch.{branch}.remote")
        remote = push_remote(self._git.ask, branch)
        if not remote:
            return Refusal("there is no remote to push to", "Add one: git remote add origin URL")
        timeout = self._plan.values[GIT_PUSH_TIMEOUT]
        if trouble := pin.remote_trouble(remote):
            return Refusal(f"{trouble}; nothing was pushed", _CHECK_REMOTE)
        checked = check_commits(self._git, pin, self._secrets(pin), remote, limit=timeout)
        if checked is not None:
            return checked
        upstream_flag = () if upstream else ("--set-upstream",)
        refspec = f"HEAD:refs/heads/{branch}"
        # A submodule has settings and hooks of its own, which the agent may have made.
        is_contained = self._services.sandbox is not None
        own_flag = ("--no-recurse-submodules",) if is_contained else ()
        push = ("push", *own_flag, *upstream_flag, "--", remote, refspec)
        done = self._git.run(*push, limit=timeout)
        if not done.passed:
            return refusal_of(done)
        return Pushed(self._number, remote, branch, self._git.ask("rev-parse", "HEAD"))

    def _secrets(self, pin: Pin) -> NewSecrets:
        return NewSecrets(Git(pin.top, self._services.tools), self._plan.values[GIT_ALLOW_SECRETS])

    def _whose_work_is_staged(self, earlier: tuple[int, ...]) -> tuple[int, ...]:
        if not earlier or self._pin is None:
            return ()
        try:
            staged = changed_in_index(Git(self._pin.top, self._services.tools))
        except GitStoppedError:
            raise
        except GitError:
            return earlier  # rooda can't tell
        return whose_work(self._services, earlier, staged)

    def _nothing_is_staged(self) -> bool:
        git = Git(self._plan.working_dir, self._services.tools)
        try:
            return git.ask("diff", "--cached", "--quiet", "--no-ext-diff") is not None
        except GitStoppedError:
            raise
        except GitError:
            return False  # then the commit says what is the matter


def _push_failed(number: int, refusal: Refusal, *, is_last: bool) -> PushFailed:
    advice = refusal.suggestion
    if is_last:
        advice = f"{advice}; then push by hand: git push"
    return PushFailed(number, refusal.error, advice, is_last, refusal.secrets)


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
