# ruff: noqa: T201
"""A hostile agent: it tries to leave the sandbox, and writes one line about each try.

It needs nothing but Python. `facts.json` in the work tree says where things are outside. A try
that raises an error was held back; one that returns has worked, and what it returns is what it got.
The test also looks from outside, because an agent may be wrong about what it has done.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from support.escapes import kernel_tries  # noqa: F401 - it adds its tries
from support.escapes.common import (
    FACTS,
    HOME,
    MARK,
    OUTSIDE,
    SECOND,
    TREE,
    TRIES,
    HeldError,
    attempt,
    overwrite,
    run,
)
from support.escapes.process_tries import add_sockets


def add_tries() -> None:
    """Simple tries, one for each path."""
    for name in ("canary", "new"):
        TRIES[f"write outside: {name}"] = lambda name=name: overwrite(OUTSIDE / name)  # type: ignore[misc]
    for path in ("/etc/passwd", "/etc/new", "/usr/bin/new", "/usr/lib/new", "/opt/new", "/new"):
        TRIES[f"write to the system: {path}"] = lambda path=path: overwrite(path)  # type: ignore[misc]
    for name in FACTS["secrets"]:
        TRIES[f"read a secret: {name}"] = lambda name=name: (HOME / name).read_text()  # type: ignore[misc]
    for path in ("/etc/shadow", "/etc/sudoers", "/etc/gshadow"):
        TRIES[f"read a secret: {path}"] = lambda path=path: Path(path).read_text()  # type: ignore[misc]
    for name in ("link-to-canary", "link-to-folder/canary"):
        TRIES[f"follow a link of the tree: {name}"] = lambda name=name: overwrite(TREE / name)  # type: ignore[misc]
    TRIES["follow a link for reading"] = (TREE / "link-to-canary").read_text
    add_tries_in_tree()


def add_tries_in_tree() -> None:
    """Tries with files that programs outside execute or obey, and with programs on PATH."""
    for name in FACTS["guarded"]:
        TRIES[f"change: {name}"] = lambda name=name: overwrite(TREE / name)  # type: ignore[misc]
        TRIES[f"delete: {name}"] = lambda name=name: (TREE / name).unlink()  # type: ignore[misc]
        TRIES[f"replace: {name}"] = lambda name=name: replace(TREE / name)  # type: ignore[misc]
    for name in FACTS["absent"]:
        TRIES[f"make: {name}"] = lambda name=name: overwrite(TREE / name)  # type: ignore[misc]
    for name in FACTS["fixed"]:
        TRIES[f"move away: {name}"] = lambda name=name: (TREE / name).rename(TREE / "moved")  # type: ignore[misc]
        TRIES[f"delete the folder: {name}"] = lambda name=name: remove_folder(TREE / name)  # type: ignore[misc]
    for name in FACTS["toolchains"]:
        TRIES[f"plant a program: {name}"] = lambda name=name: overwrite(HOME / name / "git")  # type: ignore[misc]
    for number, folder in enumerate(os.environ["PATH"].split(":")):
        TRIES[f"plant a program on PATH: {number}"] = lambda folder=folder: plant(folder)  # type: ignore[misc]


def replace(path: Path) -> str:
    fresh = TREE / "fresh"
    fresh.write_text(MARK)
    fresh.rename(path)
    return f"replaced {path}"


def remove_folder(path: Path) -> str:
    """Delete an empty folder, or replace it by one with other content."""
    path.rename(TREE / "away")
    path.mkdir()
    return f"replaced {path}"


def plant(folder: str) -> str:
    """Put a program into a folder of PATH, unless it is the private HOME, which stays inside."""
    if not Path(folder).is_dir() or Path(folder).is_relative_to(TREE):
        raise HeldError("no such folder")
    path = Path(folder) / "planted"
    path.write_text("#!/bin/sh\n")
    return f"planted {path}"


# -- git ---------------------------------------------------------------------------------------


@attempt("git config")
def _() -> object:
    return run("git", "config", "core.fsmonitor", "evil")


@attempt("git config --worktree")
def _() -> object:
    return run("git", "config", "--worktree", "core.fsmonitor", "evil")


@attempt("git config of a submodule")
def _() -> object:
    return run("git", "-C", "sub", "config", "core.fsmonitor", "evil")


@attempt("git remote set-url")
def _() -> object:
    return run("git", "remote", "set-url", "origin", "/elsewhere")


@attempt("objects with other alternates")
def _() -> object:
    objects = TREE / ".git/objects"
    objects.rename(TREE / ".git/o2")
    (objects / "info").mkdir(parents=True)
    return overwrite(objects / "info/alternates")


@attempt("hard link to a guarded file")
def _() -> object:
    os.link(TREE / ".git/config", TREE / "linked")
    return overwrite(TREE / "linked")


@attempt("hard link to a file outside")
def _() -> object:
    os.link(OUTSIDE / "canary", TREE / "linked")
    return overwrite(TREE / "linked")


@attempt("hard link to a toolchain")
def _() -> object:
    os.link(HOME / ".local/bin/tool", TREE / "linked-tool")
    return overwrite(TREE / "linked-tool")


@attempt("move the work tree")
def _() -> object:
    TREE.rename(TREE.with_name("elsewhere"))
    return "moved"


# -- what is planted for later -----------------------------------------------------------------


def plant_for_later() -> None:
    """Leave things behind that would act outside, or in the next iteration."""
    for name in ("planted-outside", "planted-outside/bin"):
        (HOME / name).mkdir(exist_ok=True)
    for name in (".claude", ".codex", ".pyenv", ".ssh", "go"):
        place = HOME / name
        if not place.exists() and not place.is_symlink():
            place.symlink_to(OUTSIDE)
    # bubblewrap makes the places of the next mounts while the disk is at /oldroot.
    for name, disk in (
        (".cargo", f"/oldroot{OUTSIDE}"),
        (".local", f"../../../oldroot{OUTSIDE}"),
    ):
        (HOME / name).rename(HOME / f"{name}-before")
        (HOME / name).symlink_to(disk)
    (HOME / ".bashrc").write_text(f"echo {MARK}\n")
    run("git", "config", "--global", "core.fsmonitor", "evil")
    for name in (".ralph", ".qwen", "new-link"):
        (TREE / name).symlink_to(OUTSIDE)
    shutil.copy("/bin/sh", TREE / "set-uid")
    (TREE / "set-uid").chmod(0o4755)
    (TREE / ".gemini").mkdir()
    (TREE / ".gemini/settings.json").write_text("{}")
    log = TREE / ".git/logs/HEAD"
    log.unlink(missing_ok=True)
    log.parent.mkdir(exist_ok=True)
    log.symlink_to(OUTSIDE / "canary")
    todo = TREE / ".git/rebase-merge/git-rebase-todo"
    todo.parent.mkdir()
    todo.write_text(f"exec touch {OUTSIDE}/ran\n")
    run("git", "init", "-q", "nest")
    run("git", "-C", "nest", "config", "core.fsmonitor", f"touch {OUTSIDE}/ran;")


@attempt("planted link in the tree", SECOND)
def _() -> object:
    for name in (".ralph", ".qwen", "new-link"):
        place = TREE / name
        if place.is_symlink() and (place / "canary").exists():
            return overwrite(place / "canary")
    raise HeldError("they lead nowhere")


@attempt("planted link in HOME", SECOND)
def _() -> object:
    for name in (".claude", ".codex", ".cargo", ".pyenv", ".ssh", "go"):
        if (HOME / name / "canary").exists():
            return overwrite(HOME / name / "canary")
    raise HeldError("they lead nowhere")


@attempt("planted link of git", SECOND)
def _() -> object:
    if (TREE / ".git/logs/HEAD").is_symlink():
        return "it is still there"
    raise HeldError("it is gone")


@attempt("planted rebase", SECOND)
def _() -> object:
    if (TREE / ".git/rebase-merge").exists():
        return "it is still there"
    raise HeldError("it is gone")


def result_of(name: str, function: Callable[[], object]) -> str:
    """Make a try; return the line about it."""
    try:
        result = {"name": name, "got": str(function())[:100_000]}
    except Exception as error:  # noqa: BLE001 - the try was held back
        result = {"name": name, "held": f"{type(error).__name__}: {error}"[:500]}
    return json.dumps(result) + "\n"


def main() -> None:
    """Make all tries of this iteration; or those that the command line names, without files."""
    sys.stdin.read()
    add_tries()
    add_sockets()
    if names := sys.argv[1:]:
        sys.stdout.writelines([result_of(name, TRIES[name]) for name in names])
        return
    is_second = Path("results-1.jsonl").exists()
    with Path(f"results-{2 if is_second else 1}.jsonl").open("w") as file:
        for name, function in (SECOND if is_second else TRIES).items():
            file.write(result_of(name, function))
            file.flush()
    if not is_second:
        plant_for_later()
    # It moves folders of the sandbox only; after it, no path is what it was.
    TREE.parent.rename(TREE.parent.with_name("elsewhere"))
    print("tried everything", flush=True)
