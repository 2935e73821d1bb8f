"""Checks the programs, files and folders that a plan names. Changes nothing."""

import errno
import os
import re
import shlex
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
from rooda.plan.settings.settings import (
    DONE_WHEN,
    GIT_BRANCH,
    HOOKS_LOOP_START,
    LOG_FILE,
    MIN_FREE_DISK,
    VERIFY_BASELINE,
    VERIFY_COMMAND,
    WORKING_DIR,
)
from rooda.plan.settings.text_kinds import done_command
from rooda.world.files.file_systems import find_shortage
from rooda.world.git.work_tree import OUTSIDE, leads_out
from rooda.world.process.exits import Exited
from rooda.world.tools import Command, Tools

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


# Checks before the first iteration that the programs of `verify` and `done_when` exist.


_TIMEOUT = 10.0
# What the shell reads before a program, assignments, then one word in which the shell expands
# nothing: with anything else, only the shell knows which program it is.
_BEFORE = r"(?:\s|!(?=\s)|\(|\{(?=\s)|(?:exec|env)\s)*+"
_FIRST_WORD = re.compile(
    rf"""{_BEFORE}(?:cd\s+(?P<folder>[\w./+-]+)\s*&&{_BEFORE})?+"""
    r"""(?P<before>(?:[A-Za-z_]\w*=(?:[\w./:@%+,-]|'[^']*'|"[^"$`\\]*")*[ \t]+)*)"""
    r"""(?P<word>(?:[\w./+-]|'[^']*'|"[^"$`\\]*"|\\[^\n])+)(?=[\s;|&<>)]|$)"""
)

# A condition without another branch: the check would pass without its program.
_IF = re.compile(r"\s*if\s(?P<condition>[^;\n]*)[;\n]\s*then\b(?!.*\b(?:else|elif)\b)", re.DOTALL)
# After these the shell runs another command, whose exit code may be that of the check.
_ANOTHER = re.compile(r"\|(?!&?\s*$)|[;\n](?=\s*\S)|(?<![&<>])&(?![&>])")


def check_programs(
    values: Values, folder: Path, environ: Mapping[str, str], tools: Tools
) -> Iterator[Problem]:
    """Yield the problems of the commands that decide about an iteration."""
    yield from check_verify(values, folder, environ, tools)
    yield from check_done_command(values, folder, environ, tools)


def check_verify(
    values: Values, folder: Path, environ: Mapping[str, str], tools: Tools
) -> Iterator[Problem]:
    """Yield a problem if the program of `verify` does not exist or can't be executed.

    It is a warning where the program may appear before its first use: where a baseline does not
    stop the run, the agent may create it, and so may a hook before the first iteration or another
    branch.
    """
    word, what = _missing(values[VERIFY_COMMAND], folder, environ, tools)
    if not what:
        return
    may_appear = bool(values[HOOKS_LOOP_START]) or ("/" in word and values[GIT_BRANCH] is not None)
    stops = values[VERIFY_BASELINE] in ("auto", "require")
    fix = "Correct the command or install the program"
    if stops:
        fix += f", or start with {VERIFY_BASELINE.flag_name} warn if the agent is to create it"
    yield Problem.at(
        values.origin(VERIFY_COMMAND),
        values.field(VERIFY_COMMAND),
        f"the program of the check {what}: {without_secret_values(word)}",
        fix,
        Severity.ERROR if stops and not may_appear else Severity.WARNING,
        title="Verify can't run",
    )


def check_done_command(
    values: Values, folder: Path, environ: Mapping[str, str], tools: Tools
) -> Iterator[Problem]:
    """Warn if the program that says whether the work is done does not exist.

    The agent may create it: until then the work is not done.
    """
    word, what = _missing(done_command(values[DONE_WHEN]), folder, environ, tools)
    if what:
        yield Problem.at(
            values.origin(DONE_WHEN),
            values.field(DONE_WHEN),
            f"the program that says whether the work is done {what}: {without_secret_values(word)}",
            "Correct the command or install the program, unless the agent is to create it",
            Severity.WARNING,
        )


def _missing(
    command: str | None, folder: Path, environ: Mapping[str, str], tools: Tools
) -> tuple[str, str]:
    """Return the program that a command needs, and why it can't run; empty if it can."""
    word = needed_program(command or "")
    if not word or not is_folder(folder):
        return "", ""
    if "/" in word:
        return word, _missing_file(folder / word)
    return word, _missing_program(word, folder, environ, tools)


def needed_program(command: str) -> str:
    """Return the program without which a shell command can't pass: the first one. Pure.

    After `!` and `if`, a check without its program would always pass: it is needed as well.

    Empty where only the shell can tell, and where another command may pass instead (`a || b`).
    Quotes after it are not read: an operator in them leaves the answer to the first run.
    """
    if condition := _IF.match(command):
        command = condition["condition"]
    found = _FIRST_WORD.match(command)
    if (
        found is None
        or _ANOTHER.search(command, found.end())
        or "PATH=" in found["before"]
        or found["word"].isdigit()
    ):
        return ""
    word = "".join(shlex.split(found["word"]))
    if "/" in word and found["folder"]:
        word = os.path.join(found["folder"], word)  # noqa: PTH118 - `./` stays as the user wrote it
    return "" if word.startswith("-") else word


def _missing_file(path: Path) -> str:
    mode = file_mode(path)
    if not mode:
        return "does not exist"
    is_program = stat.S_ISREG(mode) and os.access(path, os.X_OK)
    return "" if is_program else "is not an executable file"


def _missing_program(word: str, folder: Path, environ: Mapping[str, str], tools: Tools) -> str:
    """Look on PATH, then ask the shell, which also knows its own commands."""
    if shutil.which(word, path=environ.get("PATH", os.defpath)):
        return ""
    asked = (*tools.shell('command -v "$1"'), "sh", word)
    finished = tools.run(Command("", asked, folder, environ, _TIMEOUT))
    is_missing = isinstance(finished.exit, Exited) and not finished.passed
    return "does not exist" if is_missing else ""
