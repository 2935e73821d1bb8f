"""`rooda diff` and `rooda restore`: every state of the work tree."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import click
from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.secret_values import names_a_secret
from rooda.base.secrets.sensitive import looks_like_a_secret
from rooda.front.command_table import CliContext
from rooda.front.completion import complete_runs
from rooda.front.masking import UNMASKED
from rooda.front.options import RunNamesCommand
from rooda.front.pager import is_command, is_terminal
from rooda.front.recorded import RECORD, Recorded, iteration_number, refuse_run_around
from rooda.loop.state import Status
from rooda.plan.world import this_world
from rooda.record.given_variables import given_variables
from rooda.record.rows import RunRow
from rooda.record.run_names import LAST, from_end
from rooda.views.model.build import summarize
from rooda.views.wording.lines import holding_of
from rooda.world.git.git import (
    OFFLINE,
    TRUE_OBJECTS,
    Git,
    GitError,
    GitInterruptedError,
    without_misleading,
)
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.git.snapshots.store import UNDO
from rooda.world.git.snapshots.tree_changes import Changes
from rooda.world.process.first_moment import own_module
from rooda.world.process.interrupts import INTERRUPTED, Interrupts
from rooda.world.process.leftovers import RunTrace, stop_leftovers
from rooda.world.process.runner import MARK
from rooda.world.state.lock import Lock, LockHeldError
from rooda.world.state.record_place import RecordPlace
from rooda.world.tools import Tools

# Which snapshots the words of `rooda diff` and `rooda restore` mean. Pure.


_DOTS = ".."
_ITERATION = re.compile(r"[0-9]{1,6}")
_UNDO = re.compile(r"u[0-9]{1,6}")
_SHORT_NUMBER = re.compile(r"[0-9]{1,3}")  # too short for the beginning of a run's name: a date
_MANY = 10  # numbers that are not named one by one
_WRITE_RANGE = "Write 3, 3..7, 3.. or ..7"
_FROM_ONE = "Choose an iteration from 1 on; `rooda show` lists them"


class IterationRange(Struct, frozen=True):
    """The iterations from `first` to `last`, both included.

    A number below 0 counts from the end. None is the first or the last iteration of the run.
    """

    first: int | None = None
    last: int | None = None


class Compared(Struct, frozen=True):
    """Two snapshots of a run: the state before the iterations, and the one after them."""

    before: str
    after: str


def words_of_diff(words: Sequence[str]) -> tuple[str | None, IterationRange]:
    """Return RUN, or None, and the iterations whose changes the user wants to see.

    Raises InvalidInput.
    """
    if not words:
        return None, IterationRange()
    *rest, word = words
    if rest:
        if _SHORT_NUMBER.fullmatch(rest[0]) and _ITERATION.fullmatch(word):
            message = f"{rest[0]!r} is too short for the name of a run"
            advice = f"For iterations {rest[0]} to {word}: rooda diff {rest[0]}..{word}"
            raise _wrong(message, advice)
        return rest[0], _span(word)
    if _DOTS in word or _ITERATION.fullmatch(word) or _UNDO.fullmatch(word):
        return None, _span(word)
    return word, IterationRange()


def _span(word: str) -> IterationRange:
    if _UNDO.fullmatch(word):
        raise _wrong(f"nothing comes before {word}", _FROM_ONE)
    if _DOTS not in word:
        number = iteration_number(word)
        return IterationRange(number, number)
    first, _, last = word.partition(_DOTS)
    for end in (first, last):
        if end and not _ITERATION.fullmatch(end) and from_end(end) is None:
            raise _wrong(f"{word!r} is not a range of iterations", _WRITE_RANGE)
    return IterationRange(*(iteration_number(end) if end else None for end in (first, last)))


def compared(
    run: str, span: IterationRange, names: Sequence[str], *, at_work: bool = False
) -> Compared:
    """Return the snapshots to compare, of those that the run has. Raises InvalidInput."""
    numbers = [int(name) for name in names if name.isdecimal()]
    iterations = [number for number in numbers if number > 0]
    if not names:
        advice = f"It ran without git, or with git.snapshots off. Its files: rooda show {run}"
        raise _wrong(f"run {run} has no snapshots", advice)
    if not iterations:
        advice = "Wait until its first iteration has ended" if at_work else f"See rooda show {run}"
        raise _wrong(f"run {run} has no snapshot of an iteration", advice)
    first = 1 if span.first is None else _counted(span.first, iterations, run)
    last = _counted(-1 if span.last is None else span.last, iterations, run)
    for number in (first, last):
        if number == 0:
            raise _wrong("nothing comes before 0, the work tree before the run", _FROM_ONE)
        if number > iterations[-1]:
            raise no_snapshot(run, str(number), names)
    if first > last:
        advice = f"Write the smaller number first: {last}{_DOTS}{first}"
        raise _wrong(f"iteration {first} comes after iteration {last}", advice)
    before = max((number for number in numbers if number < first), default=0)
    for number in (last, before):
        if number not in numbers:
            raise no_snapshot(run, str(number), names)
    return Compared(str(before), str(last))


def _counted(number: int, iterations: Sequence[int], run: str) -> int:
    """Return the number of an iteration; one below 0 counts from the end."""
    if number >= 0:
        return number
    if -number > len(iterations):
        known = f"It has {', '.join(map(str, iterations))}"
        raise _wrong(f"run {run} has no snapshot of iteration {number}", known)
    return iterations[number]


def words_of_restore(words: Sequence[str]) -> tuple[str | None, str]:
    """Return RUN, or None, and the name of a snapshot. Raises InvalidInput."""
    *rest, word = words
    place = from_end(word)
    if not rest and place is not None and place > 1:
        message = f"{word!r} can be a run or an iteration"
        advice = (
            f"`rooda restore {word} {LAST}` is the run, `rooda restore {LAST} {word}` the other"
        )
        raise _wrong(message, advice)
    if place is None and not (_ITERATION.fullmatch(word) or _UNDO.fullmatch(word)):
        message = f"{word!r} is not the number of an iteration"
        raise _wrong(message, "Write a number, or `last`; `rooda show` lists them")
    return (rest[0] if rest else None), word


def snapshot_named(run: str, word: str, names: Sequence[str]) -> str:
    """Return the name of a snapshot; `last`, `-2` and so on count from the end."""
    place = from_end(word)
    if place is None:
        return word
    iterations = [int(name) for name in names if name.isdecimal() and int(name) > 0]
    if place > len(iterations):
        raise no_snapshot(run, word, names)
    return str(iterations[-place])


def no_snapshot(run: str, name: str, names: Sequence[str]) -> InvalidInput:
    """Return the error that a run has no such snapshot."""
    return _wrong(f"there is no snapshot {name} of run {run}", known_snapshots(names))


def known_snapshots(names: Sequence[str]) -> str:
    """Return in one sentence which snapshots there are: `There are: 0 to 30, u1`."""
    if not names:
        return "This run has none"
    numbers = [int(name) for name in names if name.isdecimal()]
    if len(numbers) < _MANY or numbers[-1] - numbers[0] != len(numbers) - 1:
        return f"There are: {', '.join(names)}"
    words = [name for name in names if not name.isdecimal()]
    return f"There are: {', '.join([f'{numbers[0]} to {numbers[-1]}', *words])}"


def _wrong(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice)])


_UNDO_NUMBER = re.compile(r"u([0-9]{1,6})")
_UNDO_AGE = timedelta(days=30)
_DIFF_GRACE = 1.0  # seconds between SIGTERM and SIGKILL
# What the agent wrote controls no terminal, with any pager.
_FILTER = "rooda.base.secrets.visible_controls"
_GIVEN = "ROODA_SECRET_"  # before the name of a variable
_PLAIN_NAME = re.compile(r"[\w./+-]+")  # of a program, which no shell has to expand
_LONGEST_REST = 0.1  # seconds between two looks at git, in case no signal tells of its end


def _open(record: Recorded, folder: Path, tools: Tools) -> Snapshots:
    try:
        return Snapshots.open(folder, record.state, tools)
    except GitInterruptedError:
        raise
    except GitError as error:
        raise InvalidInput([Problem(str(error))]) from None


@click.command("diff", cls=RunNamesCommand)
@click.argument(
    "words",
    nargs=-1,
    metavar="[RUN] [ITERATION | FIRST..LAST]",
    shell_complete=complete_runs,
)
@click.option("--stat", is_flag=True, help="Only the names of files and the count of lines.")
@click.option("--name-only", is_flag=True, help="Only the names of files.")
@RECORD
@UNMASKED
@click.pass_obj
def diff(
    session: CliContext,
    /,
    *,
    words: tuple[str, ...],
    stat: bool,
    name_only: bool,
    unmasked: bool,
) -> int:
    """Show what a run changed in the work tree, or one of its iterations.

    Without ITERATION: the whole run, up to its last iteration. `rooda diff 3` shows what iteration
    3 changed, and `rooda diff 3..7` what the iterations 3 to 7 changed together, both included;
    `3..` goes up to the last one, and `..7` begins with the first one. Without RUN: the last run.
    """
    record = Recorded.here(unmasked=unmasked)
    name, span = words_of_diff(_at_most_two(words))
    row = record.run(name)
    run = row.run
    tools = Tools(folders=[record.workspace])
    snapshots = _open(record, record.workspace, tools)
    flags = [flag for flag, given in (("--stat", stat), ("--name-only", name_only)) if given]
    at_work = row.status == Status.RUNNING
    found = compared(run, span, snapshots.names(run), at_work=at_work)
    if at_work and span.last is None:
        click.echo(f"Run {run} is at work: its changes up to iteration {found.after}.", err=True)
    if span.first is not None and span.first == span.last:
        _tell_of_other_work(record, row, found.after)
    # No program that the user has set for files of a kind runs on what an agent wrote.
    command = snapshots.diff(
        run, found.before, found.after, "--no-ext-diff", "--no-textconv", *flags
    )
    if sys.stdout is not None:
        sys.stdout.flush()
    masked = () if unmasked else ("--masked",)
    pager = f"{shlex.join(own_module(_FILTER, '--visible', *masked))} | {_pager(tools)}"
    own = {**TRUE_OBJECTS, **OFFLINE, "PATH": tools.path, "GIT_PAGER": pager}
    environ = {**without_misleading(os.environ), **own}
    if not unmasked:  # the filter masks the secrets of its environment
        for number, variables in enumerate(given_variables(this_world(), row)):
            given = {name: value for name, value in variables.items() if names_a_secret(name)}
            environ |= {f"{_GIVEN}{number}_{name}": value for name, value in given.items()}
    # Git starts the pager on a terminal only.
    through = () if unmasked or is_terminal() else own_module(_FILTER, *masked)
    with session.interrupts.deferred():
        return _shown(command, Path("/"), environ, session.interrupts, through)


def _tell_of_other_work(record: Recorded, row: RunRow, iteration: str) -> None:
    """Name the commit that contains more than this iteration, or its work with that of others."""
    summary = summarize(row, record.iterations(row.run), datetime.now().astimezone())
    for one in summary.iterations:
        if str(one.number) == iteration and (holding := holding_of(one)):
            click.echo(f"Iteration {iteration}: {holding}.", err=True)


def _pager(tools: Tools) -> str:
    """Return the user's pager, found outside of the work tree: the agent may have set another."""
    pager = os.environ.get("GIT_PAGER") or Git(Path("/"), tools).ask("config", "core.pager")
    pager = pager or os.environ.get("PAGER") or ""
    if not is_command(pager) or not pager.strip():
        pager = "less"
    program, *_ = shlex.split(pager)
    is_plain = _PLAIN_NAME.fullmatch(program) is not None
    is_missing = is_plain and shutil.which(program, path=tools.path) is None
    return "cat" if is_missing else pager


