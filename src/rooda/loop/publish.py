"""Commit and push an iteration's work with the user's own git: hooks, signing and all, unattended.

Both run in a process tree of their own and within a time of their own; nothing can ask a question.
"""

import os
import time
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path

from msgspec import Struct

from rooda.agents.failure_kinds import FailureKind
from rooda.config.own_files import pathspecs
from rooda.config.plan import Plan
from rooda.config.settings import (
    GIT_COMMIT_TIMEOUT,
    GIT_MESSAGE,
    GIT_PUSH_TIMEOUT,
    KILL_GRACE,
)
from rooda.iteration.progress import without_signals
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.work_events import CommitFailed, Committed, Pushed, PushFailed
from rooda.text.controls import one_line
from rooda.text.templates import fill
from rooda.workspace.git import (
    Git,
    GitError,
    GitInterruptedError,
    GitStoppedError,
    unattended,
    unfinished,
)
from rooda.workspace.pin import Pin
from rooda.workspace.snapshots.shadow_repo import listed
from rooda.workspace.tools import Command, Finished
from rooda.workspace.untracked_files import LIST_UNTRACKED, covering

_SHOWN = 4000
_PATIENCE = 20  # tries while another program has locked the index for a moment
_PAUSE = 0.1
# git would start its housekeeping in the background, where rooda stops it with the rest of the
# process tree, each time again.
_IN_FRONT = (
    *("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false"),
    *("-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=dirty"),
)
_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")  # there may be very many
_LIST_ADDED = ("diff", "--cached", "--name-only", "--diff-filter=A", "-z", "--no-renames")
_REMOVE_ENTRIES = ("update-index", "--force-remove", "-z", "--stdin")
# The settings that name a program that signs, and the program that git would look for on PATH.
_SIGNERS = {"gpg.program": "gpg", "gpg.ssh.program": "ssh-keygen", "gpg.x509.program": "gpgsm"}


class Refusal(Struct, frozen=True):
    """Why git did not do it, and what to do."""

    error: str
    suggestion: str
    interrupted: bool = False


# What git says, and what helps. The first that fits is taken.
_ADVICE = (
    ("index.lock", "Another git is at work, or one was killed: if none is, remove that file"),
    ("user.email", "Tell git who you are: git config user.name and user.email"),
    ("Please tell me who you are", "Tell git who you are: git config user.name and user.email"),
    ("gpg failed to sign", "Signing must work without a question: unlock the key, or turn it off"),
    ("failed to write commit object", "Signing must work without a question: unlock the key"),
    ("unmerged files", "Resolve the conflict first (git status shows it)"),
    ("could not read Username", "Give git credentials that need no question"),
    ("Authentication failed", "Give git credentials that need no question"),
    ("Permission denied (publickey", "Give git a key that needs no question (ssh-add)"),
    ("[rejected]", "The remote has commits that are not here: git pull, then push again"),
    ("fetch first", "The remote has commits that are not here: git pull, then push again"),
)
_START_THERE = "Start rooda in a git repository, or turn git.commit off"
_CHANGED = "Look at .git in the work tree, repair it, then start a new run"
_CHECK_REMOTE = "Check `git remote -v`; if the address is right, start a new run"
_SLOW = "See whether `git status` ends here; a named pipe or a huge file can hold it up"
_HOOK_ADVICE = "Read what git and its hooks say above; the work is still in the work tree"


