"""Git as rooda uses it: the git command, without questions, without hooks, and within bounds."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rooda.base.controls import one_line
from rooda.world.process.exits import Exit, Exited, Interrupted, TimedOut, describe
from rooda.world.tools import Command, Tools

_PATIENCE = 120.0  # for one plumbing command
_AFTER_A_TIMEOUT = 20.0  # for the next ones, until one ends by itself
_GRACE = 1.0  # between SIGTERM and SIGKILL
PRIVATE = 0o077  # the umask: a snapshot may contain files that only the user may read
INHERITED = -1  # rooda's own umask
_LOOK_EVERY = 500  # files between two looks at whether a signal has come
_LONGEST = 600  # characters of git's message in one of rooda's

# No program may ask a question: there is no user to answer.
_UNATTENDED: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_MERGE_AUTOEDIT": "no",
    "GCM_INTERACTIVE": "never",
}
# Git shows another object in place of one that `git replace` names. An agent can do that too.
TRUE_OBJECTS: Mapping[str, str] = {"GIT_NO_REPLACE_OBJECTS": "1"}
# Variables that name a program, and the program that answers at once.
_ANSWERS: Mapping[str, str] = {
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
}
# A hook or a shell may have set these. They would point git elsewhere, or change what it does.
_MISLEADING = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_QUARANTINE_PATH",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_CONFIG",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_REPLACE_REF_BASE",
        "GIT_ATTR_SOURCE",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GPG_TTY",  # gpg would ask there for a password
    }
)
# Git would fetch an object that is missing, with the program that the repository names.
OFFLINE: Mapping[str, str] = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # the same for older versions of git
}
_PLUMBING: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": "rooda",
    "GIT_AUTHOR_EMAIL": "rooda@localhost",
    "GIT_COMMITTER_NAME": "rooda",
    "GIT_COMMITTER_EMAIL": "rooda@localhost",
    "LC_ALL": "C",
}
_DATES = frozenset({"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"})
_QUIET: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "log.showSignature": "false",  # it would run the program that gpg.program names
}
# For git outside of the sandbox of a run: no program that the agent could have put into a hook, a
# monitor of files or a repository within the work tree.
OUTSIDE_OF_SANDBOX: tuple[str, ...] = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "diff.ignoreSubmodules=all"),
)


class GitError(Exception):
    """What git said when it refused, on one line."""


class GitStoppedError(GitError):
    """rooda stopped git, because of a time limit or a signal. A retry would not help."""


class GitInterruptedError(GitStoppedError):
    """rooda stopped git because of a signal."""


def unattended(tools: Tools) -> dict[str, str]:
    """Return an environment in which git never asks a question and uses the given repository.

    ssh can't ask either: it is in a session without a terminal. The user's core.sshCommand
    overrides GIT_SSH.
    """
    kept = without_misleading(tools.environ)
    answers = {variable: tools.program(name) for variable, name in _ANSWERS.items()}
    return {"GIT_SSH": tools.program("ssh"), **kept, **_UNATTENDED, **TRUE_OBJECTS, **answers}


def without_misleading(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without variables that lead git to another repository."""
    return {name: value for name, value in environ.items() if name not in _MISLEADING}