def _shown(
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    interrupts: Interrupts,
    through: Sequence[str] = (),
) -> int:
    """Run git and its pager on the user's terminal, or through a filter; return the exit code."""
    name = f"diff-{os.getpid()}"
    marked = {**environ, MARK: name}
    output = subprocess.PIPE if through else None
    child = git = subprocess.Popen(command, cwd=folder, env=marked, stdout=output)
    if git.stdout is not None:
        child = subprocess.Popen(through, cwd=folder, env=marked, stdin=git.stdout)
        git.stdout.close()
    # A pager has its own use for Ctrl+C, which the terminal sends to all of them.
    unheard = {signal.SIGINT} if sys.stdout is not None and sys.stdout.isatty() else set()
    while child.poll() is None and unheard.issuperset(interrupts.received):
        interrupts.rest(_LONGEST_REST)
    if child.poll() is None:
        click.echo("Interrupted", err=True)
        stop_leftovers(RunTrace(f"{MARK}={name}", str(folder)), _DIFF_GRACE)
        return INTERRUPTED
    code = git.wait() or child.returncode
    if child.returncode == -signal.SIGPIPE:  # the user has read enough
        return 0
    return INTERRUPTED if interrupts.received and code else code


def _at_most_two(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[2:]:
        raise click.UsageError("name a run and an iteration, and no more")
    return words


@click.command("restore", cls=RunNamesCommand)
@click.argument(
    "words", nargs=-1, required=True, metavar="[RUN] ITERATION", shell_complete=complete_runs
)
@click.pass_obj
def restore(session: CliContext, /, *, words: tuple[str, ...]) -> int:
    """Restore the work tree as an iteration left it; 0 is the work tree before the run.

    rooda first takes a snapshot of the current files and keeps it for 30 days, so that you can
    undo this. Branch, index and ignored files stay as they are.
    """
    record = Recorded.here()
    name, wanted = words_of_restore(_at_most_two(words))
    tools = Tools(folders=[record.workspace], interrupts=session.interrupts)
    # Deferred: a signal stops git, and the user still reads how to undo what was done so far.
    with _alone(record.place), session.interrupts.deferred():
        snapshots, undo, now = None, "", datetime.now().astimezone()
        known: Sequence[str] = ()
        try:
            snapshots = _open(record, record.workspace, tools)
            undos = snapshots.names(UNDO)
            is_undo = name is None and wanted in undos
            run = UNDO if is_undo else _row(record, name).run
            names = () if is_undo else snapshots.names(run)
            known = [*names, *undos]
            wanted = snapshot_named(run, wanted, names)
            undo = next_undo(undos)
            found = snapshots.restore(run, wanted, undo, UNDO)
        except GitError as error:
            if snapshots is not None and snapshots.has_kept(UNDO, undo):
                click.echo(f"Error: the work tree is only partly restored: {error}", err=True)
                click.echo(f"To undo: rooda restore {undo}")
                return INTERRUPTED if session.interrupts.received else 1
            if session.interrupts.received:
                click.echo("Interrupted; the work tree is as it was", err=True)
                return INTERRUPTED
            is_known = wanted in known
            advice = "The work tree is as it was" if is_known else known_snapshots(known)
            raise InvalidInput([Problem(str(error), advice)]) from None
        with contextlib.suppress(GitError):  # a later restore does it
            snapshots.forget_older(UNDO, (now - _UNDO_AGE - timedelta(days=1)).timestamp())
    changes = found.changes
    changed = sum(map(len, (changes.created, changes.modified, changes.deleted))) if changes else 0
    state = f"of iteration {wanted}" if wanted.strip("0") else "from before the run"
    what = f"what {wanted} had kept" if is_undo else f"the work tree {state}"
    click.echo(f"Restored {what} ({count(changed, 'file')} changed).")
    if secrets := [name for name in _brought_back(changes) if looks_like_a_secret(name)]:
        click.echo(f"Brought back files that look like secrets: {one_line(', '.join(secrets))}")
    if found.left_out:
        click.echo(f"Not brought back: {one_line(', '.join(found.left_out))}", err=True)
    if found.untouched:
        untouched = one_line(", ".join(found.untouched))
        click.echo(f"Left as it is, because no snapshot contains it: {untouched}", err=True)
    if found.trouble:
        click.echo(f"Warning: {one_line(found.trouble)}", err=True)
    click.echo(f"The state before this restore is kept until {now + _UNDO_AGE:%Y-%m-%d}.")
    click.echo(f"To undo: rooda restore {undo}")
    return 0


def _row(record: Recorded, name: str | None) -> RunRow:
    """Return the run whose work tree the user restores. Raises InvalidInput."""
    row = record.run(name)
    refuse_run_around(record.workspace, row)
    return row


def _brought_back(changes: Changes | None) -> tuple[str, ...]:
    return () if changes is None else (*changes.created, *changes.modified)


def next_undo(names: Sequence[str]) -> str:
    """Return the name for the next undo."""
    numbers = [int(match[1]) for name in names if (match := _UNDO_NUMBER.fullmatch(name))]
    return f"u{max(numbers, default=0) + 1}"


@contextlib.contextmanager
def _alone(place: RecordPlace) -> Iterator[None]:
    """Hold the lock of the work tree, so that no run is at work in it."""
    try:
        lock = Lock(place.tree, state=place.state)
    except LockHeldError:
        problem = Problem("a run is at work here", "Wait until it has ended, or: rooda stop")
        raise InvalidInput([problem]) from None
    except OSError:  # where locking fails, a run has no lock either
        yield
        return
    try:
        yield
    finally:
        lock.close()