class Publisher:
    """Git in the work tree of one plan, for one iteration."""

    def __init__(self, plan: Plan, number: int, services: Services) -> None:
        self._plan = plan
        self._number = number
        self._services = services
        self._query = Git(plan.working_dir, services.tools)
        self._pin = services.pin

    def commit(self, outcome: Outcome, summary: str | None, task: str = "") -> tuple[Outcome, str]:
        """Commit everything; the outcome, and what the next prompt should say of a failure."""
        try:
            found = self._commit(self._message(summary, task))
        except GitError as error:
            found = _stopped(error)
        if isinstance(found, Refusal):
            if found.interrupted:
                return Outcome(Verdict.INTERRUPTED, reason=found.error), ""
            self._services.emit(CommitFailed(self._number, found.error, found.suggestion))
            reason = f"commit failed: {one_line(found.error.splitlines()[0])}"
            evidence = one_line(found.error)
            outcome = Outcome(Verdict.FAILURE, FailureKind.COMMIT, reason, evidence=evidence)
            return outcome, found.error
        if found is not None:
            self._services.emit(found)
        return outcome, ""

    def push(self, *, is_last: bool = False) -> None:
        """Push the branch, and report a failure; `is_last`: no later iteration can retry.

        Without a repository there is nothing to do: the start of the run has reported that.
        """
        if self._pin is None:
            return
        try:
            found = self._push(self._pin)
        except GitStoppedError as error:
            found = _stopped(error)
        if isinstance(found, Pushed):
            self._services.emit(found)
        elif not found.interrupted:
            self._services.emit(_push_failed(self._number, found, is_last=is_last))

    def _message(self, summary: str | None, task: str) -> str:
        names = {
            "procedure": self._plan.procedure,
            "mode": self._plan.mode,
            "iteration": str(self._number),
            "run": self._services.run,
            "summary": one_line(without_signals(summary or "")),
            "task": one_line(task),
        }
        filled = fill(self._plan.values[GIT_MESSAGE], names).strip()
        return filled or f"{self._plan.procedure}: iteration {self._number}"

    def _commit(self, message: str) -> Committed | Refusal | None:
        """Stage and commit; None when there is nothing to commit."""
        if self._pin is None:
            return Refusal("the run did not start in a git repository", _START_THERE)
        if trouble := self._pin.trouble():
            return Refusal(f"the repository changed: {trouble}", _CHANGED)
        if (reason := unfinished(self._pin.git_dir)) is not None:
            return Refusal(reason, "Finish or abort it first (git status shows it)")
        if not self._ask("symbolic-ref", "-q", "HEAD"):
            return Refusal(
                "HEAD is detached: a commit would belong to no branch",
                "Switch to a branch: git switch -c NAME",
            )
        staged = self._stage()
        if not staged.passed:
            return _refusal(staged)
        if self._nothing_is_staged():
            return None
        done = self._patiently("commit", "--file=-", stdin=message.encode("utf-8", "replace"))
        if not done.passed:
            return _refusal(done)
        return Committed(self._number, self._ask("rev-parse", "HEAD"), message)

    def _push(self, pin: Pin) -> Pushed | Refusal:
        if trouble := pin.trouble():
            return Refusal(f"the repository changed: {trouble}; nothing was pushed", _CHANGED)
        branch = self._ask("symbolic-ref", "-q", "--short", "HEAD")
        if not branch:
            return Refusal(
                "HEAD is detached: there is no branch to push",
                "Switch to a branch: git switch -c NAME",
            )
        upstream = self._ask("config", f"branch.{branch}.remote")
        remote = self._remote(branch, upstream)
        if not remote:
            return Refusal("there is no remote to push to", "Add one: git remote add origin URL")
        if trouble := pin.remote_trouble(remote):
            return Refusal(f"{trouble}; nothing was pushed", _CHECK_REMOTE)
        upstream_flag = () if upstream else ("--set-upstream",)
        timeout = self._plan.values[GIT_PUSH_TIMEOUT]
        refspec = f"HEAD:refs/heads/{branch}"
        done = self._git("push", *upstream_flag, "--", remote, refspec, limit=timeout)
        if not done.passed:
            return _refusal(done)
        return Pushed(self._number, remote, branch, self._ask("rev-parse", "HEAD"))

    def _remote(self, branch: str, upstream: str) -> str:
        """Where git itself would push to; without any setting the only one, or `origin`."""
        for key in (f"branch.{branch}.pushRemote", "remote.pushDefault"):
            if chosen := self._ask("config", key):
                return chosen
        if upstream and upstream != ".":
            return upstream
        remotes = self._ask("remote").split()
        return remotes[0] if len(remotes) == 1 else "origin" if "origin" in remotes else ""

    def _stage(self) -> Finished:
        """Stage everything but what is rooda's own, even where the agent has staged that."""
        own = self._own_files()
        done = self._unstage_untracked()
        if done is not None and not done.passed:
            return done
        # Git refuses to exclude what is ignored, although that is what it would do.
        seen = [(magic, name) for magic, name in own if not self._is_ignored(name)]
        seen += [("literal", name) for name in self._left_untracked()]
        others = (f":(exclude,top,{magic}){name}" for magic, name in seen)
        done = self._patiently("add", "-A", *_FROM_INPUT, stdin=listed([":/", *others]))
        ours = [f":(top,{magic}){name}" for magic, name in own]
        if done.passed and self._ask("diff", "--cached", "--name-only", "--", *ours):
            return self._patiently("reset", "-q", "--", *ours)
        return done

    def _unstage_untracked(self) -> Finished | None:
        """Make the user's untracked files untracked again if the agent has staged them."""
        files, top = self._services.untracked, Path(self._top)
        if not files:
            return None
        added = _names(Git(top, self._services.tools), *_LIST_ADDED)
        staged = list(files.unchanged(added))
        if not staged:
            return None
        return self._patiently(*_REMOVE_ENTRIES, stdin=listed(staged), folder=top)

    def _left_untracked(self) -> list[str]:
        """Return the paths of the user's untracked files that did not change since the start."""
        files = self._services.untracked
        if not files:
            return []
        git = Git(Path(self._top), self._services.tools)
        untracked = _names(git, *LIST_UNTRACKED)
        left = set(files.unchanged(untracked))
        others = (name for name in untracked if name not in left)
        return covering(left, chain(others, _names(git, "ls-files", "-z"))) if left else []

    def _own_files(self) -> list[tuple[str, str]]:
        """Where rooda's own files are, from the top: how git should read a name, and the name."""
        return pathspecs(self._plan.values, self._top)

    def _is_ignored(self, name: str) -> bool:
        return bool(self._ask("-C", self._top, "check-ignore", "--no-index", "--", name))

    @cached_property
    def _top(self) -> str:
        return self._ask("rev-parse", "--show-toplevel") or "."

    def _ask(self, *arguments: str) -> str:
        """What git answers; nothing where it has no answer."""
        try:
            return self._query.ask(*arguments) or ""
        except GitStoppedError:
            raise
        except GitError:
            return ""

    def _nothing_is_staged(self) -> bool:
        try:
            return self._query.ask("diff", "--cached", "--quiet", "--no-ext-diff") is not None
        except GitStoppedError:
            raise
        except GitError:
            return False  # then the commit says what is the matter

    def _patiently(
        self, *arguments: str, stdin: bytes = b"", folder: Path | None = None
    ) -> Finished:
        """Try again while another program (an editor) has locked the index."""
        done = self._git(*arguments, stdin=stdin, folder=folder)
        for _ in range(_PATIENCE):
            if b"index.lock" not in done.output or done.passed or done.was_interrupted:
                break
            time.sleep(_PAUSE)
            done = self._git(*arguments, stdin=stdin, folder=folder)
        return done

    def _git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        limit: float | None = None,
        folder: Path | None = None,
    ) -> Finished:
        values, tools = self._plan.values, self._services.tools
        return tools.run(
            Command(
                what=f"git {arguments[0]}",
                argv=(tools.program("git"), *_IN_FRONT, *self._signing, *arguments),
                cwd=folder or self._plan.working_dir,
                environ={**unattended(tools), **self._ceiling},
                timeout=limit or values[GIT_COMMIT_TIMEOUT],
                stdin=stdin,
                kill_grace=values[KILL_GRACE],
                closing=True,
            )
        )

    @property
    def _ceiling(self) -> Mapping[str, str]:
        """Keeps git from looking for a repository above the one of the run."""
        if self._pin is None:
            return {}
        name, above = "GIT_CEILING_DIRECTORIES", str(self._pin.top.parent)
        given = self._services.tools.environ.get(name)
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
                words += ["-c", f"{key}={self._services.tools.program(name)}"]
        return tuple(words)


def _names(git: Git, *arguments: str) -> list[str]:
    """Return the names that git prints, relative to the top."""
    found: list[str] = []
    git.each(lambda field: found.append(os.fsdecode(field)), *arguments)
    return found


def _stopped(error: GitError) -> Refusal:
    return Refusal(str(error), _SLOW, isinstance(error, GitInterruptedError))


def _refusal(finished: Finished) -> Refusal:
    """Git's own words, and its hooks'."""
    said = finished.last_words(_SHOWN)
    error = "\n".join(part for part in (finished.error, said) if part)
    advice = next((advice for sign, advice in _ADVICE if sign in said), _HOOK_ADVICE)
    return Refusal(error, advice, finished.was_interrupted)


def _push_failed(number: int, refusal: Refusal, *, is_last: bool) -> PushFailed:
    advice = refusal.suggestion
    if is_last:
        advice = f"{advice}; then push by hand: git push"
    return PushFailed(number, refusal.error, advice, is_last)
