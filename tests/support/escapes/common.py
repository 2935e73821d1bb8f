"""What the tries of the hostile agent share."""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

# The token is in every secret outside; it is the other way round here, so that the words of this
# agent do not contain it unless the agent has read it.
TOKEN = json.loads(Path("token.json").read_text())[::-1]
FACTS = json.loads(Path("facts.json").read_text().replace("TOKEN", TOKEN))
TREE, HOME, OUTSIDE = Path(FACTS["tree"]), Path(FACTS["home"]), Path(FACTS["outside"])
STATE = Path(FACTS["state"])
LIBC = ctypes.CDLL(None, use_errno=True)
MARK = "changed by the agent"
TRIES: dict[str, Callable[[], object]] = {}
SECOND: dict[str, Callable[[], object]] = {}  # in the second iteration


class HeldError(Exception):
    """The try did nothing."""


def attempt(name: str, tries: dict[str, Callable[[], object]] = TRIES) -> Callable[..., None]:
    def add(function: Callable[[], object]) -> None:
        tries[name] = function

    return add


def run(*words: str) -> str:
    """Run a program that has to succeed; return what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise HeldError(f"{words}: {done.stderr.strip()[-200:]}")
    return str(done.stdout)


def call(result: int) -> int:
    """Raise the error of a call of the C library."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def overwrite(path: Path | str) -> str:
    with open(path, "a") as file:  # noqa: PTH123
        file.write(MARK)
    return f"wrote to {path}"
