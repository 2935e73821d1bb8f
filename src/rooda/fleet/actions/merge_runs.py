"""Merge the branches of runs into one branch, without a work tree or an index of the user.

A run that conflicts, or whose merge does not pass the check, is left out and named. Nothing is
resolved by magic, and nothing is deleted.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Self

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.paths import first_names
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import without_secret_values
from rooda.fleet.remote.replay import check_version, commit_merge, is_ancestor, merge_trees
from rooda.fleet.run_model import BRANCHES
from rooda.fleet.slot.slot_clone import remove_tree
from rooda.fleet.slot.slot_setup import TASK_FILE
from rooda.world.git.branches import Branches, is_branch_name
from rooda.world.git.git import INHERITED, Git, GitError, GitInterruptedError
from rooda.world.tools import Command, Tools

_HEADS = "refs/heads/"
_OF_REMOTE = "refs/remotes/origin/rooda/"  # of a fleet whose remote is elsewhere
_LAST_WORDS = 1500  # characters of what a failed check printed
_IDENTITY = (("NAME", "user.name"), ("EMAIL", "user.email"))


class MergeRefused(Exception):  # noqa: N818 - what rooda does
    """Why rooda does not merge into a branch, and what to do."""


class MergeOutcome(StrEnum):
    """What became of one run."""

    MERGED = "merged"
    ALREADY = "already merged"
    WITH_ANOTHER = "merged with another run"
    CONFLICT = "conflict"
    VERIFY_FAILED = "verify failed"
    MISSING = "no branch"


_LEFT_OUT = (MergeOutcome.CONFLICT, MergeOutcome.VERIFY_FAILED)


class MergeResult(Struct, frozen=True):
    """What became of one run.

    `words` is the end of what a failed check printed, or why git can't merge the run at all.
    """

    run: str
    outcome: MergeOutcome
    commit: str = ""  # the merge
    conflicts_with: str = ""  # a run, or the branch
    files: tuple[str, ...] = ()
    words: str = ""

    @property
    def line(self) -> str:
        """The outcome on one line."""
        if self.outcome is MergeOutcome.CONFLICT:
            return f"conflict with {self.conflicts_with}: {first_names(self.files) or self.reason}"
        if self.outcome is MergeOutcome.MISSING:
            return f"there is no branch rooda/{self.run} here: try git fetch"
        return str(self.outcome)

    @property
    def reason(self) -> str:
        """Why git can't merge the run at all, on one line."""
        return one_line(self.words)


class MergeCheck(Struct, frozen=True):
    """The user's command that has to pass for each merge, and its time limit in seconds.

    `within` returns the words that run a command in the sandbox of the runs, if they had one;
    without it, a shell runs the command.
    """

    command: str
    timeout: float | None = None
    within: Callable[[str], Sequence[str]] | None = None


def merge_runs(
    folder: Path,
    runs: Sequence[str],
    into: str,
    *,
    base: str,
    tools: Tools,
    check: MergeCheck | None = None,
    tell: Callable[[MergeResult], object] = lambda _: None,
) -> list[MergeResult]:
    """Merge runs, in the given order, into a branch, which is made from `base` if it is missing.

    A run whose commits a later one brings along counts as merged, whatever spoke against it alone:
    that is how the work of `retry --onto` comes in. `tell` hears of each result, and of a better
    one. Raises MergeRefused, TooOldGit or GitError; merges made before that stay.
    """
    git = _user_git(folder, tools)
    check_version(git)
    _refuse_used(git, into)
    results: list[MergeResult] = []
    with _Scratch(folder, tools, check) as scratch:
        merger = _Merger(git, into, base, scratch)
        scratch.try_out(merger.current)
        for run in runs:
            results.append(merger.merge(run))
            tell(results[-1])
        for place, one in enumerate(results):
            if one.outcome in _LEFT_OUT and merger.has(one.run):
                results[place] = MergeResult(one.run, MergeOutcome.WITH_ANOTHER)
                tell(results[place])
    return results


def _user_git(folder: Path, tools: Tools) -> Git:
    """Return the git that merges in the name of the user, if git knows it."""
    plain = Git(folder, tools)
    found = {part: plain.ask("config", "--get", key) for part, key in _IDENTITY}
    if not all(found.values()):
        return plain
    roles = ("AUTHOR", "COMMITTER")
    known = {f"GIT_{role}_{part}": value or "" for part, value in found.items() for role in roles}
    return Git(folder, tools, known)


def _refuse_used(git: Git, into: str) -> None:
    if not is_branch_name(git, into):
        raise MergeRefused(f"{one_line(into)} is no name for a branch: choose another one")
    branches = Branches.find(git)
    if folder := branches.used_in.get(into):
        raise MergeRefused(
            f"the branch {into} is checked out in {folder}, and merging there would change files "
            "under your hands: choose another branch (--into night), then merge that one yourself"
        )
    if branches.current == into:
        raise MergeRefused(f"the branch {into} is checked out and has no commit: make one first")
    if rival := branches.rival(into):
        raise MergeRefused(f"git can't have {into} beside the branch {rival}: choose another name")


