"""Git as rooda uses it: the git command, without questions, without hooks, and within bounds.

Commits and pushes, which run the user's hooks, are not made here but in a tree of their own.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rooda.text.controls import one_line

_PATIENCE = 120.0  # for one plumbing command
_LONGEST = 600  # of what git says, in a message of ours

# Nothing may ask, and nothing may wait: nobody is there.
UNATTENDED: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_PAGER": "cat",
    "GCM_INTERACTIVE": "never",
}
# A hook or a shell may have set these; they would point us elsewhere, or change what git means.
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
        "GPG_TTY",  # whoever signs would ask there
    }
)
_PLUMBING: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # the same for a git that doesn't know the line above
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
}


class GitError(Exception):
    """What git said when it refused, on one line."""


class GitTimeoutError(GitError):
    """Git took too long; to try again would take as long."""


def unattended(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git never asks and works where it is told to.

    Ssh can't ask either: it is in a session without a terminal. Its command stays as it is, since
    one in the environment would take the place of the one in the user's config.
    """
    kept = {name: value for name, value in environ.items() if name not in _MISLEADING}
    return {**kept, **UNATTENDED}


class Git:
    """Runs plumbing commands in one folder; never on the network, and never in the user's name."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        more: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        kept = {name: value for name, value in environ.items() if name not in _DATES}
        self._environ = {**unattended(kept), **_PLUMBING, **(more or {})}
        self._command = ["git"]
        for key, value in {**_QUIET, **(settings or {})}.items():
            self._command += ["-c", f"{key}={value}"]

    def __call__(self, *arguments: str, given: bytes = b"", umask: int = -1) -> bytes:
        """What git prints. Raises GitError with what it says, or why it could not be run."""
        done = self._run(arguments, given, umask)
        if done.returncode != 0:
            raise GitError(_refusal(arguments, done))
        return done.stdout

    def line(self, *arguments: str) -> str:
        """One line of what git prints."""
        return os.fsdecode(self(*arguments)).removesuffix("\n")

    def ask(self, *arguments: str, given: bytes = b"") -> str | None:
        """What git prints as text, or None where its answer is no."""
        done = self._run(arguments, given, -1)
        if done.returncode not in (0, 1):
            raise GitError(_refusal(arguments, done))
        return os.fsdecode(done.stdout).removesuffix("\n") if done.returncode == 0 else None

    def _run(
        self, arguments: tuple[str, ...], given: bytes, umask: int
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [*self._command, *arguments],
                cwd=self.folder,
                env=self._environ,
                input=given,
                capture_output=True,
                timeout=_PATIENCE,
                start_new_session=True,  # Ctrl+C at the terminal is for us alone
                umask=umask,
                check=False,
            )
        except subprocess.TimeoutExpired:
            said = f"git {arguments[0]} took longer than {_PATIENCE:.0f} seconds"
            raise GitTimeoutError(said) from None
        except OSError as error:
            raise GitError(f"git {arguments[0]}: {error}") from None


def _refusal(arguments: tuple[str, ...], done: subprocess.CompletedProcess[bytes]) -> str:
    said = " ".join(one_line(done.stderr.decode("utf-8", "replace")).split())
    if len(said) > _LONGEST:
        said = f"{said[: _LONGEST // 2]} ... {said[-_LONGEST // 2 :]}"
    command = next(word for word in arguments if not word.startswith("-"))
    return f"git {command}: {said or f'exit code {done.returncode}'}"


_UNFINISHED = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}


def unfinished(git_dir: Path) -> str | None:
    """What has been begun and not finished in a repository, in words."""
    found = (what for name, what in _UNFINISHED.items() if (git_dir / name).exists())
    return next((f"{what} is in progress" for what in found), None)
