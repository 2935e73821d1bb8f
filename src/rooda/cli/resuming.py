"""Continue an earlier run: find it, merge its flags with those given now, restore its state."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from rooda.cli.arguments import Rules, anchored_in, given_of, merge, parse, parts_of
from rooda.cli.here import go_to, this_world
from rooda.cli.invocation import Front, rooda_front
from rooda.cli.recorded import is_alive
from rooda.config.plan import Plan
from rooda.config.problems import InvalidInput, Problem, Severity
from rooda.config.world import World
from rooda.iteration.types import Iteration
from rooda.loop.events import RunResumed
from rooda.loop.run import limits_of
from rooda.loop.state import State, Status
from rooda.loop.stops import Rule, Stop, stop
from rooda.record.errors import NoRecord, StoreError
from rooda.record.given import KEY, Given
from rooda.record.objects import iteration_of, last_attempts
from rooda.record.reader import Reader
from rooda.record.rows import RunRow
from rooda.text.counting import count
from rooda.text.paths import is_folder

_T = TypeVar("_T")

LAST = ""  # `--resume` without a name
_TITLE = "Nothing to resume"
_MORE = 5  # iterations that the advice adds
# An abort for one of these is over once the user continues the run.
_COUNTED = (Rule.FAILURE_THRESHOLD, Rule.STALL)


@dataclass(frozen=True, slots=True)
class TakenUp:
    """An earlier run that is to go on, in its folder and with these flags."""

    run: str
    world: World
    given: Given
    parameters: Mapping[str, Any]  # of the command, with the flags of both
    news: RunResumed  # but for the iteration, which the state says

    def told(self, state: State) -> RunResumed:
        """What to say of it."""
        return replace(self.news, iteration=state.iteration + 1)

    def explained(self, problems: Sequence[Problem]) -> list[Problem]:
        """Problems of the run, with a word on flags that may be missing."""
        if self.news.recorded:
            return [*problems]
        message = f"the flags of run {self.run} were not recorded"
        advice = "Give them again: version 0.1 did not keep them"
        return [*problems, Problem(message, advice, severity=Severity.WARNING)]


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that goes on: where it stands, and its iterations in their order."""

    row: RunRow
    state: State
    earlier: tuple[Iteration, ...]


def find(workspace: Path, wanted: str, procedure: str | None = None) -> RunRow:
    """The run that is meant: by its name, or the last one. Raises InvalidInput."""
    reader = Reader(workspace, is_alive)
    return _readable(lambda: _find(reader, wanted, procedure))


def find_for_rooda(workspace: Path, wanted: str) -> RunRow:
    """The same for `rooda resume`, which continues a run of any procedure but those of ralph."""
    row = find(workspace, wanted)
    front = front_of(row.procedure)
    if row.status == Status.SUCCESS:
        raise _nothing(f"run {row.run} ended as success", _anew(front))
    if _is_of_ralph(row.procedure):
        message = f"run {row.run} is one of {row.procedure}"
        raise _nothing(message, f"Write: {front.continuing(row.run)}")
    return row


def take_up(
    workspace: Path,
    row: RunRow,
    now: click.Context,
    command: click.Command,
    rules: Rules,
    arguments: Sequence[str] = (),
) -> TakenUp:
    """The run with its flags and those given now, in the folder where it was started.

    `command` is the one that the run was started with, `arguments` are those that come before the
    recorded ones. Raises InvalidInput.
    """
    front = front_of(row.procedure)
    recorded = _recorded(row, front)
    here = this_world().folder
    folder = _folder(workspace, row, recorded)
    given_now = parts_of(now)
    if folder != here:
        given_now = anchored_in(here, given_now, rules)
    try:
        earlier = parts_of(parse(command, recorded or Given(), arguments))
        merged = merge(earlier, given_now, rules)
        given = given_of(command, merged.kept, merged.now)
        parameters = parse(command, given, arguments).params
    except click.UsageError as error:
        words = error.format_message().rstrip(".")
        message = f"this version of rooda refuses the recorded flags of run {row.run}: {words}"
        advice = f"Another version wrote them, or something changed them. {_anew(front)}"
        raise InvalidInput([Problem(message, advice, title=_TITLE)]) from None
    news = RunResumed(
        run=row.run,
        iteration=0,
        recorded=recorded is not None,
        flags=given_of(command, merged.kept).masked(),
        given=given_of(command, merged.now).masked(),
        replaced=given_of(command, merged.replaced).masked(),
        folder="" if folder == here else str(folder),
    )
    return TakenUp(row.run, go_to(folder), given, parameters, news)


