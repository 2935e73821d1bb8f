"""What the checks of the work tree find after programs ran in the sandbox."""

from rooda.base.event import Event, LogLevel, Message, say
from rooda.base.paths import first_names
from rooda.world.sandbox.tree_findings import Action, Finding

_DONE = {
    Action.REMOVED: "Removed from the work tree",
    Action.CLEARED: "Took away the set-uid and set-gid bits",
    Action.EXCLUDED: "Left out of everything that rooda does with git",
    Action.KEPT: "Kept as they are",
    Action.REFUSED: "Nothing is committed or pushed",
}


class UnsafeTree(Event, frozen=True):
    """Programs in the sandbox left what could act outside of it, or git has lost commits."""

    level = LogLevel.WARN
    raised = (LogLevel.ERROR, "the iteration fails: nothing is committed or pushed")
    iteration: int  # the number of the iteration
    finding: Finding  # the kind of thing that rooda found
    action: Action  # what rooda did: `removed`, `cleared`, `excluded`, `kept` or `refused`
    files: tuple[str, ...]  # their names, at most 100
    total: int  # the number of the files
    place: str = ""  # the folder with what was removed, relative to the workspace

    def is_raised(self) -> bool:
        return self.action is Action.REFUSED

    @property
    def names(self) -> str:
        """The first names."""
        return first_names(self.files, self.total)

    @property
    def sentence(self) -> str:
        """What rooda did, and why, without the names."""
        return f"{_DONE[self.action]}: {self.finding.what}, because {self.finding.danger}"

    def describe(self) -> Message:
        return say(
            self.sentence,
            files=self.names or None,
            iteration=self.iteration,
            place=self.place or None,
        )


class HardLinksFound(Event, frozen=True):
    """Files of the work tree have other names, perhaps outside of it: a sandbox can't see that."""

    level = LogLevel.WARN
    files: tuple[str, ...]  # the first names
    total: int  # the number of the files

    def describe(self) -> Message:
        return say(
            "Files of the work tree have more than one name (hard links), so a change of one "
            "may also change a file outside of the sandbox",
            files=first_names(self.files, self.total),
            suggestion="Copy them, or clone with --no-hardlinks, if the other names matter",
        )
