"""Where snapshots are kept in the user's repository: `refs/rooda/<run>/<name>`."""

import re
from collections.abc import Iterable, Mapping

from rooda.workspace.git import Git, GitError

UNDO = "undo"  # in the place of a run: what a restore replaced, whichever run it restored
_ROOT = "refs/rooda"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(?<!\.lock)")


def ref(run: str, name: str) -> str:
    """The ref of a snapshot. Raises GitError for words that can't be part of one."""
    for word in (run, name):
        if not _WORD.fullmatch(word):
            raise GitError(f"there is no snapshot {name} of run {run}")
    return f"{_ROOT}/{run}/{name}"


class Refs:
    """The refs of ours in one repository."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def commit(self, run: str, name: str) -> str | None:
        """The commit of a snapshot, if there is one."""
        return self._git.ask("rev-parse", "--quiet", "--verify", f"{ref(run, name)}^{{commit}}")

    def tree(self, run: str, name: str) -> str | None:
        """The tree of a snapshot, if there is one."""
        return self._git.ask("rev-parse", "--quiet", "--verify", f"{ref(run, name)}^{{tree}}")

    def names(self, run: str) -> tuple[str, ...]:
        """The snapshots of a run: numbers in their order, then words."""
        found = (words[1] for words in self._words() if words[0] == run)
        return tuple(sorted(found, key=lambda name: (not name.isdecimal(), len(name), name)))

    def runs(self) -> tuple[str, ...]:
        """The runs that have snapshots."""
        return tuple(sorted({words[0] for words in self._words()}))

    def forget(self, runs: Iterable[str]) -> None:
        """Delete every ref of these runs; git frees the space when it cleans up the next time."""
        gone = set(runs)
        found = [words for words in self._words() if words[0] in gone]
        self._change(f"delete {_ROOT}/{'/'.join(words)}" for words in found)

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the refs of a run whose commits are older than a moment (unix time)."""
        raw = self._git.line("for-each-ref", "--format=%(refname) %(committerdate:unix)", _ROOT)
        pairs = (line.rpartition(" ") for line in raw.splitlines())
        old = [
            name
            for name, _, date in pairs
            if name.startswith(f"{_ROOT}/{run}/") and date.isdecimal() and int(date) < moment
        ]
        self._change(f"delete {name}" for name in old)

    def write(self, commits: Mapping[str, str], expected: Mapping[str, str]) -> None:
        """Let refs point to commits, all or none, and only if others still point to theirs."""
        lines = [f"update {name} {commit}" for name, commit in commits.items()]
        checks = [f"verify {name} {commit}" for name, commit in expected.items()]
        self._change([*lines, *(line for line in checks if line.split()[1] not in commits)])

    def _change(self, lines: Iterable[str]) -> None:
        given = "".join(f"{line}\n" for line in lines)
        if given:
            self._git("update-ref", "--stdin", given=given.encode())

    def _words(self) -> list[list[str]]:
        """Run and name of each; what an agent put there under other names is not ours."""
        raw = self._git.line("for-each-ref", "--format=%(refname:lstrip=2)", f"{_ROOT}/")
        words = (name.split("/") for name in raw.splitlines())
        return [found for found in words if len(found) == 2]  # noqa: PLR2004 - a run and a name
