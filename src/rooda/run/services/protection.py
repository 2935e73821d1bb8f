"""Find the files that the agent of a run may not change (`protect.paths`)."""

import contextlib
import os

from rooda.base.path_patterns import PathPatterns
from rooda.base.problems import InvalidInput, Problem
from rooda.loop.events.emitter import Emitter
from rooda.loop.events.protect import ProtectionStarted
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import PROTECT_ON_CHANGE, PROTECT_PATHS
from rooda.run.services.recording import looked_at
from rooda.world.files.plain_files import read_plain_file
from rooda.world.files.protected_files import CannotProtect, ProtectedFiles, matching_files
from rooda.world.state.folder import keep_file

_NAMES = "protected"  # the file with the names, in the folder of a run
_LARGEST_LIST = 64 * 1024 * 1024  # bytes


def protected_files(
    plan: Plan, run: str, emitter: Emitter, *, is_new: bool
) -> ProtectedFiles | None:
    """Return the protected files as they are now; None if there are none. Raises InvalidInput.

    What the agent of an earlier start has created is its own: a resumed run protects the files
    that existed when the run was new.
    """
    given = plan.values[PROTECT_PATHS]
    if not given:
        return None
    top = looked_at(plan)
    try:
        names = [*matching_files(top, PathPatterns(given))]
        if not is_new:
            known = _known_names(plan, run)
            names = [name for name in names if known is None or name in known]
        found = ProtectedFiles(top, names)
    except CannotProtect as error:
        raise InvalidInput([_problem(plan, str(error))]) from None
    if is_new:
        keep_file(plan.state, f"runs/{run}/{_NAMES}", b"\0".join(map(os.fsencode, names)))
    unmatched = [one for one in given if not any(map(PathPatterns([one]).match, names))]
    action = plan.values[PROTECT_ON_CHANGE]
    emitter(ProtectionStarted(len(found), action, tuple(unmatched) if is_new else ()))
    return found


def _known_names(plan: Plan, run: str) -> set[str] | None:
    """Return the names that a new run wrote down; None if they are gone."""
    path = plan.state / f"runs/{run}/{_NAMES}"
    with contextlib.suppress(OSError):
        return {os.fsdecode(name) for name in read_plain_file(path, _LARGEST_LIST).split(b"\0")}
    return None


def _problem(plan: Plan, message: str) -> Problem:
    values = plan.values
    advice = "Name fewer files in protect.paths, or make them readable"
    origin, field = values.origin(PROTECT_PATHS), values.field(PROTECT_PATHS)
    return Problem.at(origin, field, f"can't protect files: {message}", advice)
