"""What happens to the files that the agent may not change (`protect.paths`)."""

from rooda.base.event import Event, LogLevel, Message, say
from rooda.base.paths import first_names

MOST_NAMED = 100  # files of one event
_LONGEST = 300  # characters of a name
_WORDS = {
    "restore": "Protected files were changed; rooda has restored them",
    "fail": "Protected files were changed; the iteration fails",
    "warn": "Protected files were changed",
}
_ENDS = {"restore": "restored", "fail": "left as they are", "warn": "allowed"}
_COMMIT = "The agent has committed its changes of {}: commit the restored files, or set git.commit"


class ProtectionStarted(Event, frozen=True):
    """rooda protects files in this run."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "a pattern matches no file, or files can't be protected any longer")
    files: int  # how many files are protected
    on_change: str  # `restore`, `fail` or `warn`
    unmatched: tuple[str, ...] = ()  # patterns that match no file
    lost: tuple[str, ...] = ()  # files that rooda can't protect any longer: unreadable or too large

    def is_raised(self) -> bool:
        return bool(self.unmatched or self.lost)

    def describe(self) -> Message:
        if self.lost:
            words = "These files can't be protected any longer: they are unreadable or too large"
        elif self.unmatched:
            words = "No file matches these patterns of protect.paths, so they protect nothing"
        else:
            words = "Files are protected"
        return say(
            words,
            patterns=first_names(self.unmatched) or None,
            names=first_names(self.lost) or None,
            files=self.files,
            on_change=self.on_change,
        )


class ProtectedChanged(Event, frozen=True):
    """Files that the agent may not change were changed, deleted or replaced."""

    level = LogLevel.WARN
    raised = (LogLevel.ERROR, "a file could not be restored")
    iteration: int  # the number of the iteration
    files: tuple[str, ...]  # the names of the files, at most 100
    total: int  # the number of the files
    action: str  # what rooda did: `restore`, `fail` or `warn`
    how: tuple[str, ...] = ()  # for each file what happened: `changed`, `deleted`, ...
    by: str = "agent"  # `agent`, or `verify`: it changed after the agent had ended
    failed: tuple[str, ...] = ()  # the files that could not be restored, each with the reason
    committed: tuple[str, ...] = ()  # the files whose changes the agent has committed
    is_committed_back: bool = False  # rooda's own commit will have the restored files

    def is_raised(self) -> bool:
        return bool(self.failed)

    @property
    def story(self) -> str:
        """The files and what happened to them, for people."""
        pairs = zip(self.files, self.how, strict=False)
        cut = ((name[:_LONGEST], how[:_LONGEST]) for name, how in pairs)
        shown = [name if how == "changed" else f"{name} ({how})" for name, how in cut]
        return first_names(shown, self.total)

    @property
    def end(self) -> str:
        """What came of it, in a few words."""
        return "could not be restored" if self.failed else _ENDS.get(self.action, "")

    def describe(self) -> Message:
        words = "Protected files could not be restored" if self.failed else _WORDS[self.action]
        advice = None
        if self.committed and self.action == "restore" and not self.is_committed_back:
            advice = _COMMIT.format(first_names(self.committed))
        return say(
            words,
            files=self.story,
            by=None if self.by == "agent" else self.by,
            error="; ".join(self.failed[:3]) or None,
            iteration=self.iteration,
            suggestion=advice,
        )
