"""The machine and the folder: runs at work, disk space, what can be written, the config."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from rooda.config.checks import LITTLE_DISK, check_disk, check_places
from rooda.config.layers import Layers
from rooda.config.locate import CONFIG_NAME, global_folder
from rooda.config.problems import Problem, errors, warnings
from rooda.config.resolve import Values
from rooda.config.world import World
from rooda.doctor.findings import Finding, Mark
from rooda.text.numbers import approximate_size, count
from rooda.text.paths import is_folder
from rooda.workspace.lock import Note, read_note, who_holds
from rooda.workspace.tree import work_tree


def look_at_lock(folder: Path) -> Finding:
    """Whether a run is at work here, and whose."""
    try:
        top = work_tree(folder)
        pid, note = who_holds(top)
        left = read_note(top)
    except (OSError, RuntimeError) as error:
        text = f"nobody can tell whether a run is at work here: {error}"
        return Finding("lock", Mark.UNKNOWN, text, "Check the folder's mode")
    if pid is not None and (note is None or note.process.is_alive):
        text = f"a run is at work in {top}: {_who(pid, note)}"
        advice = "A second one has to wait; `rooda follow` shows it, `rooda stop` ends it"
        return Finding("lock", Mark.OK, text, advice)
    if left is not None and not left.process.is_alive:
        text = f"an earlier run ({left.procedure}, pid {left.pid}) was killed here"
        advice = "Nothing to do: the next run clears what it left"
        return Finding("lock", Mark.WARNING, text, advice)
    return Finding("lock", Mark.OK, "no run is at work here")


def _who(pid: int, note: Note | None) -> str:
    if note is None:
        return f"pid {pid}"
    since = note.since.replace("T", " ")
    return f"{note.procedure}, pid {pid} on {note.host} since {since}"


def look_at_disk(folder: Path) -> Finding:
    """How much room there is."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        text = f"nobody can tell how much disk space is left: {error.strerror}"
        return Finding("disk", Mark.UNKNOWN, text, "Check the folder")
    if found := check_disk(folder):
        return Finding("disk", Mark.WARNING, found[0].message, found[0].suggestion)
    if usage.total == 0 and usage.free < LITTLE_DISK:
        return Finding("disk", Mark.UNKNOWN, "this file system does not tell how much is left")
    return Finding("disk", Mark.OK, f"{approximate_size(usage.free)} of disk space left")


def look_at_places(values: Values, working_dir: Path, world: World) -> Iterator[Finding]:
    """What a run writes to, and where the user's own config would be."""
    wrong = list(check_places(values, working_dir, world.folder))
    for check in wrong:
        yield Finding("permissions", Mark.PROBLEM, check.text, "; ".join(check.details))
    if not wrong:
        yield Finding("permissions", Mark.OK, f"{world.folder} can be written to")
    yield _global_folder(world)


def _global_folder(world: World) -> Finding:
    folder = global_folder(world)
    if folder is None:
        text = "there is no HOME, so no config of your own is read, and agents find no login"
        return Finding("global-config", Mark.WARNING, text, "Set HOME")
    if not is_folder(folder):
        return Finding("global-config", Mark.OK, f"no config of your own in {folder}")
    if not os.access(folder, os.R_OK | os.X_OK):
        text = f"{folder} may not be read"
        return Finding("global-config", Mark.WARNING, text, f"chmod u+rwx {folder}")
    there = "" if (folder / CONFIG_NAME).exists() else "no "
    return Finding("global-config", Mark.OK, f"{there}config of your own in {folder}")


def look_at_config(layers: Layers, problems: Sequence[Problem]) -> Iterator[Finding]:
    """How many things are wrong with the config files, and how to see them."""
    wrong, doubtful = errors(problems), warnings(problems)
    advice = "`rooda config check` shows them"
    if wrong:
        text = f"the configuration has {count(len(wrong), 'error')}: {wrong[0].message}"
        yield Finding("config", Mark.PROBLEM, text, advice)
    if doubtful:
        text = f"the configuration has {count(len(doubtful), 'warning')}: {doubtful[0].message}"
        yield Finding("config", Mark.WARNING, text, advice)
    if not wrong and not doubtful:
        names = [layer.file for layer in layers.files() if layer.file]
        text = f"nothing is wrong with {', '.join(names)}" if names else "no config file: defaults"
        yield Finding("config", Mark.OK, text)
