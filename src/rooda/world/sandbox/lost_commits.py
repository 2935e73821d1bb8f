"""Whether git still has the commits that branches, tags and the stash named when a run started.

A program in the sandbox commits to the user's repository, so it can also delete what is in there.
"""

import contextlib

from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.pin import Pin
from rooda.world.tools import Tools

_REFS = ("for-each-ref", "--format=%(objectname) %(refname)")
_OF_USER = ("refs/heads", "refs/tags", "refs/stash")
_MISSING = b" missing"
_REPOSITORY = ".git"


class LostCommits:
    """The commits of one repository at the start of a run."""

    def __init__(self, pin: Pin, tools: Tools) -> None:
        # rooda names the repository: without it, git would look for another one further up.
        place = {"GIT_DIR": str(pin.git_dir), "GIT_WORK_TREE": str(pin.top)}
        self._git = Git(pin.top, tools, place)
        self._names: dict[str, str] = {}  # content of a commit -> the first ref that names it
        self._can_tell = False
        with contextlib.suppress(GitError):
            for line in self._git.line(*_REFS, *_OF_USER).splitlines():
                commit, _, name = line.partition(" ")
                self._names.setdefault(f"{commit}^{{tree}}", name)
            for missing in self._missing():
                del self._names[missing]
            self._can_tell = True

    def names(self) -> tuple[str, ...]:
        """Return the refs of the start whose commits are gone; `.git` if git can't work with it."""
        if not self._can_tell:
            return ()
        try:
            return tuple(sorted(self._names[one] for one in self._missing()))
        except GitStoppedError:
            return ()  # a signal came; or something holds git up, and the next stages say so
        except GitError:
            return (_REPOSITORY,)

    def _missing(self) -> list[str]:
        """Return the contents that git does not have. Raises GitError."""
        asked = "".join(f"{one}\n" for one in self._names).encode()
        answers = self._git("cat-file", "--batch-check=%(objecttype)", given=asked).splitlines()
        return [
            answer.removesuffix(_MISSING).decode()
            for answer in answers
            if answer.endswith(_MISSING)
        ]
