"""The user's own git in the repository of a run: with hooks, signing and all, unattended.

With a sandbox, staging and the commit run inside, with the user's hooks. A push runs outside,
without hooks: it needs the user's credentials, and hooks may be programs that the agent has made.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path

from msgspec import Struct, field

from rooda.loop.services import Services
from rooda.plan.own_files import pathspecs
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_ALLOW_SECRETS, GIT_COMMIT_TIMEOUT, KILL_GRACE
from rooda.world.git.git import (
    OUTSIDE_OF_SANDBOX,
    Git,
    GitError,
    GitStoppedError,
    listed,
    unattended,
)
from rooda.world.git.new_files import NewSecrets, staged_files, tracked_files, untracked_files
from rooda.world.git.noted_files import covering
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


# Stage an iteration's work in the user's index, without what must not be in a commit.


_MOST_EXCLUDED = 8 * 1024  # characters: git compares each name with each file
_SUBMODULE_PATH = r"^submodule\..*\.path$"
_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")  # there may be very many


class LeftOut(Struct):
    """Names that are not in a commit, and that the user should know of."""

    secrets: set[str] = field(default_factory=set)
    repositories: set[str] = field(default_factory=set)  # new ones within the work tree


class Staging:
    """Stages all changes, except for secrets, repositories, and files of rooda and of the user.

    A repository within the work tree would be in the commit as a name without its files, unless it
    is a submodule (.gitmodules names it). If it has no commit yet, git refuses to stage anything.
    """

    def __init__(
        self,
        git: UserGit,
        plan: Plan,
        services: Services,
        pin: Pin,
        index: Path | None = None,
    ) -> None:
        """`index` replaces the user's index, in `git` as well."""
        self._git = git
        self._top = pin.top
        other = {} if index is None else {"GIT_INDEX_FILE": str(index)}
        self._reader = Git(pin.top, services.tools, other)
        self._secrets = NewSecrets(self._reader, plan.values[GIT_ALLOW_SECRETS])
        self._own = pathspecs(plan.values, str(pin.top))
        files = services.user_files
        self._of_user = None if files is None else files.known
        self._tracked_of_user = () if files is None else tuple(files.tracked)
        # Repositories that a program in the sandbox made or changed: git must not enter them.
        check = services.tree_check
        self._unsafe = frozenset() if check is None else check.excluded

    def stage(self, left_out: LeftOut) -> Finished:
        """Stage the work, and add what stays out to `left_out`. Raises GitError.

        What the agent has staged stays out as well.
        """
        done = self._unstage_what_stays_out()
        if done is not None and not done.passed:
            return done
        untracked = untracked_files(self._reader)
        left_out.secrets.update(self._secrets.among(untracked))
        left = self._unchanged_files_of_user(untracked)
        found = (name for name in untracked if name.endswith("/") and name not in left)
        left_out.repositories.update(found)
        others = chain(untracked, tracked_files(self._reader)) if left else ()
        paths = covering(left, (name for name in others if name not in left))
        done = self._add_all_but([*paths, *self._unsafe, *_fitting(left_out)])
        if done.passed:
            done = self._unstage_own_files() or done
        if done.passed:
            done = self._unstage_changes_of_user() or done
        # The agent may have staged some, and there may be too many to exclude.
        if done.passed and (names := self._secrets.staged()):
            left_out.secrets.update(names)
            return self._unstage(names)
        return done

    def _add_all_but(self, paths: Iterable[str]) -> Finished:
        # Git refuses to exclude what is ignored, although that is what it would do.
        excluded = [(magic, name) for magic, name in self._own if not self._is_ignored(name)]
        excluded += [("literal", path.removesuffix("/")) for path in paths]
        others = (f":(exclude,top,{magic}){name}" for magic, name in excluded)
        return self._git.patiently("add", "-A", *_FROM_INPUT, stdin=listed([":/", *others]))

    def _unstage_own_files(self) -> Finished | None:
        ours = [f":(top,{magic}){name}" for magic, name in self._own]
        if not self._git.ask("diff", "--cached", "--name-only", "--", *ours):
            return None
        return self._git.patiently("reset", "-q", "--", *ours)

    def _unstage_changes_of_user(self) -> Finished | None:
        """Unstage the tracked files that the user, and not the agent, has changed."""
        if self._of_user is None or not self._tracked_of_user:
            return None
        left = self._of_user.unchanged(self._tracked_of_user)
        names = listed(f":(top,literal){name}" for name in left)
        return self._git.patiently("reset", "-q", *_FROM_INPUT, stdin=names) if names else None

    def _unstage_what_stays_out(self) -> Finished | None:
        """Make the user's untracked files and new repositories untracked again, if need be."""
        added = staged_files(self._reader)
        staged = {one.name for one in added if one.is_repository}
        if staged:
            staged -= self._submodules()
        if self._of_user:
            staged.update(self._of_user.unchanged(one.name for one in added))
        return self._unstage(staged) if staged else None

    def _submodules(self) -> set[str]:
        """Return the folders that .gitmodules names; git ignores a link of that name."""
        file = self._top / ".gitmodules"
        if file.is_symlink() or not file.is_file():
            return set()
        paths = ("config", "--null", "--file", str(file), "--get-regexp", _SUBMODULE_PATH)
        entries = (self._reader.ask(*paths) or "").split("\0")
        return {entry.partition("\n")[2].rstrip("/") for entry in entries}

    def _unstage(self, names: Iterable[str]) -> Finished:
        """Make new files untracked again."""
        remove = ("update-index", "--force-remove", "-z", "--stdin")
        return self._git.patiently(*remove, stdin=listed(names), folder=self._top)

    def _unchanged_files_of_user(self, untracked: list[str]) -> set[str]:
        """Return the user's untracked files that did not change since rooda noted them."""
        return set(self._of_user.unchanged(untracked)) if self._of_user else set()

    def _is_ignored(self, name: str) -> bool:
        return bool(self._git.ask("-C", str(self._top), "check-ignore", "--no-index", "--", name))


def _fitting(left_out: LeftOut) -> Iterator[str]:
    """Yield as many of the names as git can exclude in good time, the repositories first."""
    room = _MOST_EXCLUDED
    for name in chain(left_out.repositories, left_out.secrets):
        room -= len(name)
        if room < 0:
            return
        yield name
