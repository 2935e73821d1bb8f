"""What rooda finds out with the user's checks: flaky ones, lost tests, trouble in a clean copy."""

from rooda.base.controls import one_line
from rooda.base.event import Event, LogLevel, Message, say
from rooda.base.times import format_duration
from rooda.loop.events.work import last_output, took_words
from rooda.loop.failure import PREVIEW
from rooda.world.process.events import NamedProcess, names
from rooda.world.testresults.census import LossKind, TestLoss


class VerifyRetried(Event, frozen=True):
    """A try of the user's check failed, and rooda repeats it (`verify.retries`)."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration; 0 before the first one
    attempt: int  # which try failed, counted from 1
    tries: int  # how many tries there are at most
    command: str  # the command of the check
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed
    duration: float  # how many seconds it took
    output: str  # the end of its output

    def describe(self) -> Message:
        return say(
            f"Verify failed on try {self.attempt} of {self.tries}, trying again",
            error=self.error,
            command=self.command,
            elapsed=format_duration(self.duration),
            iteration=self.iteration,
            output=self.output[-PREVIEW:] or None,
        )

    def as_text(self) -> str:
        took = took_words(self.error, self.duration)
        words = f"Verify failed on try {self.attempt} of {self.tries}, trying again"
        return f"WARN: {words}: {one_line(self.error)}{took} ({one_line(self.command)})"


class TestsLost(Event, frozen=True):
    """Tests of the last verify are gone, or are skipped now."""

    __test__ = False  # pytest would collect the class because of its name

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "there are fewer tests, more skipped ones, or those of another runner")
    iteration: int  # the number of the iteration
    loss: TestLoss  # how many tests there were and are, and the first names, where they are known
    is_failure: bool = False  # the iteration failed because of it (`verify.shrink: fail`)

    def is_raised(self) -> bool:
        return self.loss.kind is not LossKind.REPLACED

    def describe(self) -> Message:
        return say(
            _TITLES[self.loss.kind],
            tests=self.loss.words,
            shrink="fail" if self.is_failure else "warn",
            iteration=self.iteration,
        )

    def as_text(self) -> str:
        prefix = "WARN: " if self.is_raised() else "DEBUG: "
        return f"{prefix}{_TITLES[self.loss.kind]}: {one_line(self.loss.words)}"


_TITLES = {
    LossKind.FEWER: "Verify passed with fewer tests",
    LossKind.REPLACED: "Tests were renamed or replaced",
    LossKind.OTHER_RUNNER: "Verify passed with another test runner",
}


class DoneCheckEnded(Event, frozen=True):
    """The user's command that says whether the work is done (`done_when`) has ended."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "its exit code is neither 0 (done) nor 1 (not yet)")
    iteration: int  # the number of the iteration; 0 before the first one
    command: str  # the command
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed, or empty
    duration: float  # how many seconds it took
    output: str  # the end of its output
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind
    is_shown: bool = False  # the user saw the output while the command ran (`--verbose`)

    def is_raised(self) -> bool:
        return self.exit_code not in (0, 1)

    def describe(self) -> Message:
        return say(
            self._title(),
            error=self.error or None,
            command=self.command,
            elapsed=format_duration(self.duration),
            iteration=self.iteration,
            output=self.output[-PREVIEW:] or None if self.is_raised() else None,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str:
        if not self.is_raised():
            return f"DEBUG: {self._title()} ({one_line(self.command)})"
        took = took_words(self.error, self.duration)
        line = f"WARN: {self._title()}: {one_line(self.error)}{took} ({one_line(self.command)})"
        return "\n".join([line, *last_output(self.output, is_shown=self.is_shown)])

    def _title(self) -> str:
        if self.is_raised():
            return "The command of done_when has trouble, so the work counts as not done"
        return "The work is not done yet" if self.exit_code else "The work is done"


class CleanCheckEnded(Event, frozen=True):
    """The check in a clean copy of what a commit would contain (`verify.clean`) has ended."""

    raised = (LogLevel.WARN, "the check failed")
    iteration: int  # the number of the iteration
    command: str  # the command of the check
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it failed, or empty
    duration: float  # how many seconds it took, without the copy
    output: str  # the end of its output
    files: int  # how many files the copy had
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind
    is_shown: bool = False  # the user saw the output while the check ran (`--verbose`)

    def is_raised(self) -> bool:
        return bool(self.error)

    def describe(self) -> Message:
        return say(
            "The check in a clean copy failed" if self.error else "Verified in a clean copy",
            error=self.error or None,
            command=self.command,
            elapsed=format_duration(self.duration),
            iteration=self.iteration,
            files=self.files,
            output=self.output[-PREVIEW:] or None if self.error else None,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str | None:
        if not self.error:
            took = format_duration(self.duration)
            return f"Verified in a clean copy after {took} ({one_line(self.command)})"
        took = took_words(self.error, self.duration)
        line = f"WARN: The check in a clean copy failed: {one_line(self.error)}{took}"
        line += f" ({one_line(self.command)})"
        return "\n".join([line, *last_output(self.output, is_shown=self.is_shown)])
