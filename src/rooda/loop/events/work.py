"""What rooda itself does with the work tree: snapshots, hooks, verify, commits, pushes."""

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.event import Event, LogLevel, Message, advised, quoted, say
from rooda.base.paths import first_names
from rooda.base.secrets.sensitive import IGNORE_OR_ALLOW
from rooda.base.times import format_duration
from rooda.loop.events.iteration_detail import LOGGED_COMMIT
from rooda.loop.failure import PREVIEW
from rooda.world.process.events import NamedProcess, Stream, names
from rooda.world.testresults.results import TestResults

_SHOWN = 5  # files by name
AS_BEFORE = "in the same way as before the first iteration"
ADVICE_ON_REPOSITORIES = (
    "Delete the .git in them (a linked work tree: git worktree remove), or add them to .gitignore"
)


class SnapshotStarted(Event, frozen=True):
    """The agent has ended, and rooda looks at the work tree."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration

    def describe(self) -> Message:
        return say("Looking at the work tree", iteration=self.iteration)


class SnapshotTaken(Event, frozen=True):
    """rooda looked at the work tree, and with git kept it as a commit."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration; 0 before the first one
    tree: str  # the name of the tree
    commit: str | None  # the commit that keeps it
    head: str | None  # the commit that HEAD stands on
    left_out: tuple[str, ...] = ()  # the files that the snapshot does not have

    def describe(self) -> Message:
        return say(
            "Work tree seen",
            tree=self.tree[:LOGGED_COMMIT],
            snapshot=self.commit and self.commit[:LOGGED_COMMIT],
            iteration=self.iteration,
        )


class FilesLeftOut(Event, frozen=True):
    """These files are in no snapshot: they are too large, or rooda can't read them."""

    iteration: int  # the number of the iteration
    files: tuple[str, ...]  # the names of the files

    def describe(self) -> Message:
        shown = ", ".join(self.files[:_SHOWN])
        more = f", {len(self.files) - _SHOWN} more" if len(self.files) > _SHOWN else ""
        return say(
            "Left out of the snapshots, because they are too large or can't be read",
            files=shown + more,
            iteration=self.iteration,
        )


class ChangesUnknown(Event, frozen=True):
    """rooda could not determine which files changed."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "it is the first time for this reason")
    iteration: int  # the number of the iteration
    error: str  # why
    is_new: bool = True  # the scan before did not fail for the same reason

    def is_raised(self) -> bool:
        return self.is_new

    def describe(self) -> Message:
        return say(
            "Could not determine which files changed",
            error=self.error,
            iteration=self.iteration,
        )


class SnapshotTrouble(Event, frozen=True):
    """Something is wrong with the snapshots; rooda still knows what changed."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    error: str  # what is wrong

    def describe(self) -> Message:
        return say("Trouble with the snapshots", error=self.error, iteration=self.iteration)


class CommandStarted(Event, frozen=True):
    """rooda runs a command of its own or of the user: a hook, `verify`, git."""

    level = LogLevel.DEBUG
    what: str  # the command
    pid: int  # the pid of the command
    started: float  # when it was started, in the system's unit
    command: str = ""  # the command line of the user; empty for a command of rooda

    def describe(self) -> Message:
        return say("Command started", command=self.what, pid=self.pid)


class CommandOutput(Event, frozen=True):
    """A command of the user printed something; sent only if the user wants to see it."""

    level = LogLevel.DEBUG
    is_logged = False
    stream: Stream  # `stdout` or `stderr`
    data: bytes  # what it printed


