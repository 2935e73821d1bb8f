"""A git repository with a `.ralph/` in it, in which the installed `ralph` is run as a user does.

The scripted agents and their signs live outside of the work tree, as in `gitwork`.
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

from rooda.ralph import skeleton
from support.gitwork import GitWork, git_work
from support.workspace import Finished, Running, Workspace

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
    """The repository of somebody who works with ralph; `ralph_home` has its files."""

    ralph_home: str = ".ralph"

    def begin_ralph(
        self, *args: str, env: Mapping[str, str | None] | None = None, within: str = "."
    ) -> Running:
        """Start it in a folder of the project, and let the test do something meanwhile."""
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
        """Run it to its end."""
        return self.begin_ralph(*args, env=env, within=within).finish(30)

    def in_home(self, name: str, content: str) -> Path:
        return self.write(f"{self.ralph_home}/{name}", content)

    def plan(self, content: str = PLAN) -> None:
        """There is an implementation plan, and it is committed."""
        self.in_home("implementation_plan.md", content)
        self.commit("the plan")

    def agent_does(self, *bodies: str, **config: str | int) -> None:
        """Its n-th start keeps the prompt and runs the n-th body; the last one stays."""
        prompts = shlex.quote(str(self.tools))
        kept = (f"cat > {prompts}/prompt.$n; {body}" for body in bodies)
        self.configure(AGENT_CLI=self.agents(*kept), **config)

    def configure(self, **config: str | int) -> None:
        """Write ralph's config, and commit it so that it is nobody's change."""
        lines = (f"{key}={shlex.quote(str(value))}\n" for key, value in config.items())
        self.in_home("config", "".join(lines))
        self.commit("the config")

    def prompts(self) -> list[str]:
        """What the agent was asked, start by start."""
        return [(self.tools / f"prompt.{n}").read_text() for n in range(1, self.starts + 1)]

    @property
    def logs(self) -> list[Path]:
        return sorted((self.path / self.ralph_home / "logs").glob("*"))

    def log(self) -> str:
        """The newest session log, without what differs from run to run."""
        text = self.logs[-1].read_text()
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", text)
        text = re.sub(r"(?<=commit=)\w+", "HASH", text)
        return re.sub(r"(Duration: | in | after )[\d.]+s", r"\1TIME", text)

    def commits(self) -> list[str]:
        """The subjects of what ralph has committed."""
        own = ("plan: ", "build: ", "prompt: ")
        return [subject for subject in self.subjects() if subject.startswith(own)]


@contextmanager
def ralph_work(workspace: Workspace, ralph_home: str = ".ralph") -> Iterator[Ralphs]:
    """A repository with what `ralph init` writes, committed. The home may be the project: `.`."""
    with git_work(workspace) as git:
        found = Ralphs(git.path, git.home, git.env, git.started, ralph_home)
        skeleton.write(found.path, "" if ralph_home == "." else ralph_home)
        found.commit("ralph init")
        yield found
