"""Checks before the first iteration that the programs of `verify` and `done_when` exist."""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rooda.base.paths import file_mode, is_folder
from rooda.base.problems import Problem, Severity
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import (
    DONE_WHEN,
    GIT_BRANCH,
    HOOKS_LOOP_START,
    VERIFY_BASELINE,
    VERIFY_COMMAND,
)
from rooda.plan.settings.text_kinds import done_command
from rooda.world.process.exits import Exited
from rooda.world.tools import Command, Tools

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
