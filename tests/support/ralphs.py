"""A git repository with `.ralph/`, in which tests run the installed `ralph` as a user does.

The scripted agents and their marker files are outside of the work tree, as in `gitwork`.
"""

import re
import shlex
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rooda.front.ralph import skeleton
from support import rings
from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.in_process import run_in_process
from support.workspace import Running, Workspace

RALPH = Path(sysconfig.get_path("scripts")) / "ralph"
COMPLETE = "echo '<promise>COMPLETE</promise>'"
PLAN = """\
# Implementation plan

## Task 1: Read the file
Status: open
Spec: specs/reader.md

## Task 2: Write the file
Status: open
"""


@dataclass
class Ralphs(GitWork):
    """A repository of a user of ralph; `ralph_home` is the folder of ralph's files."""

    ralph_home: str = ".ralph"

    def begin_ralph(
        self, *args: str, env: Mapping[str, str | None] | None = None, within: str = "."
    ) -> Running:
        """Start ralph in a folder of the project, in the background."""
        process = subprocess.Popen(
            [str(RALPH), *args],
            cwd=self.path / within,
            env=self.environ(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        running = Running(process, time.monotonic())
        self.started.append(running)
        return running

    def ralph(
        self, *args: str, env: Mapping[str, str | None] | None = None, within: str = "."
    ) -> Finished:
        """Run ralph to its end: in this process in the first ring, else as installed."""
        if rings.is_first():
            return run_in_process("ralph", args, self.path / within, self.environ(env))
        return self.begin_ralph(*args, env=env, within=within).finish(30)

    def in_home(self, name: str, content: str) -> Path:
        return self.write(f"{self.ralph_home}/{name}", content)

    def plan(self, content: str = PLAN) -> None:
        """Write an implementation plan and commit it."""
        self.in_home("implementation_plan.md", content)
        self.commit("the plan")

    def agent_does(self, *bodies: str, **config: str | int) -> None:
        """Let the n-th start of the agent save the prompt and run the n-th body;

        the last repeats.
        """
        prompts = shlex.quote(str(self.tools))
        kept = (f"cat > {prompts}/prompt.$n; {body}" for body in bodies)
        self.configure(AGENT_CLI=self.agents(*kept), **config)

    def configure(self, **config: str | int) -> None:
        """Write ralph's config and commit it, so that it is no change of an iteration."""
        lines = (f"{key}={shlex.quote(str(value))}\n" for key, value in config.items())
        self.in_home("config", "".join(lines))
        self.commit("the config")

    def prompts(self) -> list[str]:
        """Return the prompts of the agent, one for each start."""
        return [(self.tools / f"prompt.{n}").read_text() for n in range(1, self.starts + 1)]

    @property
    def logs(self) -> list[Path]:
        return sorted((self.path / self.ralph_home / "logs").glob("*"))

    def log(self) -> str:
        """Return the newest session log without dates, durations and hashes."""
        text = self.logs[-1].read_text()
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", text)
        text = re.sub(r"(?<=commit=)\w+", "HASH", text)
        return re.sub(r"(Duration: | in | after )[\d.]+s", r"\1TIME", text)

    def commits(self) -> list[str]:
        """Return the subjects of ralph's own commits."""
        own = ("plan: ", "build: ", "prompt: ")
        return [subject for subject in self.subjects() if subject.startswith(own)]


@contextmanager
def ralph_work(workspace: Workspace, ralph_home: str = ".ralph") -> Iterator[Ralphs]:
    """Yield a repository in which `ralph init` was run and committed.

    The home may be the project: `.`.
    """
    with git_work(workspace) as git:
        found = Ralphs(git.path, git.home, git.env, git.started, ralph_home)
        skeleton.write(found.path, "" if ralph_home == "." else ralph_home)
        found.commit("ralph init")
        yield found
