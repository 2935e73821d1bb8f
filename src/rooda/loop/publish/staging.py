"""Stage an iteration's work in the user's index, without what must not be in a commit."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct, field

from rooda.loop.publish.user_git import UserGit
from rooda.loop.services import Services
from rooda.plan.own_files import pathspecs
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_ALLOW_SECRETS
from rooda.world.git.git import Git, listed
from rooda.world.git.new_files import staged_files, tracked_files, untracked_files
from rooda.world.git.new_secrets import NewSecrets
from rooda.world.git.noted_files import covering
from rooda.world.git.pin import Pin
from rooda.world.tools import Finished

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
