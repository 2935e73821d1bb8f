"""The folder in which the canary sings: a git repository of its own, where there is git."""

import shutil
import tempfile
from pathlib import Path

from rooda.workspace.git import Git, GitError
from rooda.workspace.state import read_plain_file
from rooda.workspace.tools import Tools

_README = "# A scratch repository\n\nrooda made it to try an agent, and takes it away afterwards.\n"
_LONGEST = 4096  # of what an agent was to write
# The user's own habits with commits are no matter here.
_SETTINGS = {"commit.gpgSign": "false", "init.defaultBranch": "main"}


class Scratch:
    """A new folder; `trouble` says why it is no repository, where it is none."""

    def __init__(self, tools: Tools) -> None:
        """Make it. Raises OSError where there is no room for one."""
        self.folder = Path(tempfile.mkdtemp(prefix="rooda-canary-")).resolve()
        self.trouble = ""
        try:
            (self.folder / "README.md").write_text(_README, encoding="utf-8")
            git = Git(self.folder, tools, settings=_SETTINGS)
            git("init", "-q")
            git("add", "-A")
            git("commit", "-q", "-m", "A scratch repository")
        except GitError as error:
            self.trouble = str(error)
        except OSError:
            self.remove()
            raise

    def read(self, name: str) -> bytes | None:
        """What the agent wrote to a file, if it did; it may have put anything there."""
        try:
            return read_plain_file(self.folder / name, _LONGEST)
        except OSError:
            return None

    def remove(self) -> None:
        """Take it away."""
        shutil.rmtree(self.folder, ignore_errors=True)
