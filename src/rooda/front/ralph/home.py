"""Finds ralph's files: its home in the project, and the project's root."""

from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

from rooda.world.git.work_tree import folders_to_top

HOME = ".ralph"
CONFIG = "config"
PLAN_FILE = "implementation_plan.md"
LOGS = "logs"


class Home(Struct, frozen=True):
    """The folder with ralph's config, prompts, plan and logs, and the project around it."""

    folder: Path
    project: Path

    @classmethod
    def find(cls, folder: Path, beyond: Path | None = None) -> "Home":
        """Return the nearest home, from this folder up to the top of the work tree.

        Without a `.ralph` it is the folder itself. `beyond`: up to this folder, if it is above.
        """
        within = folders_to_top(folder, beyond)
        project = next((one for one in within if (one / HOME).is_dir()), folder)
        home = project / HOME
        return cls(home if home.is_dir() else project, project)

    @property
    def config(self) -> Path:
        """The config file, which may be missing."""
        return self.folder / CONFIG

    @property
    def plan(self) -> Path:
        """The implementation plan, which may be missing."""
        return self.folder / PLAN_FILE

    def prompt(self, mode: str) -> Path:
        """Return the prompt file of a mode."""
        return self.folder / "prompts" / f"{mode}.md"

    def session_log(self, now: datetime) -> Path:
        """Return the log of a session that begins now; of two in one second, one gets the next."""
        path = self.folder / LOGS / f"session-{now:%Y%m%d-%H%M%S}.log"
        return self.session_log(now + timedelta(seconds=1)) if path.exists() else path
