"""Checks the machine and the folder: git, active runs, disk space, permissions, the config."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rooda.base.controls import one_line
from rooda.base.numbers import approximate_size, count
from rooda.base.paths import is_folder
from rooda.base.problems import InvalidInput, Problem, Severity, errors, warnings
from rooda.front.doctor.findings import Finding, Mark
from rooda.plan.layers import Layers
from rooda.plan.locate import CONFIG_NAME, global_folder
from rooda.plan.preflight.git import Obstacle, find_top
from rooda.plan.preflight.programs import LITTLE_DISK, check_disk, check_places
from rooda.plan.preflight.sandbox import NO_SANDBOX
from rooda.plan.preflight.state import check_state, record_place, warn_of_passing
from rooda.plan.preflight.validate import check_notify, moments_of
from rooda.plan.resolve import Values
from rooda.plan.settings.flag_names import IN_FILES
from rooda.plan.settings.settings import NOTIFY_URLS, SANDBOX_COMMAND, SANDBOX_KIND
from rooda.plan.world import World
from rooda.views.messages.targets import targets_of, unusable_addresses
from rooda.world.files.file_systems import find_shortage
from rooda.world.git.git import Git, GitError, unfinished
from rooda.world.git.git_files import check_git_folder
from rooda.world.git.identity import unknown_identity
from rooda.world.git.work_tree import folders_to_top, work_tree
from rooda.world.process.libc import has_socket_scopes
from rooda.world.sandbox.private_git import about_git
from rooda.world.sandbox.probe import try_bwrap
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind
from rooda.world.state.lock import LockHolder, is_locked, lock_holders, note_of_tree
from rooda.world.state.lock_note import LockNote, read_note
from rooda.world.state.record_place import find_place
from rooda.world.tools import Tools


def check_git(folder: Path, tools: Tools, *, needed: bool = False) -> Iterator[Finding]:
    """Check that git is installed and knows the user, and the state of the repository.

    `needed`: the settings need git, so defects are problems instead of warnings.
    """
    bad = Mark.PROBLEM if needed else Mark.WARNING
    if tools.git is None:
        text = "git is not installed: no list of changed files, no snapshots, no diff, no commits"
        yield Finding("git", bad, text, "Install git")
        return
    git = Git(folder, tools)
    try:
        check_git_folder(folder)
        yield Finding("git", Mark.OK, one_line(git.line("version")))
        check_git_folder(folder)
        yield _identity(git, tools, bad)
    except GitError as error:
        yield Finding("git", bad, str(error), "Check that `git status` works here")
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle):
        yield Finding("repository", bad, top.reason, top.fix)
        return
    yield Finding("repository", Mark.OK, f"inside the work tree {top}")
    yield from _state(git)


def _identity(git: Git, tools: Tools, bad: Mark) -> Finding:
    if (unknown := unknown_identity(git, tools)) is not None:
        return Finding("identity", bad, unknown.reason, unknown.fix)
    return Finding("identity", Mark.OK, "git knows a name and an email for commits")


def _state(git: Git) -> Iterator[Finding]:
    """Check for repository states in which an agent's commits get lost or fail."""
    try:
        folder = Path(git.line("rev-parse", "--absolute-git-dir"))
        is_detached = git.ask("symbolic-ref", "--quiet", "HEAD") is None
    except GitError as error:
        yield Finding(
            "repository", Mark.WARNING, str(error), "Run `git status` to see what is wrong"
        )
        return
    if is_detached:
        text = "HEAD is detached: commits of the agent belong to no branch"
        yield Finding("head", Mark.WARNING, text, "git switch -c BRANCH")
    if (words := unfinished(folder)) is not None:
        advice = "Finish or abort it: `git status` says how"
        yield Finding("unfinished", Mark.WARNING, words, advice)
    lock = folder / "index.lock"
    if os.path.lexists(lock):
        text = f"git's index is locked: {lock}"
        advice = "If no git command is running here, delete this file: a killed git left it behind"
        yield Finding("index", Mark.WARNING, text, advice)


