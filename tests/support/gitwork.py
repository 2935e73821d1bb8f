"""A work folder that is a git repository, with a bare remote next to it.

The agents and the config are outside of the repository, so that only the test itself changes the
work tree.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rooda.record.json_objects import iteration_object, last_attempts, run_object
from rooda.record.reader import RecordReader
from support.finished import Finished
from support.states import state_of
from support.workspace import PROCEDURE, Running, Workspace

_USER = """\
[user]
    name = A User
    email = user@example.org
[init]
    defaultBranch = main
[protocol "file"]
    allow = always
[advice]
    detachedHead = false
[gc]
    auto = 0
"""
# Variables of the machine that would change what git or gpg does in a test.
_DROPPED = ("EMAIL", "GPG_TTY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


@dataclass
class GitWork(Workspace):
    """The repository, its remote, and the record of the runs."""

    started: list[Running] = field(default_factory=list)

    @property
    def tools(self) -> Path:
        """The folder of scripts and marker files, outside of the work tree."""
        return self.home / "tools"

    @property
    def remote(self) -> Path:
        return self.path.parent / "remote.git"

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Return what git prints for the user."""
        done = self.try_git(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip("\n")

    def try_git(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.path,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def commit(self, message: str = "by hand", cwd: Path | None = None) -> str:
        """Commit everything as the user would. Return the id of the commit."""
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def git_hook(self, name: str, body: str) -> None:
        path = self.path / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def script(self, name: str, body: str) -> str:
        """Write a program outside of the work tree. Return its path, quoted for a shell."""
        return self.agent(body, name)

    def agent(self, body: str, name: str = "agent.sh") -> str:
        return super().agent(body, str(self.tools / name))

    def python_agent(self, body: str, name: str = "agent.py") -> str:
        return super().python_agent(body, str(self.tools / name))

    @property
    def _count(self) -> str:
        return shlex.quote(str(self.tools / "starts"))

    @property
    def starts(self) -> int:
        file = self.tools / "starts"
        return int(file.read_text()) if file.exists() else 0

    def marker(self, name: str) -> Path:
        """Return the path of a marker file outside of the work tree, for scripts of a test."""
        return self.tools / name

    def settings(self, **loop: Any) -> None:
        """Write the user's `loop` section as JSON, which is also YAML."""
        self.global_config(f"loop: {json.dumps(loop)}\n{PROCEDURE}")

    def counted(self, command: str) -> str:
        """Return a check that counts its runs in a file."""
        return f"echo . >> {self.marker('checks')}; {command}"

    def checks(self) -> int:
        """Return how often the counted check ran."""
        file = self.marker("checks")
        return len(file.read_text().splitlines()) if file.exists() else 0

    def _args(self, command: str, args: tuple[str, ...]) -> list[str]:
        if not (self.home / ".config/rooda/rooda-config.yml").exists():
            self.settings()
        return ["work", "--ai-cmd", command, *args]

    def work(
        self, command: str, *args: str, env: Mapping[str, str | None] | None = None
    ) -> Finished:
        return self.rooda(*self._args(command, args), env=env)

    def begin(
        self, command: str, *args: str, env: Mapping[str, str | None] | None = None
    ) -> Running:
        """Start the same run in the background."""
        return self.start(*self._args(command, args), env=env)

    def start(
        self, *args: str, env: Mapping[str, str | None] | None = None, stdin: str | None = None
    ) -> Running:
        running = super().start(*args, env=env, stdin=stdin)
        self.started.append(running)
        return running

    def clear(self) -> None:
        """Kill the runs that a failed test left; the warden then stops their process trees."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.kill()
                running.process.communicate()

    def subjects(self, repository: Path | None = None) -> list[str]:
        """Return the first lines of the commits on `main`, oldest first."""
        there = repository or self.path
        return self.git("log", "--reverse", "--format=%s", "main", "--", cwd=there).splitlines()

    def tracked(self) -> list[str]:
        """Return the files of the last commit."""
        return self.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()

    @property
    def reader(self) -> RecordReader:
        return RecordReader(state_of(self.path))

    def run_record(self) -> dict[str, Any]:
        """Return the last run as `rooda show --json` prints it, without its iterations."""
        return run_object(self.reader.run())

    def record(self) -> list[dict[str, Any]]:
        """Return the iterations of the last run as `rooda show --json` prints them."""
        rows = self.reader.iterations(self.reader.run().run)
        found = [iteration_object(row, state_of(self.path)) for row in last_attempts(rows)]
        shown: list[dict[str, Any]] = json.loads(json.dumps(found))
        return shown


@contextmanager
def git_work(workspace: Workspace) -> Iterator[GitWork]:
    """Yield a repository with one commit that is not pushed yet."""
    unset: dict[str, Any] = dict.fromkeys(_DROPPED)
    env = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(workspace.path.parent)}
    work = GitWork(workspace.path, workspace.home, {**workspace.env, **unset, **env})
    (work.home / ".gitconfig").write_text(_USER)
    work.tools.mkdir()
    work.git("init", "-q")
    work.git("init", "-q", "--bare", str(work.remote))
    work.git("remote", "add", "origin", str(work.remote))
    work.write("README", "the project\n")
    work.commit("the beginning")
    try:
        yield work
    finally:
        work.clear()
