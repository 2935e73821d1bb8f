"""Look at what a plan names: programs, files, folders. Reads, and changes nothing."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rooda.config.problems import Problem, Severity
from rooda.prompts.context import Context
from rooda.prompts.parts import Part, PromptError, TextPart
from rooda.text.sizes import approximate_size

LITTLE_DISK = 200 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, as a line of the dry run."""

    text: str
    details: tuple[str, ...] = ()
    problem: Problem | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def check_program(argv: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> Check:
    """The program of the AI command exists and can be executed."""
    name = argv[0]
    path = environ.get("PATH", os.defpath)
    found = shutil.which(str(folder / name) if "/" in name else name, path=path)
    if found:
        return Check(f"AI command binary exists: {found}")
    if "/" in name:
        exists = (folder / name).exists()
        details = (f"Looked for: {folder / name}",)
        word = "is not an executable file" if exists else "not found"
        fix = f"Make it executable: chmod +x {name}" if exists else "Correct the path"
    else:
        details = (f"Searched PATH: {path}",)
        word, fix = "not found", "Install it, or choose another with --ai-cmd or --ai-cmd-alias"
    text = f"AI command binary {word}: {name}"
    problem = Problem(f"{text} ({details[0]})", fix, title="AI command not found")
    return Check(text, details, problem)


def check_part(part: Part, field: str, file: str, line: int | None) -> Check | None:
    """A prompt file can be read. Text that is written in place is worth a line only when wrong."""
    try:
        part.read()
    except PromptError as error:
        problem = Problem(
            str(error), error.hint, file=file, line=line, field=field, title="Prompt file invalid"
        )
        return Check(f"Prompt file: {error}", (error.hint,), problem)
    if isinstance(part.source, TextPart):
        return None
    return Check(f"Prompt file exists: {part.source.name}")


def unused_parameters(part: Part, field: str, file: str, line: int | None) -> list[Problem]:
    """Parameters that the text never asks for."""
    try:
        unused = part.unused_parameters() if part.parameters else []
    except PromptError:
        return []  # said already
    return [
        Problem(
            f"the parameter {name!r} is not used: {part.source.name} has no ${{{name}}}",
            "Correct its name, or remove it",
            file=file,
            line=line,
            field=f"{field}.parameters",
            severity=Severity.WARNING,
        )
        for name in unused
    ]


def check_contexts(contexts: Iterable[Context]) -> Iterator[Check]:
    """Context can be read and says something."""
    for context in contexts:
        name = context.source.name
        message = hint = ""
        try:
            if not context.source.read().strip():
                message, hint = f"{name} is empty", "Write something, or leave it out"
        except PromptError as error:
            message, hint = str(error), error.hint
        if message:
            problem = Problem(message, hint, field="--context", title="Context invalid")
            yield Check(f"Context file: {message}", (hint,), problem)
        elif not isinstance(context.source, TextPart):
            yield Check(f"Context file exists: {name}")


def check_working_dir(folder: Path) -> Check | None:
    """The agent's folder is there; worth a line only when it is not."""
    if folder.is_dir():
        return None
    text = f"Working directory does not exist: {folder}"
    return Check(text, (), Problem(text, "Create it, or correct loop.working_dir"))


def check_workspace(folder: Path) -> Check | None:
    """Rooda can write its own folder; worth a line only when it can't."""
    state = folder / ".rooda"
    target = state if state.exists() else folder
    if target.is_dir() and os.access(target, os.W_OK | os.X_OK):
        return None
    text = f"Workspace can't be written to: {target}"
    fix = "Start rooda in a folder of your own, or correct the folder's mode"
    return Check(text, (fix,), Problem(text, fix, title="Workspace not writable"))


def check_disk(folder: Path) -> list[Problem]:
    """Warn before a night's work meets a full disk."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return []
    if free >= LITTLE_DISK:
        return []
    return [
        Problem(
            f"only {approximate_size(free)} of disk space left",
            "Free some before a long run",
            severity=Severity.WARNING,
        )
    ]
