"""The interpreter of a script, from its first line."""

import os
import re
from pathlib import Path

from rooda.world.files.plain_files import read_plain_file

_FIRST_LINE = 512  # bytes of a script
_SHEBANG = re.compile(rb"#![ \t]*(\S+)[ \t]*([^\r\n]*)")


def interpreter_of(path: Path) -> str | None:
    """Return the program that runs a script: `node` for `#!/usr/bin/env -S node --flag`.

    None for other programs, and if the file can't be read: it may be executable all the same.
    """
    try:
        found = _SHEBANG.match(read_plain_file(path, _FIRST_LINE, follow=True))
    except (OSError, RuntimeError):
        return None
    if found is None:
        return None
    program = os.fsdecode(found[1])
    if Path(program).name != "env":
        return program
    arguments = os.fsdecode(found[2]).split()
    return next((one for one in arguments if not one.startswith("-") and "=" not in one), program)