class Git:
    """Runs plumbing commands in one folder, without the network and without the user's name.

    With `online`, commands may use the network, and each may take that many seconds.
    """

    def __init__(
        self,
        folder: Path,
        tools: Tools,
        more: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        online: float | None = None,
    ) -> None:
        self.folder = folder
        self._tools = tools
        self._online = online
        kept = {name: value for name, value in unattended(tools).items() if name not in _DATES}
        network = OFFLINE if online is None else {}
        # Plumbing runs no program of the user, so PATH needs no folder of the work tree.
        own = {"PATH": tools.path, **network, **_PLUMBING}
        self.environ: Mapping[str, str] = {**kept, **own, **(more or {})}
        self._options: list[str] = []
        for key, value in {**_QUIET, **(settings or {})}.items():
            self._options += ["-c", f"{key}={value}"]

    def __call__(self, *arguments: str, given: bytes | Path = b"", umask: int = PRIVATE) -> bytes:
        """Return what git prints. Raises GitError with git's message, or why git did not run."""
        code, printed, errors = self._run(arguments, given, umask)
        if code != 0:
            raise GitError(_refusal(arguments, code, errors))
        return printed

    def each(self, take: Callable[[bytes], object], *arguments: str, given: bytes = b"") -> None:
        """Give each field that git prints, without its zero byte at the end, to `take`.

        rooda keeps no more than one piece of the output. Raises GitError, also after some fields.
        """
        self.pieces(_Fields(take).feed, *arguments, given=given)

    def pieces(self, take: Callable[[bytes], object], *arguments: str, given: bytes = b"") -> None:
        """Give the output of git to `take`, piece by piece. Raises GitError, also after some."""
        code, errors = self._stream(arguments, given, -1, take)
        if code != 0:
            raise GitError(_refusal(arguments, code, errors))

    def while_wanted(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of files, of which there may be hundreds of thousands.

        Raises GitInterruptedError when a signal has come and its last moment is over.
        """
        for number, name in enumerate(names):
            if number % _LOOK_EVERY == 0 and self._tools.is_over:
                raise GitInterruptedError("interrupted")
            yield name

    def line(self, *arguments: str) -> str:
        """Return what git prints, without the line break at the end."""
        return os.fsdecode(self(*arguments)).removesuffix("\n")

    def ask(self, *arguments: str, given: bytes = b"") -> str | None:
        """Return what git prints as text; None if git answers no (exit code 1)."""
        code, printed = self.answer(*arguments, given=given)
        return os.fsdecode(printed).removesuffix("\n") if code == 0 else None

    def answer(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes]:
        """Return git's answer, yes (0) or no (1), and what git prints. Raises GitError."""
        code, printed, errors = self._run(arguments, given, PRIVATE)
        if code not in (0, 1):
            raise GitError(_refusal(arguments, code, errors))
        return code, printed

    @property
    def _guard(self) -> tuple[str, ...]:
        return () if self._tools.sandbox is None else OUTSIDE_OF_SANDBOX

    def _run(
        self, arguments: tuple[str, ...], given: bytes | Path, umask: int
    ) -> tuple[int, bytes, bytes]:
        """Return the exit code, standard output, and the end of standard error."""
        printed: list[bytes] = []
        code, errors = self._stream(arguments, given, umask, printed.append)
        return code, b"".join(printed), errors

    def _stream(
        self,
        arguments: tuple[str, ...],
        given: bytes | Path,
        umask: int,
        take: Callable[[bytes], object],
    ) -> tuple[int, bytes]:
        """Return the exit code and the end of standard error; `take` gets standard output."""
        program = self._tools.git
        if program is None:
            raise GitError("git is not installed outside of the work tree")
        name = _name(arguments)
        command = Command(
            what="",
            argv=(program, *self._options, *self._guard, *arguments),
            cwd=self.folder,
            environ=self.environ,
            timeout=self._patience(name),
            stdin=given,
            kill_grace=_GRACE,
            closing=True,
            umask=umask,
            outside=True,
        )
        end, errors = self._tools.stream(command, take)
        (self._tools.hung.add if isinstance(end, TimedOut) else self._tools.hung.discard)(name)
        if isinstance(end, Exited):
            return end.code, errors
        raise _failure(name, end)

    def _patience(self, name: str) -> float:
        """Return how many seconds a command may take; a slow network is no git that hangs."""
        if self._online is not None:
            return self._online
        return _AFTER_A_TIMEOUT if name in self._tools.hung else _PATIENCE


class _Fields:
    """Divides what git prints with `-z` into fields, whatever the pieces in which it arrives."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *fields, self._rest = (self._rest + data).split(b"\0")
        for field in fields:
            self._take(field)


def _failure(name: str, end: Exit) -> GitError:
    """Return the error for a git that did not exit by itself."""
    error = describe(end)
    if isinstance(end, Interrupted):
        return GitInterruptedError(f"git {name}: {error}")
    if isinstance(end, TimedOut):
        return GitStoppedError(f"git {name}: {error}")
    return GitError(f"git {name}: {error}")


def _name(arguments: tuple[str, ...]) -> str:
    return next(word for word in arguments if not word.startswith("-"))


def _refusal(arguments: tuple[str, ...], code: int, errors: bytes) -> str:
    said = " ".join(one_line(errors.decode("utf-8", "replace")).split())
    if len(said) > _LONGEST:
        said = f"{said[: _LONGEST // 2]} ... {said[-_LONGEST // 2 :]}"
    return f"git {_name(arguments)}: {said or f'exit code {code}'}"


def listed(names: Iterable[str]) -> bytes:
    """Return names in the form in which git reads them from standard input."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


_UNFINISHED = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}


def unfinished(git_dir: Path) -> str | None:
    """Return which operation is unfinished in a repository, in words; None if there is none."""
    found = (what for name, what in _UNFINISHED.items() if (git_dir / name).exists())
    return next((f"{what} is in progress" for what in found), None)


def unfinished_in(git: Git) -> str | None:
    """Return the same as `unfinished` for the repository of a work tree. Raises GitError."""
    return unfinished(Path(git.line("rev-parse", "--absolute-git-dir")))
