"""Where a program is, and whether it can be started at all. Looks, and starts nothing."""

import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rooda.doctor.findings import Finding, Mark
from rooda.text.paths import file_mode
from rooda.workspace.state import read_plain_file

_FIRST_LINE = 512
_SHEBANG = re.compile(rb"#![ \t]*(\S+)[ \t]*([^\r\n]*)")
_ADVICE = {"node": "Install Node.js, 20 or newer (22 for qwen and copilot), and put it on the PATH"}


@dataclass(frozen=True, slots=True)
class Place:
    """The path of a program that may be executed; else what is wrong with what is there."""

    path: str | None
    trouble: str = ""
    advice: str = ""


def find(name: str, folder: Path, environ: Mapping[str, str]) -> Place:
    """Look for a program as the system does: by its path, or along the PATH."""
    path = environ.get("PATH", os.defpath)
    found = shutil.which(str(folder / name) if "/" in name else name, path=path)
    if found is not None:
        return Place(str(folder / found))
    places = (
        [folder / name] if "/" in name else [Path(one) / name for one in path.split(os.pathsep)]
    )
    return next((_unusable(one) for one in places if os.path.lexists(one)), Place(None))


def _unusable(path: Path) -> Place:
    """Why something of that name is no program."""
    mode = file_mode(path)
    if not mode:
        return Place(None, f"{path} is a link to nothing", "Install it again")
    if stat.S_ISDIR(mode):
        return Place(None, f"{path} is a folder", "Correct the path")
    return Place(None, f"{path} may not be executed", f"chmod +x {path}")


def interpreter_trouble(path: str, environ: Mapping[str, str]) -> Finding | None:
    """A script whose interpreter is not there: the system only says that the script is not."""
    try:
        first = read_plain_file(Path(path).resolve(), _FIRST_LINE)
    except (OSError, RuntimeError):
        return None  # it can be executed, and that is enough
    found = _SHEBANG.match(first)
    if found is None:
        return None
    name = _interpreter(os.fsdecode(found[1]), os.fsdecode(found[2]).split())
    if shutil.which(name, path=environ.get("PATH", os.defpath)) is not None:
        return None
    known = Path(name).name
    advice = _ADVICE.get(known, f"Install {known}, or correct the first line of {path}")
    return Finding(
        "interpreter", Mark.PROBLEM, f"it is a {known} script, and {name} is missing", advice
    )


def _interpreter(program: str, arguments: list[str]) -> str:
    """What really runs a script: `#!/usr/bin/env -S node --flag` means node."""
    if Path(program).name != "env":
        return program
    rest = (word for word in arguments if not word.startswith("-") and "=" not in word)
    return next(rest, program)
