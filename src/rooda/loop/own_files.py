"""Files that rooda writes itself: they may lie in the work tree, and are nobody's work."""

from pathlib import Path

from msgspec import Struct

from rooda.config.plan import Plan
from rooda.config.settings import LOG_FILE, SESSION_LOG
from rooda.text.paths import glob_of_name, glob_of_series
from rooda.workspace.ours import redirected_to


class OwnFile(Struct, frozen=True):
    """One of them; with `has_kin`, those that differ in their digits alone are ours as well."""

    path: Path
    has_kin: bool = False

    @property
    def pattern(self) -> str:
        """What fits its name and those of its kin."""
        return glob_of_series(str(self.path)) if self.has_kin else glob_of_name(str(self.path))

    def for_git(self, top: str) -> tuple[str, str] | None:
        """How git should read a name, and the name, from the top of a work tree that has it."""
        if not self.path.is_relative_to(top):
            return None
        name = str(self.path.relative_to(top))
        return ("glob", glob_of_series(name)) if self.has_kin else ("literal", name)


def own_files(plan: Plan) -> list[OwnFile]:
    """What a run of this plan writes beside its state folder."""
    log, session = plan.values[LOG_FILE], plan.values[SESSION_LOG]
    own = [OwnFile(path) for path in redirected_to()]
    if log is not None:
        own.append(OwnFile(Path(log).resolve()))
    if session is not None:
        own.append(OwnFile(Path(session).resolve(), has_kin=True))
    return own
