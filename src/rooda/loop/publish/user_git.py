"""The user's own git in the repository of a run: with hooks, signing and all, unattended.

With a sandbox, staging and the commit run inside, with the user's hooks. A push runs outside,
without hooks: it needs the user's credentials, and hooks may be programs that the agent has made.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_COMMIT_TIMEOUT, KILL_GRACE
from rooda.world.git.git import (
    OUTSIDE_OF_SANDBOX,
    Git,
    GitError,
    GitStoppedError,
    unattended,
)
from rooda.world.git.pin import Pin
from rooda.world.tools import Command, Finished, Tools

_PATIENCE = 20  # tries while another program has locked the index for a moment
_PAUSE = 0.1
# git would start its housekeeping in the background, where rooda stops it with the rest of the
# process tree, each time again.
_IN_FRONT = (
    *("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false"),
    *("-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=dirty"),
)
# The settings that name a program that signs, and the program that git would look for on PATH.
_SIGNERS = {"gpg.program": "gpg", "gpg.ssh.program": "ssh-keygen", "gpg.x509.program": "gpgsm"}


class UserGit:
    """Runs git as the user would, each time in a process tree and within a time of its own."""

    def __init__(
        self, plan: Plan, tools: Tools, pin: Pin | None, index: Path | None = None
    ) -> None:
        """`index` replaces the user's index."""
        self._plan = plan
        self._tools = tools
        self._pin = pin
        self._index = {} if index is None else {"GIT_INDEX_FILE": str(index)}
        self._query = Git(plan.working_dir, tools, self._index)

    def ask(self, *arguments: str) -> str:
        """What git answers; nothing where it has no answer."""
        try:
            return self._query.ask(*arguments) or ""
        except GitStoppedError:
            raise
        except GitError:
            return ""

    def run(self, *arguments: str, limit: float | None = None) -> Finished:
        """Run git to its end, outside of a sandbox; `limit` is its time in seconds."""
        return self._tools.run(self._command(*arguments, limit=limit, outside=True))

    def stream(self, take: Callable[[bytes], object], *arguments: str, limit: float) -> Finished:
        """Run git to its end, and give what it prints to `take`; keep only its errors."""
        command = self._command(*arguments, limit=limit, outside=True)
        end, errors = self._tools.stream(command, take)
        return Finished(end, errors, 0.0)

    def patiently(
        self, *arguments: str, stdin: bytes = b"", folder: Path | None = None
    ) -> Finished:
        """Try again while another program (an editor) has locked the index."""
        command = self._command(*arguments, stdin=stdin, folder=folder)
        done = self._tools.run(command)
        for _ in range(_PATIENCE):
            if b"index.lock" not in done.output or done.passed or done.was_interrupted:
                break
            time.sleep(_PAUSE)
            done = self._tools.run(command)
        return done

    def _command(
        self,
        *arguments: str,
        stdin: bytes = b"",
        limit: float | None = None,
        folder: Path | None = None,
        outside: bool = False,
    ) -> Command:
        values, tools = self._plan.values, self._tools
        guard = OUTSIDE_OF_SANDBOX if outside and tools.sandbox is not None else ()
        return Command(
            what=f"git {arguments[0]}",
            argv=(tools.program("git"), *_IN_FRONT, *guard, *self._signing, *arguments),
            cwd=folder or self._plan.working_dir,
            environ={**unattended(tools), **self._ceiling, **self._index},
            timeout=limit or values[GIT_COMMIT_TIMEOUT],
            stdin=stdin,
            kill_grace=values[KILL_GRACE],
            closing=True,
            outside=outside,
        )

    @property
    def _ceiling(self) -> Mapping[str, str]:
        """Keeps git from looking for a repository above the one of the run."""
        if self._pin is None:
            return {}
        name, above = "GIT_CEILING_DIRECTORIES", str(self._pin.top.parent)
        given = self._tools.environ.get(name)
        return {} if os.pathsep in above else {name: f"{given}:{above}" if given else above}

    @cached_property
    def _signing(self) -> tuple[str, ...]:
        """The program that signs, by its path: git would look for its name on PATH."""
        settings = {} if self._pin is None else self._pin.settings
        chosen = {key for key in settings if key.startswith("gpg.")}
        if "gpg.openpgp.program" in chosen:
            chosen.add("gpg.program")
        words: list[str] = []
        for key, name in _SIGNERS.items():
            if key not in chosen:
                words += ["-c", f"{key}={self._tools.program(name)}"]
        return tuple(words)
