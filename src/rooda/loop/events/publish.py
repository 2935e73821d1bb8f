"""What the user's command that publishes an iteration does."""

from rooda.base.controls import one_line
from rooda.base.event import Event, LogLevel, Message, quoted, say
from rooda.base.times import format_duration
from rooda.loop.failure import PREVIEW
from rooda.world.process.events import NamedProcess, names


class PublishEnded(Event, frozen=True):
    """The user's command that publishes the work (`git.publish`) has ended."""

    level = LogLevel.DEBUG
    raised = (LogLevel.ERROR, "it refused the work: the run ends")
    iteration: int  # the number of the iteration
    command: str  # the command
    exit_code: int | None  # its exit code, unknown after a timeout
    error: str  # why it refused, or empty
    duration: float  # how many seconds it took
    output: str  # the end of its output
    commit: str | None = None  # the commit that it published
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that it left behind

    def is_raised(self) -> bool:
        return bool(self.error)

    def describe(self) -> Message:
        return say(
            "Not published" if self.error else "Published",
            error=self.error or None,
            command=self.command,
            elapsed=format_duration(self.duration),
            output=self.output[-PREVIEW:] or None if self.error else None,
            iteration=self.iteration,
            cleaned_up=names(self.cleaned_up),
        )

    def as_text(self) -> str | None:
        if not self.error:
            return super().as_text()
        line = f"ERROR: Not published: {one_line(self.error)} ({one_line(self.command)})"
        end = self.output[-PREVIEW:]
        return "\n".join([line, *(quoted("Last output", end) if end.strip() else ())])