class _Merger:
    """Merges one run after the other, and moves the branch after each."""

    def __init__(self, git: Git, into: str, base: str, scratch: "_Scratch") -> None:
        self._git = git
        self._into = into
        self._scratch = scratch
        self._branch = _commit(git, _HEADS + into)  # None while there is none
        self.current = self._branch or git.line("rev-parse", "--verify", f"{base}^{{commit}}")
        self._merged: dict[str, str] = {}

    def merge(self, run: str) -> MergeResult:
        """Merge a run, or say why not: what one agent did to its branch does not stop the others.

        Raises MergeRefused, or GitInterruptedError.
        """
        try:
            return self._merge(run)
        except GitInterruptedError:
            raise
        except GitError as error:
            return MergeResult(
                run, MergeOutcome.CONFLICT, conflicts_with=self._into, words=str(error)
            )

    def _merge(self, run: str) -> MergeResult:
        tip = self._tip(run)
        if tip is None:
            return MergeResult(run, MergeOutcome.MISSING)
        if is_ancestor(self._git, tip, self.current):
            self._merged[run] = tip
            return MergeResult(run, MergeOutcome.ALREADY)
        tree, files = merge_trees(self._git, self.current, tip)
        if files:
            rival = self._rival(tip, files)
            return MergeResult(run, MergeOutcome.CONFLICT, conflicts_with=rival, files=files)
        message = f"Merge rooda/{run} into {self._into}"
        commit = commit_merge(self._git, tree, [self.current, tip], message)
        if words := self._scratch.refusal(commit):
            return MergeResult(run, MergeOutcome.VERIFY_FAILED, words=words)
        self._move(commit)
        self._merged[run] = tip
        return MergeResult(run, MergeOutcome.MERGED, commit)

    def has(self, run: str) -> bool:
        """Return whether the branch has all commits of a run."""
        with contextlib.suppress(GitError):
            tip = self._tip(run)
            return tip is not None and is_ancestor(self._git, tip, self.current)
        return False

    def _tip(self, run: str) -> str | None:
        return _commit(self._git, BRANCHES + run) or _commit(self._git, _OF_REMOTE + run)

    def _move(self, commit: str) -> None:
        """Move the branch, if it is still where it was."""
        ref, old = _HEADS + self._into, self._branch or "0" * len(commit)
        try:
            self._git("update-ref", ref, commit, old, umask=INHERITED)
        except GitError as error:
            raise MergeRefused(
                f"the branch {self._into} moved while rooda merged: start again ({error})"
            ) from None
        self._branch = self.current = commit

    def _rival(self, tip: str, files: Sequence[str]) -> str:
        """Return the merged run that conflicts with a tip in these files; else the branch."""
        for run, merged in self._merged.items():
            _, between = merge_trees(self._git, merged, tip)
            if set(between) & set(files):
                return run
        return self._into


def _commit(git: Git, ref: str) -> str | None:
    return git.ask("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}")


class _Scratch:
    """A clone in a temporary folder, in which the user's check runs on each merge."""

    def __init__(self, folder: Path, tools: Tools, check: MergeCheck | None) -> None:
        self._folder = folder
        self._tools = tools
        self._check = check
        self._cleanup = contextlib.ExitStack()
        self._work: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def refusal(self, commit: str) -> str:
        """Return what the failed check printed, and how it ended; empty if it passed."""
        if self._check is None:
            return ""
        return self._run(self._check, self._check.command, commit)

    def try_out(self, commit: str) -> None:
        """Start a program that ends at once where the check will run. Raises MergeRefused."""
        if self._check is None or self._check.within is None:
            return
        if words := self._run(self._check, "true", commit):
            raise MergeRefused(f"the check can't run: {words}")

    def _run(self, check: MergeCheck, command: str, commit: str) -> str:
        """Run a command on a commit; return how it failed, and empty words if it did not."""
        work = self._checked_out(commit)
        argv = self._tools.shell(command) if check.within is None else check.within(command)
        # The home folder of this sandbox is deleted with the work tree.
        state = {} if check.within is None else {"XDG_STATE_HOME": str(work.parent / "state")}
        done = self._tools.run(
            Command(
                what="verify",
                argv=tuple(argv),
                cwd=work,
                environ={**self._tools.environ, **state},
                timeout=check.timeout,
                shown=command,
            )
        )
        if done.was_interrupted:
            raise GitInterruptedError("interrupted")
        if done.passed:
            return ""
        said = Masker(os.environ).text(without_secret_values(done.last_words(_LAST_WORDS)))
        return f"{done.error}\n{said}".rstrip()

    def _checked_out(self, commit: str) -> Path:
        """Return a clean work tree of a commit, with nothing from the check before."""
        if self._work is None:
            self._work = self._cleanup.enter_context(_temporary_folder()) / "work"
            (self._work.parent / Path(TASK_FILE).name).write_text("A check of merged work.\n")
        remove_tree(self._work)
        # Shared: the objects stay where they are, and nothing is written there.
        words = ("clone", "--quiet", "--shared", "--no-checkout", "--template=")
        outside = Git(self._work.parent, self._tools, online=600.0)
        outside(*words, "--", str(self._folder.resolve()), str(self._work), umask=INHERITED)
        place = {"GIT_DIR": str(self._work / ".git"), "GIT_WORK_TREE": str(self._work)}
        git = Git(self._work, self._tools, place, online=600.0)
        git("remote", "remove", "origin")
        git("checkout", "--quiet", "--detach", commit, umask=INHERITED)
        return self._work


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rooda-merge-"))
    try:
        yield folder
    finally:
        remove_tree(folder)
