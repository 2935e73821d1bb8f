"""Where ralph's files are: its home in the project, and the project's root."""

from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

from rooda.workspace.work_tree import work_tree

HOME = ".ralph"
CONFIG = "config"
PLAN_FILE = "implementation_plan.md"
LOGS = "logs"


class Home(Struct, frozen=True):
    """The folder with ralph's config, prompts, plan and logs, and the project around it."""

    folder: Path
    project: Path

    @classmethod
    def find(cls, folder: Path) -> "Home":
        """From this folder up to the top of the work tree; without a `.ralph` the folder itself."""
        top = work_tree(folder)
        above = [folder, *folder.parents]
        within = above[: above.index(top) + 1] if top in above else [folder]
        project = next((one for one in within if (one / HOME).is_dir()), folder)
        home = project / HOME
        return cls(home if home.is_dir() else project, project)

    @property
    def config(self) -> Path:
        """The config file, whether or not it is there."""
        return self.folder / CONFIG

    @property
    def plan(self) -> Path:
        """The implementation plan, whether or not it is there."""
        return self.folder / PLAN_FILE

    def prompt(self, mode: str) -> Path:
        """The prompt template of a mode."""
        return self.folder / "prompts" / f"{mode}.md"

    def session_log(self, now: datetime) -> Path:
        """The log of a session that begins now; a second session in a second gets the next one."""
        path = self.folder / LOGS / f"session-{now:%Y%m%d-%H%M%S}.log"
        return self.session_log(now + timedelta(seconds=1)) if path.exists() else path
