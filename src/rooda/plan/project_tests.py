"""Finds the command that tests a project, from the files in its folder. Runs no program."""

import itertools
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.base.formats import json_text, parse_json
from rooda.base.paths import file_mode
from rooda.world.files.sight import read_named

_MOST_READ = 1024 * 1024  # bytes of a file
_MOST_LISTED = 1000  # names in a folder of tests

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # the first is the one that make uses
_VARIABLE = r":{0,2}=|[ \t]*[\w.]+[ \t]*(?:[?+!]|:{1,3})?="  # also one of a single target
_RULE = re.compile(rf"^([^\s#:=][^#:=\n]*):(?!{_VARIABLE})", re.MULTILINE)

_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "conftest.py")
_PYTEST_MENTIONS = (
    ("pyproject.toml", re.compile(r"^[^#\n]*\bpytest\b", re.MULTILINE)),
    ("tox.ini", re.compile(r"^\[pytest\]", re.MULTILINE)),
    ("setup.cfg", re.compile(r"^\[tool:pytest\]", re.MULTILINE)),
)
_PYTHON_TESTS = re.compile(r"(test_.*|.*_test)\.py")
_PYTHON_RUNNERS = (("uv.lock", "uv run"), ("poetry.lock", "poetry run"))

_NODE_PLACEHOLDER = "no test specified"  # in the script that `npm init` writes
_NODE_RUNNERS = (
    ("pnpm-lock.yaml", "pnpm test"),
    ("yarn.lock", "yarn test"),
    ("bun.lock", "bun run test"),  # `bun test` is bun's own runner, not the script
    ("bun.lockb", "bun run test"),
)


class CheckCommand(Struct, frozen=True):
    """A command that tests the project, and what it was found by."""

    command: str
    reason: str


def find_tests(folder: Path) -> tuple[CheckCommand, ...]:
    """Return the test command of each kind of project in the folder, the most likely first."""
    found = (kind(folder) for kind in _KINDS)
    return tuple(one for one in found if one is not None)


def _make(folder: Path) -> CheckCommand | None:
    for name in _MAKEFILES:
        text = _text(folder / name)
        if text is not None:
            targets = {target for rule in _RULE.findall(text) for target in rule.split()}
            has_test = "test" in targets
            return CheckCommand("make test", f"{name} has the target test") if has_test else None
    return None


def _python(folder: Path) -> CheckCommand | None:
    reason = _pytest_reason(folder)
    if reason is None:
        return None
    runner = next((f"{words} " for lock, words in _PYTHON_RUNNERS if _is_file(folder / lock)), "")
    return CheckCommand(f"{runner}pytest", reason)


def _pytest_reason(folder: Path) -> str | None:
    for name, mention in _PYTEST_MENTIONS:
        if mention.search(_text(folder / name) or ""):
            return f"{name} names pytest"
    for name in _PYTEST_FILES:
        if _is_file(folder / name):
            return f"there is a {name}"
    for name in ("tests", "test"):
        if any(map(_PYTHON_TESTS.fullmatch, _names(folder / name))):
            return f"{name}/ has tests in Python"
    return None


def _node(folder: Path) -> CheckCommand | None:
    text = _text(folder / "package.json")
    script = json_text(parse_json(text or ""), "scripts", "test").strip()
    if not script or _NODE_PLACEHOLDER in script:
        return None
    locks = (words for lock, words in _NODE_RUNNERS if _is_file(folder / lock))
    return CheckCommand(next(locks, "npm test"), "package.json has the script test")


def _rust(folder: Path) -> CheckCommand | None:
    return _if_there(folder, "Cargo.toml", "cargo test")


def _go(folder: Path) -> CheckCommand | None:
    return _if_there(folder, "go.mod", "go test ./...")


_KINDS: Sequence[Callable[[Path], CheckCommand | None]] = (_make, _python, _node, _rust, _go)


def _if_there(folder: Path, name: str, command: str) -> CheckCommand | None:
    return CheckCommand(command, f"there is a {name}") if _is_file(folder / name) else None


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(file_mode(path))


def _text(path: Path) -> str | None:
    """Return the text of a file; None if there is no such file, or if it can't be read."""
    try:
        return read_named(path, _MOST_READ).decode("utf-8-sig", "replace")
    except OSError:
        return None


def _names(folder: Path) -> list[str]:
    """Return the first names in a folder; none if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in itertools.islice(entries, _MOST_LISTED)]
    except OSError:
        return []