# -- the folder -----------------------------------------------------------------------------


def check_lock(folder: Path) -> Finding:
    """Check whether a run is active here."""
    try:
        within = folders_to_top(folder)
        holders = [one for one in lock_holders(folder) if one.note or one.folder in within]
        if not holders and is_locked(within[-1]):
            holders = [LockHolder(None, within[-1], None)]
        found = find_place(folder, os.environ)
        left = note_of_tree(within[-1]) if found is None else read_note(found.state)
    except (OSError, RuntimeError) as error:
        text = f"rooda could not check whether a run is active here: {error}"
        return Finding(
            "lock", Mark.UNKNOWN, text, "Check that the folder exists, and its permissions"
        )
    at_work = [
        one for one in holders if one.note is None or one.note.process.is_alive(lambda: True)
    ]
    if at_work:
        one = at_work[0]
        text = f"a run is active in {one.folder}: {_described(one.pid, one.note)}"
        advice = "A second run has to wait; `rooda follow` shows this run, `rooda stop` ends it"
        return Finding("lock", Mark.OK, text, advice)
    if left is not None and not left.process.is_alive(lambda: False):
        text = f"an earlier run ({left.procedure}, pid {left.pid}) was killed here"
        advice = "Nothing to do: the next run cleans up"
        return Finding("lock", Mark.WARNING, text, advice)
    return Finding("lock", Mark.OK, "no run is active here")


def _described(pid: int | None, note: LockNote | None) -> str:
    named = f"pid {pid}" if pid is not None else "in another container"
    if note is None:
        return named
    since = note.since.replace("T", " ")
    return f"{note.procedure}, {named} on {note.host} since {since}"


def check_free_space(folder: Path, floor: int | None = None) -> Finding:
    """Check the free disk space; with less than the floor, no run starts."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        text = f"rooda could not read the free disk space: {error.strerror}"
        return Finding("disk", Mark.UNKNOWN, text, f"Check that {folder} exists")
    if (shortage := find_shortage(floor, {"a run": folder})) is not None:
        advice = "Free some space, or lower loop.min_free_disk"
        return Finding("disk", Mark.PROBLEM, str(shortage), advice)
    if found := check_disk(folder):
        return Finding("disk", Mark.WARNING, found[0].message, found[0].suggestion)
    if usage.total == 0 and usage.free < LITTLE_DISK:
        return Finding("disk", Mark.UNKNOWN, "this file system does not report its free space")
    return Finding("disk", Mark.OK, f"{approximate_size(usage.free)} of disk space left")


def check_permissions(values: Values, working_dir: Path, world: World) -> Iterator[Finding]:
    """Check that a run can write its files, and that rooda can read the user's config folder."""
    workspace = world.workspace()
    wrong = list(check_places(values, working_dir, workspace))
    for check in wrong:
        advice = IN_FILES.advice("; ".join(check.details))
        yield Finding("permissions", Mark.PROBLEM, check.text, advice)
    if not os.access(workspace, os.W_OK | os.X_OK):
        text = f"{workspace} can't be written to: agents can change nothing there"
        yield Finding("permissions", Mark.WARNING, text, "Correct the mode of the folder")
    elif not wrong:
        yield Finding("permissions", Mark.OK, f"{workspace} can be written to")
    yield from _check_record(world)
    yield _global_folder(world)


def _check_record(world: World) -> Iterator[Finding]:
    """Check that a run can write its record, and name the place."""
    try:
        place = record_place(world)
        found = [*check_state(world, place), *warn_of_passing(place)]
    except InvalidInput as invalid:
        found = [*invalid.problems]
    for one in found:
        mark = Mark.PROBLEM if one.severity is Severity.ERROR else Mark.WARNING
        yield Finding("record", mark, one.message, one.suggestion)
    if not found:
        yield Finding("record", Mark.OK, f"the record is in {place.state}")


