"""Runs one agent program through rooda in its own work folder, against a scripted API."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from real_agents.programs import KEY_NAME, Program, environment
from real_agents.scripted_api import ScriptedApi
from support.finished import Finished
from support.recorded import asked
from support.states import own_state_home
from support.workspace import Running, Workspace

# A program usually starts within seconds, but takes longer on a busy machine.
_RUN_TIMEOUT = 100.0
SANDBOXED = "-in-a-sandbox"
AT_ONCE = ("--failure-threshold", "1")


def only(*names: str) -> pytest.MarkDecorator:
    """Run a test only with these programs; add SANDBOXED to a name for its run in a sandbox."""
    return pytest.mark.parametrize("bench", names, indirect=True)


@dataclass(frozen=True)
class Ran:
    """The output of a run, and its record."""

    done: Finished
    run: dict[str, Any]

    @property
    def iterations(self) -> list[dict[str, Any]]:
        """All iterations, oldest first."""
        found: list[dict[str, Any]] = self.run["iterations"]
        return found

    @property
    def only(self) -> dict[str, Any]:
        """The only iteration."""
        assert len(self.iterations) == 1, self
        return self.iterations[0]

    def __repr__(self) -> str:
        """Return the exit code and the log, for the message of a failed test."""
        return f"<exit code {self.done.code}\n{self.done.err}>"


@dataclass
class Bench:
    """Runs a program through the installed `rooda`, by its built-in alias."""

    program: Program
    workspace: Workspace
    api: ScriptedApi
    sandboxed: bool = False

    def environment(self, scenario: str) -> dict[str, str | None]:
        """Return the environment of rooda and the program."""
        own = environment(self.program, self.workspace.home, self.api.url, scenario)
        found = {**own, **own_state_home()}
        # rooda itself tells a program that it runs in a sandbox.
        return {**found, "IS_SANDBOX": None} if self.sandboxed else found

    def start(
        self,
        scenario: str,
        *flags: str,
        command: str | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> Running:
        """Start a run of one iteration, unless the flags ask for more."""
        agent = ("--ai-cmd", command) if command else ("--ai-cmd-alias", self.program.name)
        wanted = {**self.environment(scenario), **(env or {})}
        sandbox = ("--sandbox", "bwrap", "--sandbox-env", KEY_NAME) if self.sandboxed else ()
        words = ("run", "work", "-n", "1", *sandbox, *agent, *flags)
        return self.workspace.start(*words, env=wanted)

    def run(
        self,
        scenario: str,
        *flags: str,
        command: str | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> Ran:
        """Start a run and wait for its end."""
        return self.ended(self.start(scenario, *flags, command=command, env=env))

    def ended(self, running: Running) -> Ran:
        """Wait for the end of a run, and return its result."""
        done = running.finish(_RUN_TIMEOUT)
        return Ran(done, asked(self.workspace.rooda, "show"))

    def survivors(self) -> list[psutil.Process]:
        """Return the processes that still run with the home folder of this test."""
        return [process for process in psutil.process_iter() if self._has_test_home(process)]

    def _has_test_home(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            has_home = process.environ().get("HOME") == str(self.workspace.home)
            return has_home and process.status() != psutil.STATUS_ZOMBIE
        return False
