"""What a slot needs beyond git: copies of files of the user's checkout, and a setup command."""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import without_secret_values
from rooda.fleet.run_model import FleetTask
from rooda.fleet.slot.slot_clone import make_real_folder, remove_tree
from rooda.world.files.matching import matching
from rooda.world.files.plain_files import read_plain_file
from rooda.world.files.sight import Sight, read_named
from rooda.world.git.git import Git, GitError
from rooda.world.git.work_tree import leads_out
from rooda.world.process.first_moment import own_module
from rooda.world.tools import Command, Tools

# The command lines that start the rooda of a run, in its slot or in a folder like it.


TASK_FILE = "../task.md"  # beside the work tree, at the same place in every slot


def first_words(task: FleetTask) -> list[str]:
    """Return the command of a new run, and its prompt."""
    return ["loop", TASK_FILE] if task.procedure is None else ["run", task.procedure]


def context_words(task: FleetTask) -> list[str]:
    """Return the words that give the text of a task to its procedure.

    A file: an argument has a limit, and other users can read it. To resume, too: in each slot the
    file is elsewhere.
    """
    return ["--context", TASK_FILE] if task.procedure is not None and task.text else []


def words_in_sandbox(
    task: FleetTask, flags: Sequence[str], record: str, command: str, *more: str
) -> tuple[str, ...]:
    """Return the words of a rooda that runs a command where the iterations of a run are at work.

    It makes the sandbox from the same flags, variables and config files as they do. So a command
    is never outside while they are inside.
    """
    alone = ("--record", record, "--only-run", command, *more)
    return tuple(own_module("rooda", *first_words(task), *alone, *context_words(task), *flags))


INCLUDE = ".worktreeinclude"  # patterns of ignored files, in the form of .gitignore
_LAST_WORDS = 1500  # characters
_LARGEST_INPUT = 64 * 1024**2  # bytes


class SetupFailed(Exception):  # noqa: N818 - what happened
    """Why a slot is not ready for a run."""


class Setup(Struct, frozen=True):
    """The setup command of a fleet, and the files whose changes make it run again.

    `argv` runs it in the sandbox of a run, as far as the run has one; without these words, a shell
    runs it. In another `sandbox` it runs again: the home folder there is another one.
    """

    command: str
    inputs: tuple[str, ...] = ()
    timeout: float = 1800.0
    argv: tuple[str, ...] = ()
    sandbox: str = ""


class SetupFiles(Struct, frozen=True):
    """Where a slot keeps the mark of the last setup, and what it printed."""

    mark: Path
    log: Path


def run_setup(
    setup: Setup,
    work: Path,
    files: SetupFiles,
    tools: Tools,
    environ: Mapping[str, str],
    tell: Callable[[str], object] = lambda _: None,
) -> bool:
    """Run the setup command unless it ran with the same inputs; return whether it ran.

    Raises SetupFailed with the end of what it printed.
    """
    wanted = _mark(setup, work)
    if _read(files.mark) == wanted.encode():
        return False
    remove_tree(files.mark)
    shown = one_line(without_secret_values(setup.command))
    tell(f"setup: {shown}")
    done = tools.run(
        Command(
            what="setup",
            argv=setup.argv or tools.shell(setup.command),
            cwd=work,
            environ=environ,
            timeout=setup.timeout,
        )
    )
    _write_private(files.log, done.output)
    if not done.passed:
        said = Masker(os.environ).text(without_secret_values(done.last_words(_LAST_WORDS)))
        raise SetupFailed(f"the setup command failed: {shown}: {done.error}\n{said}".rstrip())
    _write_private(files.mark, wanted.encode())
    return True


def _mark(setup: Setup, work: Path) -> str:
    """Return a hash of the command and of the contents of its inputs."""
    digest = hashlib.sha256(setup.command.encode())
    digest.update(b"\0%b\0" % setup.sandbox.encode())
    for name in _matching(setup.inputs, work):
        content = _content(work, name)
        digest.update(b"\0%b\0" % os.fsencode(name))
        digest.update(b"-" if content is None else hashlib.sha256(content).digest())
    return digest.hexdigest()


def _matching(patterns: Sequence[str], work: Path) -> list[str]:
    """Return the files that the patterns match, and the patterns that match none."""
    found: set[str] = set()
    for one in patterns:
        found.update(matching([one], work) or [one])
    return sorted(found)


def _content(work: Path, name: str) -> bytes | None:
    """Return the content of a file; no link leads out of the work tree."""
    try:
        return read_named(work / name, _LARGEST_INPUT, Sight((work.resolve(),), of_sandbox=False))
    except (OSError, ValueError):
        return None


def _read(path: Path) -> bytes | None:
    try:
        return read_plain_file(path, _LARGEST_INPUT)
    except OSError:
        return None


def _write_private(path: Path, content: bytes) -> None:
    remove_tree(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


# -- copied files --------------------------------------------------------------------------


def files_to_copy(checkout: Path, names: Sequence[str], tools: Tools) -> list[str]:
    """Return the ignored files of the user's checkout that slots get: named, or in INCLUDE.

    A name is a path from the top, and may have wildcards. Raises SetupFailed.
    """
    patterns = [f"--exclude=/{name.removeprefix('./').lstrip('/')}" for name in names]
    if (checkout / INCLUDE).is_file():
        patterns.append(f"--exclude-from={checkout / INCLUDE}")
    if not patterns:
        return []
    git = Git(checkout, tools)
    try:
        listed = git("ls-files", "-z", "--others", "--ignored", *patterns)
        _, ignored = git.answer("check-ignore", "-z", "--stdin", given=listed)
    except GitError as error:
        raise SetupFailed(f"rooda could not list the files to copy: {error}") from None
    return [name for name in os.fsdecode(ignored).split("\0") if name]


def copy_files(checkout: Path, names: Sequence[str], work: Path) -> None:
    """Copy files with their modes; a link in the work tree is replaced and never followed.

    Raises SetupFailed, for example for a link that leads out of the checkout.
    """
    for name in names:
        source = checkout / name
        if leads_out(source, checkout):
            raise SetupFailed(
                f"{one_line(name)} is not copied into slots: it is a link that leads out of "
                f"{checkout}. Put the file itself there, or take its name out of `copy`"
            )
        try:
            _copy(source, work, name)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SetupFailed(f"{one_line(name)} was not copied into the slot: {reason}") from None


def _copy(source: Path, work: Path, name: str) -> None:
    make_real_folder(work, name)
    target = work / name
    remove_tree(target)
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(mode):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(source, target, follow_symlinks=False)
            target.chmod(stat.S_IMODE(mode))
