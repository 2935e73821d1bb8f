"""One agent program in a work folder of its own, with rooda around it and a script behind it."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from real_agents.programs import Program, environment
from real_agents.scripted_api import ScriptedApi
from support.recorded import asked
from support.workspace import Finished, Running, Workspace

# An installed program starts within seconds, but not on a machine that has other things to do.
_PATIENCE = 100.0
AT_ONCE = ("--failure-threshold", "1")


def only(*names: str) -> pytest.MarkDecorator:
    """Run a test with these programs alone."""
    return pytest.mark.parametrize("bench", names, indirect=True)


@dataclass(frozen=True)
class Ran:
    """What a run printed, and what the record tells of it."""

    done: Finished
    run: dict[str, Any]

    @property
    def iterations(self) -> list[dict[str, Any]]:
        """All of them, oldest first."""
        found: list[dict[str, Any]] = self.run["iterations"]
        return found

    @property
    def only(self) -> dict[str, Any]:
        """The one iteration that there is."""
        assert len(self.iterations) == 1, self
        return self.iterations[0]

    def __repr__(self) -> str:
        """The log and the end: what is wanted when a test fails."""
        return f"<exit code {self.done.code}\n{self.done.err}>"


@dataclass
class Bench:
    """Runs a program through the installed `rooda`, by its built-in alias."""

    program: Program
    workspace: Workspace
    api: ScriptedApi

    def environment(self, scenario: str) -> dict[str, str | None]:
        """What rooda and the program get."""
        return environment(self.program, self.workspace.home, self.api.url, scenario)

    def start(
        self,
        scenario: str,
        *flags: str,
        command: str | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> Running:
        """Begin a run of one iteration, unless the flags want more."""
        agent = ("--ai-cmd", command) if command else ("--ai-cmd-alias", self.program.name)
        wanted = {**self.environment(scenario), **(env or {})}
        return self.workspace.start("run", "work", "-n", "1", *agent, *flags, env=wanted)

    def run(
        self,
        scenario: str,
        *flags: str,
        command: str | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> Ran:
        """The same to its end."""
        return self.ended(self.start(scenario, *flags, command=command, env=env))

    def ended(self, running: Running) -> Ran:
        """What became of a run."""
        done = running.finish(_PATIENCE)
        return Ran(done, asked(self.workspace.rooda, "show"))

    def survivors(self) -> list[psutil.Process]:
        """Whatever still runs with the home of this test."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            ours = process.environ().get("HOME") == str(self.workspace.home)
            return ours and process.status() != psutil.STATUS_ZOMBIE
        return False
