"""Brings runs back from git into an empty database: rows for all records that it does not know.

Every person who can push to the remote can write a record with any command. So the caller shows
the commands to the user before rows are added. No word of a record becomes an option of git.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.actions.add_tasks import TITLE, Added
from rooda.fleet.place import Place, without_credentials
from rooda.fleet.remote.fence import RECORD_PLACES, Remote, scratch_remote
from rooda.fleet.remote.record_commits import (
    MOST,
    RESULT,
    TASK,
    Facts,
    PublishedResult,
    read_commit,
)
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import Finish, RunState
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.tables import KnownRun
from rooda.fleet.tasks.task_checks import is_run_name
from rooda.plan.settings.kinds import WrongValue
from rooda.plan.settings.text_kinds import LabelList
from rooda.record.given_flags import missing_now, split_flags
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

_HERE = "refs/rooda/adopt/"
# A slot sets these for its own files. `rooda fleet add` has no such flags.
_OF_SLOTS = frozenset(
    {"--record", "--result", "--lifeline", "--run-id", "--config", "--working-dir", "--only-run"}
)
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class Adopted(Struct, frozen=True):
    """What became of one record. Without `trouble` the run is in the database now.

    `needs` are flags whose values git does not keep: with them, the run can be adopted.
    """

    run: str
    state: RunState = RunState.QUEUED
    iteration: int = 0
    trouble: str = ""
    needs: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    """A record of the remote that can be read."""

    added: Added
    known: KnownRun
    start: str  # the commit from which the run goes on

    @property
    def command(self) -> str:
        """The command line of an iteration on one line, as far as the record decides it."""
        task, batch = self.added.task, self.added.batch
        start = "rooda loop TASK" if task.procedure is None else f"rooda run {task.procedure}"
        account = ["--account", task.account] if task.account else []
        finish = ["--finish", batch.finish] if batch.finish is not Finish.BRANCH else []
        words = [*account, *batch.flags, *finish]
        return one_line(" ".join([start, *([shlex.join(words)] if words else [])]))

    @property
    def place(self) -> str:
        """The run, and the commit whose `rooda-config.yml` its next iteration reads."""
        return f"{self.added.task.name} at {self.start[:12]}"


Agree = Callable[[Mapping[str, Sequence[str]]], bool]


def adopt(
    place: Place,
    store: FleetStore,
    tools: Tools,
    flags: Sequence[str] = (),
    *,
    agree: Agree,
) -> list[Adopted]:
    """Add rows for the records on the remote that the database lacks; return one entry for each.

    A run that has ended is added as that, and every other one continues with its next iteration.
    `flags` are given again: each run gets them after its own. A run that lacks flags, or whose
    record can't be read, is left alone. `agree` gets the command lines that the records bring, each
    with its runs and their commits; if it returns False, nothing is added. Raises InvalidInput if
    the remote can't be read.
    """
    present = {run.run for run in store.runs(place.project)}
    found: list[_Found] = []
    others: list[Adopted] = []
    for name, record in _read_all(place.remote, place.fence, tools).items():
        if name in present:
            continue
        one = record if isinstance(record, Adopted) else _with_flags(record, flags)
        if isinstance(one, Adopted):
            others.append(one)
        else:
            found.append(one)
    found.sort(key=lambda one: (one.added.batch.name, one.added.number, one.added.task.name))
    commands: dict[str, list[str]] = {}
    for one in found:
        commands.setdefault(one.command, []).append(one.place)
    if found and not agree(commands):
        found = []
    written = store.restore(place.project, [one.known for one in found])
    adopted = [
        Adopted(one.known.task.name, one.known.state, one.known.iteration)
        for one in found
        if one.known.task.name in written
    ]
    return [*adopted, *sorted(others, key=lambda one: one.run)]


def _with_flags(one: _Found, flags: Sequence[str]) -> _Found | Adopted:
    """Return the record with the flags that are given again, or those that it lacks."""
    known = one.known
    lacking = missing_now(one.added.left_out, split_flags(flags))
    if lacking and not known.state.is_end:
        words = f"git does not keep the values of: {one_line(', '.join(lacking))}"
        return Adopted(known.task.name, known.state, known.iteration, words, tuple(lacking))
    batch = replace(known.batch, flags=(*known.batch.flags, *flags))
    return _Found(one.added, replace(known, batch=batch), one.start)


# -- the records on the remote --------------------------------------------------------------


def _read_all(url: str, fence: Path | None, tools: Tools) -> dict[str, _Found | Adopted]:
    """Return every record of the remote by the name of its run. Raises InvalidInput."""
    with scratch_remote(url, tools, fence=fence) as remote:
        git = Git(remote.git_dir, tools, {"GIT_DIR": str(remote.git_dir)})
        try:
            refs = dict(_fetched(git, remote))
        except (GitError, Unreachable) as error:
            words = without_credentials(str(error))
            message = f"the records on {remote.shown} can't be read: {words}"
            problem = Problem(message, "Check that git can fetch from there", title=TITLE)
            raise InvalidInput([problem]) from None
        return {name: _read(git, name, sha) for name, sha in refs.items()}


def _fetched(git: Git, remote: Remote) -> Iterator[tuple[str, str]]:
    """Fetch the last commit of each record, all at once; yield the names of runs and commits."""
    remote.fetch_last(
        {f"{place}*": f"{_HERE}{number}/*" for number, place in enumerate(RECORD_PLACES)}
    )
    # The first place comes last: its record is the one that counts.
    listed = git.line("for-each-ref", "--sort=-refname", "--format=%(objectname) %(refname)", _HERE)
    for line in listed.splitlines():
        sha, _, ref = line.partition(" ")
        yield ref.removeprefix(_HERE).partition("/")[2], sha


def _read(git: Git, name: str, sha: str) -> _Found | Adopted:
    try:
        facts, files = read_commit(git, sha)
        added = json.decode(files.get(TASK, b""), type=Added)
        result = PublishedResult()
        if RESULT in files:
            result = json.decode(files[RESULT], type=PublishedResult)
    except (GitError, MsgspecError) as error:
        return Adopted(one_line(name), trouble=f"its record can't be read: {one_line(str(error))}")
    if trouble := _trouble(name, added):
        return Adopted(one_line(name), trouble=trouble)
    start = facts.tip or added.task.base or added.batch.base
    return _Found(added, _known(added, facts, result), start)


def _trouble(name: str, added: Added) -> str:
    """Return what is wrong with a record that rooda can't have written; empty if nothing is."""
    if not is_run_name(name) or added.task.name != name:
        return "its record is one of another run"
    bases = [added.batch.base, *([added.task.base] if added.task.base else [])]
    if not all(map(_COMMIT.fullmatch, bases)):
        return "its record names no commit to start from"
    task, batch = added.task, added.batch
    words = (*batch.flags, batch.name, batch.base_branch, task.procedure or "", task.account)
    if any("\0" in word for word in words):
        return "its record has a word with a NUL character"
    if task.procedure is not None and task.procedure.startswith("-"):
        return "its record has a procedure that would be a flag"
    if found := sorted({word.partition("=")[0] for word in batch.flags} & _OF_SLOTS):
        return f"its record has a flag that only a slot sets: {found[0]}"
    if not all(map(is_run_name, task.after)) or not 0 <= (task.max_iterations or 0) <= MOST:
        return "its record has a task that rooda can't have read"
    try:
        LabelList().check(list(task.labels))
    except WrongValue as wrong:
        return f"its record has a label that is none: {one_line(str(wrong))}"
    return ""


def _known(added: Added, facts: Facts, result: PublishedResult) -> KnownRun:
    state = facts.state or RunState.QUEUED
    return KnownRun(
        task=added.task,
        batch=added.batch,
        state=state,
        turn=result.turn + 1,
        reason=one_line(result.reason) if state.is_end else "",
        **result.progress | {"iteration": facts.iteration, "headline": one_line(result.headline)},
    )