class HookEnded(Event, frozen=True):
    """A hook has ended."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "the hook failed")
    hook: str  # when it runs: `pre_iteration`, `post_iteration`, ...
    command: str  # the command of the hook
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed, or empty
    on_error: str  # what a failure means: `abort`, `fail`, `skip`, ...
    duration: float  # how many seconds it took
    output: str  # the end of its output
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind

    def is_raised(self) -> bool:
        return bool(self.error)

    def describe(self) -> Message:
        return say(
            f"The {self.hook} hook failed" if self.error else f"The {self.hook} hook is done",
            error=self.error or None,
            command=self.command,
            elapsed=format_duration(self.duration),
            on_error=self.on_error if self.error else None,
            output=self.output[-PREVIEW:] or None if self.error else None,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str | None:
        if not self.error:
            return super().as_text()
        took, error = took_words(self.error, self.duration), one_line(self.error)
        hook, command = one_line(self.hook), one_line(self.command)
        line = f"WARN: The {hook} hook failed: {error}{took} ({command})"
        return "\n".join([line, *last_output(self.output, is_shown=False)])


class FailedTry(Struct, frozen=True):
    """A try of the check that failed and was repeated."""

    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed
    duration: float  # how many seconds it took


class VerifyEnded(Event, frozen=True):
    """The user's check (`verify`) has ended, after its last try."""

    text_level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "the check failed, or is flaky")
    iteration: int  # the number of the iteration
    command: str  # the command of the check
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed, or empty
    duration: float  # how many seconds it took
    output: str  # the end of its output
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind
    is_shown: bool = False  # the user saw the output while the check ran (`--verbose`)
    failed_tries: tuple[FailedTry, ...] = ()  # the tries before this one (`verify.retries`)
    is_flaky: bool = False  # the check passed, but not on its first try
    as_before: bool = False  # it failed in the same way before the first iteration

    def is_raised(self) -> bool:
        return bool(self.error) or self.is_flaky

    @property
    def tries(self) -> int:
        """How often the check ran."""
        return len(self.failed_tries) + 1

    def describe(self) -> Message:
        verified = (
            f"Verify is flaky: it passed on try {self.tries}" if self.is_flaky else "Verified"
        )
        return say(
            "Verify failed" if self.error else verified,
            error=self.error or None,
            tries=self.tries if self.error and self.failed_tries else None,
            command=self.command,
            elapsed=format_duration(self.duration),
            iteration=self.iteration,
            output=self.output[-PREVIEW:] or None if self.error else None,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str | None:
        if not self.error:
            return super().as_text()
        took = took_words(self.error, self.duration)
        error, command = one_line(self.error), one_line(self.command)
        tries = f" in {self.tries} tries, the last one" if self.failed_tries else ""
        line = f"WARN: Verify failed{tries}: {error}{took} ({command})"
        if self.as_before:
            line += f", {AS_BEFORE}"
        return "\n".join([line, *last_output(self.output, is_shown=self.is_shown)])


class BaselineEnded(Event, frozen=True):
    """The user's check (`verify`) has run once before the first iteration."""

    raised = (LogLevel.WARN, "the check failed")
    command: str  # the command of the check
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed, or empty
    duration: float  # how many seconds it took
    output: str  # the end of its output
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind
    tests: TestResults | None = None  # the tests that it ran, if rooda can read them
    cannot_run: bool = False  # a program, target, script, module or test that it needs is missing
    is_shown: bool = False  # the user saw the output while the check ran (`--verbose`)
    obstacle: str = ""  # why the check can't run
    ends_run: bool = False  # no agent starts (`verify.baseline`)
    digest: str = ""  # of how it failed: a later check that fails in the same way has the same

    def is_raised(self) -> bool:
        return bool(self.error)

    @property
    def verdict(self) -> str:
        """What the check says about the work tree before the first iteration."""
        if self.cannot_run:
            return "can't run"
        return "fails" if self.error else "passes"

    @property
    def counts(self) -> str:
        """How many tests passed; empty if rooda could read none."""
        tests = self.tests
        return f"{tests.passed} of {tests.total} tests passed" if tests is not None else ""

    def describe(self) -> Message:
        return say(
            f"Verify {self.verdict} before the first iteration",
            error=self.error or None,
            obstacle=self.obstacle or None,
            command=self.command,
            elapsed=format_duration(self.duration),
            tests=self.counts or None,
            output=self.output[-PREVIEW:] or None if self.error else None,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str | None:
        counts = f", {self.counts}" if self.counts else ""
        words = f"Verify {self.verdict} before the first iteration"
        took = took_words(self.error, self.duration)
        about = f"{took} ({one_line(self.command)}){counts}"
        if not self.error:
            return f"{words}{about}"
        line = f"WARN: {words}: {one_line(self.error)}{about}"
        if self.obstacle:
            line += f": {one_line(self.obstacle)}"
        if not self.ends_run:
            line += "; the run continues"
        return "\n".join([line, *last_output(self.output, is_shown=self.is_shown)])


class BranchSwitched(Event, frozen=True):
    """rooda created the branch of `git.branch`, or switched to it, before the first iteration."""

    branch: str  # the name of the branch
    created: bool  # the branch is new
    before: str | None  # the branch before; null if HEAD was detached

    def describe(self) -> Message:
        words = "Created a branch" if self.created else "Switched to a branch"
        return say(words, branch=self.branch, before=self.before)


class Committed(Event, frozen=True):
    """rooda committed the work of the iteration."""

    text_level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    commit: str  # the name of the commit
    message: str  # the message of the commit
    holds: tuple[int, ...] = ()  # earlier failed iterations whose work is in it

    def describe(self) -> Message:
        first = self.message.splitlines()[0] if self.message else ""
        return say(
            "Committed", commit=self.commit[:LOGGED_COMMIT], message=first, iteration=self.iteration
        )


class CommitFailed(Event, frozen=True):
    """rooda could not commit the work; it is still in the work tree."""

    level = LogLevel.ERROR
    iteration: int  # the number of the iteration
    error: str  # what git said
    suggestion: str  # what to do

    def describe(self) -> Message:
        return say(
            "The work could not be committed; it is still in the work tree",
            error=self.error,
            iteration=self.iteration,
            suggestion=self.suggestion,
        )

    def as_text(self) -> str:
        line = "ERROR: The work could not be committed; it is still in the work tree"
        return "\n".join([line, *_quoted_with_advice(self.error, self.suggestion)])


class SecretsLeftOut(Event, frozen=True):
    """New files look like secrets: rooda did not commit them."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "the run has not named one of them before")
    iteration: int  # the number of the iteration
    files: tuple[str, ...]  # the names of the files, at most 100
    total: int  # the number of the files
    is_new: bool = True  # the run has not named one of them before

    def is_raised(self) -> bool:
        return self.is_new

    def describe(self) -> Message:
        return say(
            "Not committed, because these new files look like secrets",
            files=first_names(self.files, self.total),
            iteration=self.iteration,
            suggestion=IGNORE_OR_ALLOW if self.is_new else None,
        )


class RepositoriesLeftOut(Event, frozen=True):
    """New folders are git repositories of their own: rooda did not commit them."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    folders: tuple[str, ...]  # the names of the folders, at most 100
    total: int  # the number of the folders

    def describe(self) -> Message:
        return say(
            "Not committed, because these folders are git repositories of their own",
            folders=first_names(self.folders, self.total),
            iteration=self.iteration,
            suggestion=ADVICE_ON_REPOSITORIES,
        )


class UserFilesChanged(Event, frozen=True):
    """Files changed while no agent worked: they are the user's, and commits leave them out."""

    level = LogLevel.WARN
    iteration: int  # the one after the wait, or the one that was pushed or paused with Ctrl+Z
    files: tuple[str, ...]  # the names of the files, at most 100
    total: int  # the number of the files

    def describe(self) -> Message:
        return say(
            "Changed while no agent worked, so commits leave them out until the agent changes them",
            files=first_names(self.files, self.total),
            iteration=self.iteration,
        )


class Pushed(Event, frozen=True):
    """rooda pushed the branch."""

    text_level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    remote: str  # the remote that it pushed to
    branch: str  # the branch that it pushed
    commit: str  # the commit that the branch stands on

    def describe(self) -> Message:
        return say(
            "Pushed",
            branch=self.branch,
            remote=self.remote,
            commit=self.commit[:LOGGED_COMMIT],
            iteration=self.iteration,
        )


class PushFailed(Event, frozen=True):
    """rooda could not push; it retries after the next iteration, if there is one."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    error: str  # what git said
    suggestion: str  # what to do
    is_last: bool = False  # the run ends after this iteration, so rooda does not retry
    secrets: tuple[str, ...] = ()  # new files in the commits that look like secrets, at most 100

    @property
    def _words(self) -> str:
        end = "this was the last iteration" if self.is_last else "the next iteration tries again"
        return f"Push failed; {end}"

    def describe(self) -> Message:
        return say(
            self._words,
            error=self.error,
            iteration=self.iteration,
            suggestion=self.suggestion,
        )

    def as_text(self) -> str:
        said = _quoted_with_advice(self.error, self.suggestion)
        return "\n".join([f"WARN: {self._words}", *said])


def _quoted_with_advice(error: str, suggestion: str) -> list[str]:
    return [*quoted("Reason", _end(error)), advised(suggestion)]


def last_output(output: str, *, is_shown: bool) -> list[str]:
    """Return the end of what a check printed, unless the user has just seen it."""
    if not output.strip():
        return ["  Output: none"]
    return [] if is_shown else quoted("Last output", _end(output))


def took_words(error: str, seconds: float) -> str:
    """Return ` after 2.0s`, unless the error itself says how long the command ran."""
    return "" if " after " in error else f" after {format_duration(seconds)}"


def _end(text: str) -> str:
    """Return the last lines of a text; a single long line loses its beginning."""
    end = text[-PREVIEW:]
    if len(end) == len(text):
        return end
    first, _, rest = end.partition("\n")
    return rest if rest.strip() else first
