"""Checks the programs, files and folders that a plan names. Changes nothing."""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooda.base.numbers import approximate_size
from rooda.base.paths import file_mode, is_folder
from rooda.base.problems import Problem, Severity
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.command import AgentCommand
from rooda.plan.layers import PhaseValue
from rooda.plan.own_files import trees_of_agents
from rooda.plan.prompts.parts import Context, Part, PromptError, TextPart
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import LOG_FILE, MIN_FREE_DISK, WORKING_DIR
from rooda.world.files.free_space import find_shortage
from rooda.world.git.work_tree import OUTSIDE, leads_out

LITTLE_DISK = 200 * 1024 * 1024


class Check(Struct, frozen=True):
    """The result of one check, as a line of the dry run."""

    text: str
    details: tuple[str, ...] = ()
    problem: Problem | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def check_program(
    argv: tuple[str, ...], command: AgentCommand, folder: Path, environ: Mapping[str, str]
) -> Check:
    """Check that the program of the AI command exists and can be executed."""
    name = argv[0]
    path = environ.get("PATH", os.defpath)
    found = shutil.which(str(folder / name) if "/" in name else name, path=path)
    if found:
        return Check(f"AI command binary exists: {found}")
    if "/" in name:
        mode = file_mode(folder / name)
        details = (f"Looked for: {without_secret_values(str(folder / name))}",)
        word = "is not an executable file" if mode else "not found"
        is_file = mode and not stat.S_ISDIR(mode)
        fix = f"Make it executable: chmod +x {name}" if is_file else "Correct the path"
    elif "=" in name:
        details = (f"Searched PATH: {path}",)
        word, fix = "not found", "Give variables with --env NAME=VALUE: no shell is used"
    else:
        details = (f"Searched PATH: {path}",)
        word, fix = "not found", "Install it, or choose another with --ai-cmd or --ai-cmd-alias"
    text = f"AI command binary {word}: {without_secret_values(name)}"
    problem = Problem.at(
        command.origin,
        command.field,
        f"{text} ({details[0]})",
        fix,
        title="AI command not found",
    )
    return Check(text, details, problem)


def check_part(part: Part, value: PhaseValue, most: int) -> Check | None:
    """Check that a prompt file can be read; None for text in the config that is in order.

    `most` is the size of the largest prompt, in bytes.
    """
    try:
        part.read(most)
    except PromptError as error:
        problem = Problem.at(
            value.origin, value.field, str(error), error.hint, title="Prompt file invalid"
        )
        return Check(f"Prompt file: {error}", (f"Set at {problem.place}", error.hint), problem)
    if isinstance(part.source, TextPart):
        return None
    return Check(f"Prompt file exists: {part.source.name}")


def unused_parameters(part: Part, value: PhaseValue, most: int) -> list[Problem]:
    """Return a warning for each parameter that the text does not contain."""
    try:
        unused = part.unused_parameters(most) if part.parameters else []
    except PromptError:
        return []  # `check_part` has reported it
    return [
        Problem.at(
            value.origin,
            f"{value.field}.parameters",
            f"the parameter {name!r} is not used: {part.source.name} has no ${{{name}}}",
            "Correct its name, or remove it",
            Severity.WARNING,
        )
        for name in unused
    ]


def check_contexts(contexts: Iterable[Context], most: int) -> Iterator[Check]:
    """Check that each context can be read and is not empty."""
    for context in contexts:
        name = context.source.name
        message = hint = ""
        try:
            if not context.source.read(most).strip():
                message, hint = f"{name} is empty", "Write something, or leave it out"
        except PromptError as error:
            message, hint = str(error), error.hint
        if message:
            problem = Problem(message, hint, field="--context", title="Context invalid")
            yield Check(f"Context file: {message}", (hint,), problem)
        elif not isinstance(context.source, TextPart):
            yield Check(f"Context file exists: {name}")


def check_places(values: Values, working_dir: Path, workspace: Path) -> Iterator[Check]:
    """Yield a check for each folder or file of the user that a run can't write to."""
    if not is_folder(working_dir):
        what = "is not a folder" if file_mode(working_dir) else "does not exist"
        text = f"Working directory {what}: {working_dir}"
        yield _wrong(text, "Create it, or name another", values, WORKING_DIR)
    log_file = values[LOG_FILE]
    trees = trees_of_agents(values, workspace)
    if log_file is not None and (reason := _unwritable_file(Path(log_file), trees)):
        text = f"Log file can't be written: {log_file}: {reason}"
        yield _wrong(text, "Choose another with --log-file", values, LOG_FILE)


def _wrong(text: str, fix: str, values: Values, setting: Setting[Any]) -> Check:
    problem = Problem.at(values.origin(setting), values.field(setting), text, fix)
    return Check(text, (fix,), problem)


def _writable_folder(path: Path) -> bool:
    return is_folder(path) and os.access(path, os.W_OK | os.X_OK)


def _unwritable_file(path: Path, trees: Sequence[Path]) -> str:
    """Return why a file can't be written; nothing if it can."""
    mode = file_mode(path)
    if leads_out(path, *trees):
        return OUTSIDE
    if mode == 0 and not is_folder(path.parent):
        return os.strerror(errno.ENOENT)
    if stat.S_ISDIR(mode):
        return os.strerror(errno.EISDIR)
    right = _writable_folder(path.parent) if mode == 0 else os.access(path, os.W_OK)
    return "" if right else os.strerror(errno.EACCES)


def check_floor(values: Values, places: Mapping[str, Path]) -> list[Problem]:
    """Refuse to start if there is less disk space than the settings ask for."""
    shortage = find_shortage(values[MIN_FREE_DISK], places)
    if shortage is None:
        return []
    advice = f"Free some space, or lower the floor with {MIN_FREE_DISK.flag_name} (0: no floor)"
    place = values.origin(MIN_FREE_DISK), values.field(MIN_FREE_DISK)
    return [Problem.at(*place, str(shortage), advice, title="Too little disk space")]


def check_disk(folder: Path) -> list[Problem]:
    """Warn if there is too little disk space for a long run."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return []
    free = usage.free
    if free >= LITTLE_DISK or usage.total == 0:  # some file systems do not report it
        return []
    return [
        Problem(
            f"only {approximate_size(free)} of disk space left",
            "Free some before a long run",
            severity=Severity.WARNING,
        )
    ]