def _global_folder(world: World) -> Finding:
    folder = global_folder(world)
    if folder is None:
        text = "HOME is not set: rooda reads no user config, and agents do not find their login"
        return Finding("global-config", Mark.WARNING, text, "Set HOME")
    if not is_folder(folder):
        return Finding("global-config", Mark.OK, f"no user config in {folder}")
    if not os.access(folder, os.R_OK | os.X_OK):
        text = f"rooda has no permission to read {folder}"
        return Finding("global-config", Mark.WARNING, text, f"chmod u+rwx {folder}")
    there = "" if (folder / CONFIG_NAME).exists() else "no "
    return Finding("global-config", Mark.OK, f"{there}user config in {folder}")


def check_config(layers: Layers, problems: Sequence[Problem]) -> Iterator[Finding]:
    """Report the number of errors and warnings in the config files."""
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
        text = f"no errors in {', '.join(names)}" if names else "no config file: defaults apply"
        yield Finding("config", Mark.OK, text)


# Checks whether a sandbox works on this machine, and says what it means to have none.


_NO_SCOPES = (
    "this kernel (older than Linux 6.12) can't hide abstract unix sockets: programs in the sandbox "
    "reach those of X11 and of old D-Bus services while they have the network"
)


def check_sandbox(values: Values, tools: Tools, working_dir: Path) -> Iterator[Finding]:
    """Check the sandbox that the settings choose, and whether bubblewrap works here."""
    kind = values[SANDBOX_KIND]
    if kind == SandboxKind.NONE:
        advice = "To hold it, set loop.sandbox.kind to bwrap (Linux) or command"
        yield Finding("sandbox", Mark.OK, f"no sandbox is on: {NO_SANDBOX}", advice)
    elif kind == SandboxKind.COMMAND:
        yield Finding("sandbox", Mark.OK, f"programs run behind `{values[SANDBOX_COMMAND]}`")
    is_chosen = kind == SandboxKind.BWRAP
    try:
        path = try_bwrap(tools)
    except SandboxError as error:
        yield Finding("bwrap", Mark.PROBLEM if is_chosen else Mark.ABSENT, str(error), error.fix)
        return
    state = "is on" if is_chosen else "would work here"
    yield Finding("bwrap", Mark.OK, f"sandbox bwrap {state}: {path}")
    if words := about_git(work_tree(working_dir)):
        yield Finding("git folder", Mark.OK, f"with sandbox bwrap, {words}")
    if not has_socket_scopes():
        advice = "Use a newer kernel, or sandbox.network: false"
        yield Finding("sockets", Mark.WARNING if is_chosen else Mark.OK, _NO_SCOPES, advice)


# Checks whether messages about runs can be sent from here. Sends none.


_TOPIC = "notify"
_TRY = "Try it: rooda notify --test"


def check_notifications(
    values: Values, tools: Tools, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield where messages would go; nothing if no notifications are configured."""
    moments = moments_of(values)
    if not moments:
        return
    for problem in check_notify(values):
        yield Finding(_TOPIC, Mark.WARNING, problem.message, problem.suggestion)
    wrong = unusable_addresses(values)
    for problem in wrong:
        yield Finding(_TOPIC, Mark.PROBLEM, problem.message, problem.suggestion)
    targets = targets_of(values, tools, environ)
    about = f"notifications ({', '.join(moments)})"
    services = [one.shown for one in targets if one.url]
    if services and not wrong:
        text = f"{about} go to {count(len(services), 'service')}: {', '.join(services)}"
        yield Finding(_TOPIC, Mark.OK, text, _TRY)
    elif targets and not services:
        yield Finding(_TOPIC, Mark.OK, f"{about} are shown by {targets[0].shown}", _TRY)
    elif not targets and not values[NOTIFY_URLS]:
        text = f"{about} only ring the bell of the terminal: there is no desktop here"
        yield Finding(_TOPIC, Mark.WARNING, text, "Set loop.notify.urls to send them to a service")