def _recorded(row: RunRow, front: Front) -> Given | None:
    """The flags that the run was started with; None where an earlier version kept none."""
    if KEY not in row.data:
        return None
    try:
        return Given.from_json(row.data[KEY])
    except ValueError as error:
        message = f"the recorded flags of run {row.run} can't be read: {error}"
        advice = f"Something changed the record. {_anew(front)}"
        raise InvalidInput([Problem(message, advice, title=_TITLE)]) from None


def _folder(workspace: Path, row: RunRow, recorded: Given | None) -> Path:
    """Where the run was started. The workspace may have moved since."""
    folder = Path(os.path.normpath(workspace / (recorded.folder if recorded else ".")))
    if not is_folder(folder):
        message = f"the folder where run {row.run} was started is gone: {folder}"
        raise InvalidInput([Problem(message, "Create that folder again", title=_TITLE)])
    return folder


def resume(plan: Plan, wanted: str, front: Front | None = None) -> Resumed:
    """The run that is meant, ready to go on. Raises InvalidInput when there is nothing to do."""
    reader = Reader(plan.workspace, is_alive)
    return _readable(lambda: _resume(plan, wanted, reader, front or rooda_front(plan.procedure)))


def _readable(answer: Callable[[], _T]) -> _T:
    try:
        return answer()
    except NoRecord as error:
        raise _nothing(str(error), "See which runs there are with `rooda history`") from None
    except StoreError as error:
        raise InvalidInput([Problem(str(error), "Start a new run, without resuming")]) from None


def _resume(plan: Plan, wanted: str, reader: Reader, front: Front) -> Resumed:
    row = _find(reader, wanted, plan.procedure)
    rows = list(reader.iterations(row.run))
    state = restored(row)
    next_one = state.iteration + 1
    attempts = max((one.attempt for one in rows if one.number == next_one), default=0)
    state = replace(state, attempt=attempts + 1)
    if row.status == Status.SUCCESS:
        raise _nothing(f"run {row.run} ended as success", _anew(front))
    found = stop(state, limits_of(plan))
    if found is not None and found.rule in _COUNTED:
        # The run was interrupted just before this rule would have aborted it.
        state = _recounted(state)
        found = stop(state, limits_of(plan))
    if found is not None:
        raise _used_up(row, state, found, front)
    return Resumed(row, state, tuple(map(iteration_of, last_attempts(rows))))


def _find(reader: Reader, wanted: str, procedure: str | None) -> RunRow:
    if wanted != LAST:
        row = reader.run(wanted)
        if procedure not in (None, row.procedure):
            message = f"run {row.run} is one of {row.procedure}, not of {procedure}"
            start = front_of(row.procedure).start
            raise _nothing(message, f"Write: {start} --resume={row.run}")
        return row
    if procedure is None:
        return reader.run()
    rows = reader.runs(procedure=procedure, limit=1)
    if not rows:
        message = f"there is no run of {procedure} here"
        raise _nothing(message, _anew(front_of(procedure)))
    return rows[0]


def _is_of_ralph(procedure: str) -> bool:
    return procedure.startswith("ralph ")


def front_of(procedure: str) -> Front:
    """The commands for a run in the record; the procedures of ralph are called `ralph MODE`."""
    if _is_of_ralph(procedure):
        return Front(procedure, f"{procedure} --resume={{run}}")
    return rooda_front(procedure)


def restored(row: RunRow) -> State:
    """Where a run stood. After an abort the failures are counted anew."""
    data = row.data.get("state")
    if data is None:
        return State()
    try:
        state = State.from_json(data)
    except (KeyError, TypeError, ValueError) as error:
        message = f"the state of run {row.run} can't be read: {type(error).__name__}: {error}"
        raise InvalidInput([Problem(message, _anew(front_of(row.procedure)))]) from None
    # The user who continues an aborted run has removed the cause, or wants to try again.
    return _recounted(state) if row.status == Status.ABORTED else state


def _recounted(state: State) -> State:
    return replace(state, consecutive_failures=0, idle=0, limited=())


def _used_up(row: RunRow, state: State, found: Stop, front: Front) -> InvalidInput:
    ran = state.iteration
    if found.reason:
        raised = front.continuing(row.run, found.rule)
        is_flag = found.rule in front.limits
        return _nothing(
            f"run {row.run}: {found.reason}",
            f"Raise that limit: {raised}" if is_flag else "Raise that limit, then resume again",
        )
    message = f"run {row.run} has run {count(ran, 'iteration')}, and no more are asked for"
    if found.rule not in front.limits:
        return _nothing(message, _anew(front))
    more = front.continuing(row.run, found.rule, str(ran + _MORE))
    return _nothing(message, f"Ask for more in all: {more}")


def _anew(front: Front) -> str:
    return f"Start a new run: {front.start}"


def _nothing(message: str, suggestion: str) -> InvalidInput:
    return InvalidInput([Problem(message, suggestion, title=_TITLE)])
