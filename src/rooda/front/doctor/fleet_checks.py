"""Checks what `rooda fleet` and `rooda worker` need: extra, database, remote, slots, programs."""

import contextlib
import importlib.metadata
import importlib.util
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput
from rooda.base.times import format_seconds
from rooda.fleet.place import Place, find_place
from rooda.fleet.remote.fence import Remote, scratch_remote
from rooda.fleet.remote.own_fence import new_fence
from rooda.fleet.remote.probe import Probe, probe
from rooda.fleet.remote.replay import TooOldGit, check_version
from rooda.fleet.run_model import BRANCHES, Finish
from rooda.fleet.slot.slot import slots_root
from rooda.front.doctor.findings import Finding, Mark
from rooda.front.doctor.machine_checks import check_free_space
from rooda.plan.resolve import Values
from rooda.plan.settings.fleet_settings import FINISH, URL
from rooda.plan.settings.fleet_values import read_fleet
from rooda.plan.world import World
from rooda.world.git.git import Git, GitError
from rooda.world.state.home import VARIABLE
from rooda.world.tools import Command, Tools

_EXTRA = ("dbos", "sqlalchemy", "psycopg")
_INSTALL = "pip install 'rooda[fleet]'"
_GH_PATIENCE = 30.0  # seconds
_OFF = 5.0  # seconds: clocks that differ by less agree
_FAR = 0.25  # seconds for one question to the database


def check_fleet(world: World, config: str | None, tools: Tools) -> Iterator[Finding]:
    """Check everything that a fleet needs here. A failed check does not end the other ones."""
    has_extra, extra = _check_extra()
    yield extra
    yield from _check_git(world.folder, tools)
    yield from _check_slots(slots_root(world.environ))
    try:
        values, _ = read_fleet(world, {}, config)
        place = find_place(world.folder, values, tools)
    except InvalidInput as invalid:
        for one in invalid.problems:
            yield Finding("fleet-settings", Mark.PROBLEM, one.message, one.suggestion)
        return
    if has_extra:
        yield from _check_database(place)
    yield from _check_remote(place, tools)
    yield from _check_finish(values, world.folder, tools)


def _check_extra() -> tuple[bool, Finding]:
    missing = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        text = f"the extra for fleets is not installed: {', '.join(missing)} is missing"
        return False, Finding("fleet-extra", Mark.PROBLEM, text, _INSTALL)
    shown = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _EXTRA)
    return True, Finding("fleet-extra", Mark.OK, f"the extra for fleets is installed: {shown}")


def _check_git(folder: Path, tools: Tools) -> Iterator[Finding]:
    """Check that git can merge without a work tree."""
    try:
        check_version(Git(folder, tools))
    except TooOldGit as error:
        advice = "Install git 2.38 or newer; without it, runs that build on others do not start"
        yield Finding("fleet-git", Mark.WARNING, str(error), advice)
    except GitError as error:
        yield Finding("fleet-git", Mark.PROBLEM, str(error), "Install git")
    else:
        yield Finding("fleet-git", Mark.OK, "git can merge runs without a work tree")


# -- database ------------------------------------------------------------------------------


def _check_database(place: Place) -> Iterator[Finding]:
    from rooda.fleet.store.check import (  # the extra may be missing
        DatabaseFault,
        look_at_database,
    )

    topic = "fleet-database"
    file = place.database
    if file is not None and not file.exists():
        yield _check_new_file(topic, file)
        return
    try:
        facts = look_at_database(place.url)
    except DatabaseFault as fault:
        text = f"the database {place.shown_url} can't be used: {fault}"
        yield Finding(topic, Mark.PROBLEM, text, _database_advice(place))
        return
    took = f"{facts.latency * 1000:.1f} ms for a question"
    text = f"{facts.version} at {place.shown_url} can be written: {took}"
    is_far = facts.latency > _FAR
    advice = "Every iteration asks a few questions: a database nearby is better" if is_far else ""
    yield Finding(topic, Mark.WARNING if is_far else Mark.OK, text, advice)
    if file is None:
        yield _clocks(facts.ahead)


def _check_new_file(topic: str, file: Path) -> Finding:
    folder = _nearest(file.parent)
    if not os.access(folder, os.W_OK | os.X_OK):
        text = f"the database {file} can't be made: rooda has no permission to write to {folder}"
        return Finding(topic, Mark.PROBLEM, text, f"chmod u+rwx {folder}, or set {VARIABLE}")
    return Finding(topic, Mark.OK, f"no database yet: the first run makes {file}")


def _database_advice(place: Place) -> str:
    if place.database is not None:
        return (
            f"Check its permissions and its disk. If the file is broken, move {place.database} "
            "away: `rooda fleet adopt` brings the runs back from git"
        )
    return (
        f"Check fleet.url ({URL.variable}): host, port, user, password; that the server runs; and "
        "that the user may create tables and schemas there"
    )


