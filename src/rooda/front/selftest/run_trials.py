"""Runs the trials, two at a time, each in a private folder below one temporary folder."""

import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from rooda.front.demo.demo_repository import make_repository
from rooda.front.selftest.process_trials import attack_trials, matrix_trials
from rooda.front.selftest.sandbox_trials import sandbox_trials
from rooda.front.selftest.scratch import Canceled, TrialFailed, scratch_folder
from rooda.front.selftest.trial import Need, Results, Row, Trial, failed, judge, not_here
from rooda.front.selftest.work_trials import work_trials
from rooda.world.git.git import GitError
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.libc import has_socket_scopes
from rooda.world.sandbox.probe import try_bwrap
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.tools import Tools

# What this machine lacks for a promise, with the reason in words.


def missing(environ: Mapping[str, str]) -> dict[Need, str]:
    """Return what this machine lacks, each with the reason."""
    found = {
        Need.GIT: _git(environ),
        Need.SUBREAPER: _subreaper(),
        Need.PROC: _proc(),
        Need.PIDFD: _pidfd(),
        Need.BWRAP: _bwrap(environ),
        Need.SCOPE: _scope(),
    }
    return {need: reason for need, reason in found.items() if reason}


def _git(environ: Mapping[str, str]) -> str:
    is_there = shutil.which("git", path=environ.get("PATH", os.defpath)) is not None
    return "" if is_there else "git is not installed: no snapshots, no commits"


def _subreaper() -> str:
    if platform.system() == "Linux":
        return ""
    return (
        "this system has no child subreaper: a process that leaves its group, its session and its "
        "environment is not found"
    )


def _proc() -> str:
    try:
        is_ours = Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        is_ours = False
    return "" if is_ours else "there is no /proc of this machine's own processes"


def _pidfd() -> str:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return (
            "this system has no pidfd: rooda checks a process before each signal, but the pid may "
            "belong to another process a moment later"
        )
    return ""


def _bwrap(environ: Mapping[str, str]) -> str:
    try:
        try_bwrap(Tools(environ))
    except SandboxError as error:
        return f"{error}. {error.fix}"
    return ""


def _scope() -> str:
    if has_socket_scopes():
        return ""
    return (
        "this kernel has no Landlock scopes (Linux 6.12): with a network, the sandbox does not "
        "keep an agent from abstract sockets, such as those of a desktop"
    )


_AT_ONCE = 2
_LOOK = 0.1  # seconds between two looks at the signals


def all_trials() -> tuple[Trial, ...]:
    """Return all trials in the order of the table."""
    return (*work_trials(), *attack_trials(), *matrix_trials(), *sandbox_trials())


def run_trials(
    trials: Sequence[Trial], interrupts: Interrupts, show: Callable[[Row], None]
) -> Results | None:
    """Run the trials; `show` gets each row as soon as it is there.

    Returns None if the user interrupted it. Nothing is left behind in either case. Raises OSError
    if there is no place for the files.
    """
    began = time.monotonic()
    parent = Path(tempfile.mkdtemp(prefix="rooda-selftest-")).resolve()
    try:
        lacks = missing(os.environ)
        template = None if Need.GIT in lacks else parent / "template"
        if template is not None and (trouble := _make(template, interrupts)):
            lacks[Need.GIT], template = trouble, None
        rows = _run_all(trials, _Place(parent, template, lacks), interrupts, show)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    if rows is None:
        return None
    return Results(rows, tuple(lacks.values()), time.monotonic() - began)


class _Place:
    """The folder of all trials, the repository that each one starts from, what is missing."""

    def __init__(self, parent: Path, template: Path | None, lacks: Mapping[Need, str]) -> None:
        self.parent, self.template, self.lacks = parent, template, lacks
        self.canceled = threading.Event()


def _make(template: Path, interrupts: Interrupts) -> str:
    """Make the repository; return why git could not do that."""
    template.mkdir()
    (template / "README.md").write_text("# A trial of rooda selftest\n", encoding="utf-8")
    try:
        make_repository(template, Tools(folders=[template], interrupts=interrupts), "A trial")
    except GitError as error:
        return f"git could not make a repository: {error}"
    return ""


def _run_all(
    trials: Sequence[Trial], place: _Place, interrupts: Interrupts, show: Callable[[Row], None]
) -> tuple[Row, ...] | None:
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="trial")
    tasks: dict[Future[Row | None], int] = {
        pool.submit(_run, trial, number, place): number for number, trial in enumerate(trials)
    }
    rows: dict[int, Row] = {}
    try:
        waiting = set(tasks)
        while waiting and not interrupts.received:
            done, waiting = wait(waiting, _LOOK, FIRST_COMPLETED)
            for task in done:
                if (row := task.result()) is not None:
                    rows[tasks[task]] = row
                    show(row)
    finally:
        place.canceled.set()
        pool.shutdown(wait=True, cancel_futures=True)
    return None if interrupts.received else tuple(rows[number] for number in sorted(rows))


def _run(trial: Trial, number: int, place: _Place) -> Row | None:
    """Run one trial; whatever goes wrong becomes a row."""
    if reasons := [place.lacks[need] for need in trial.needs if need in place.lacks]:
        return not_here(trial, "; ".join(reasons))
    began = time.monotonic()
    try:
        with scratch_folder(place.parent / str(number), place.template, place.canceled) as scratch:
            return judge(trial, trial.perform(scratch))
    except Canceled:
        return None
    except TrialFailed as error:
        return failed(trial, str(error), time.monotonic() - began)
    except Exception as error:  # noqa: BLE001 - a trial must not end the others
        trouble = f"the trial itself failed: {type(error).__name__}: {error}"
        return failed(trial, trouble, time.monotonic() - began)