def _clocks(ahead: float) -> Finding:
    if abs(ahead) < _OFF:
        return Finding("fleet-clock", Mark.OK, "the clock of the database agrees with this machine")
    how = "ahead of" if ahead > 0 else "behind"
    text = f"the clock of the database is {format_seconds(abs(ahead))} {how} this machine"
    advice = "Runs are safe all the same: no worker is judged by a clock. Limits may end late"
    return Finding("fleet-clock", Mark.OK, text, advice)


# -- git remote ----------------------------------------------------------------------------


def _check_remote(place: Place, tools: Tools) -> Iterator[Finding]:
    """Check the remote with pushes that are taken back."""
    topic = "fleet-remote"
    try:
        with _seen_from_here(place, tools) as remote:
            found = probe(remote)
    except (GitError, OSError) as error:
        text = f"rooda could not try the remote: {one_line(str(error))}"
        yield Finding(topic, Mark.UNKNOWN, text, "Check the folder for temporary files (TMPDIR)")
        return
    if place.fence is not None and found.records is not None:
        text = f"the repository {place.shown_remote} takes branches; records are in {place.fence}"
        yield Finding(topic, Mark.OK, text)
        return
    yield _judged(topic, found, place.shown_remote)


@contextlib.contextmanager
def _seen_from_here(place: Place, tools: Tools) -> Iterator[Remote]:
    """Yield the remote; a fence that does not exist yet is tried out in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="rooda-fence-") as folder:
        fence = place.fence
        if fence is not None and not fence.exists():
            fence = new_fence(Path(folder), place.git_dir, tools)
        with scratch_remote(place.remote, tools, fence=fence) as remote:
            yield remote


def _judged(topic: str, found: Probe, shown: str) -> Finding:
    if not found.is_reachable:
        text = f"the remote {shown} can't be reached: {found.words}"
        advice = "Check fleet.remote, and that `git ls-remote` works with it without a question"
        return Finding(topic, Mark.PROBLEM, text, advice)
    if not found.can_push:
        text = f"the remote {shown} takes no push to {BRANCHES}: {found.words}"
        advice = "Check your access there, and its hooks and rules for branches"
        return Finding(topic, Mark.PROBLEM, text, advice)
    if not found.is_atomic:
        text = f"the remote {shown} does not take two refs in one push (--atomic): {found.words}"
        advice = "Set receive.advertiseAtomic=true there, or use another server"
        return Finding(topic, Mark.PROBLEM, text, advice)
    if not found.takes_custom_refs:
        text = f"the remote {shown} takes branches only: {found.words}"
        advice = f"Nothing to do: records are kept as branches, in {found.records}"
        return Finding(topic, Mark.WARNING, text, advice)
    text = f"the remote {shown} takes pushes of a branch and its record in {found.records}"
    return Finding(topic, Mark.OK, text)


# -- slots and programs --------------------------------------------------------------------


def _check_slots(root: Path) -> Iterator[Finding]:
    topic = "fleet-slots"
    folder = _nearest(root)
    if not os.access(folder, os.W_OK | os.X_OK):
        text = f"slots can't be made in {root}: rooda has no permission to write to {folder}"
        yield Finding(topic, Mark.PROBLEM, text, f"chmod u+rwx {folder}, or set XDG_CACHE_HOME")
        return
    found = root.stat() if folder == root else None
    if found is not None and found.st_uid != os.geteuid():
        text = f"the folder of the slots, {root}, belongs to another user"
        yield Finding(topic, Mark.PROBLEM, text, "Set XDG_CACHE_HOME to a folder of your own")
    elif found is not None and stat.S_IMODE(found.st_mode) & 0o077:
        text = f"other users can look into the folder of the slots, {root}"
        yield Finding(topic, Mark.WARNING, text, f"chmod 700 {root}")
    else:
        yield Finding(topic, Mark.OK, f"slots are in {root}, for you alone")
    yield replace(check_free_space(folder), topic="fleet-disk")


def _check_finish(values: Values, folder: Path, tools: Tools) -> Iterator[Finding]:
    if values[FINISH] != Finish.PR:
        return
    topic = "fleet-gh"
    gh = tools.find("gh")
    if gh is None:
        text = "gh is not installed, and fleet.finish is pr: there will be no pull requests"
        yield Finding(topic, Mark.PROBLEM, text, "Install gh (https://cli.github.com)")
        return
    command = Command(
        what="gh",
        argv=(gh, "auth", "status"),
        cwd=folder,
        environ=_quiet(tools),
        timeout=_GH_PATIENCE,
        outside=True,
    )
    if tools.run(command).passed:
        yield Finding(topic, Mark.OK, f"gh is logged in: {gh}")
    else:
        yield Finding(topic, Mark.PROBLEM, "gh is not logged in: no pull requests", "gh auth login")


def _quiet(tools: Tools) -> Mapping[str, str]:
    return {**tools.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}


def _nearest(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
