"""Go on with an earlier run: find it, and take up its state."""

from dataclasses import dataclass, replace

from rooda.cli.recorded import is_alive
from rooda.config.plan import Plan
from rooda.config.problems import InvalidInput, Problem
from rooda.iteration.types import Iteration
from rooda.loop.run import limits_of
from rooda.loop.state import State, Status
from rooda.loop.stops import stop
from rooda.record.errors import NoRecord, StoreError
from rooda.record.objects import iteration_of, last_attempts
from rooda.record.reader import Reader
from rooda.record.rows import RunRow
from rooda.text.counting import count

LAST = ""  # `--resume` without a name


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that goes on: where it stands, and its iterations in their order."""

    row: RunRow
    state: State
    earlier: tuple[Iteration, ...]


def resume(plan: Plan, wanted: str) -> Resumed:
    """The run that is meant, ready to go on. Raises InvalidInput when there is nothing to do."""
    try:
        return _resume(plan, wanted, Reader(plan.workspace, is_alive))
    except NoRecord as error:
        raise _nothing(str(error)) from None
    except StoreError as error:
        raise InvalidInput([Problem(str(error), "Start anew, without --resume")]) from None


def _resume(plan: Plan, wanted: str, reader: Reader) -> Resumed:
    row = _find(plan, wanted, reader)
    rows = list(reader.iterations(row.run))
    state = restored(row)
    next_one = state.iteration + 1
    attempts = max((one.attempt for one in rows if one.number == next_one), default=0)
    state = replace(state, attempt=attempts + 1)
    if row.status == Status.SUCCESS:
        raise _nothing(f"run {row.run} ended as success")
    found = stop(state, limits_of(plan))
    if found is not None:
        raise _used_up(row, state, found.reason)
    return Resumed(row, state, tuple(map(iteration_of, last_attempts(rows))))


def _find(plan: Plan, wanted: str, reader: Reader) -> RunRow:
    if wanted != LAST:
        row = reader.run(wanted)
        if row.procedure != plan.procedure:
            message = f"run {row.run} is one of {row.procedure}, not of {plan.procedure}"
            is_ralph = row.procedure.startswith("ralph ")
            command = row.procedure if is_ralph else f"rooda {row.procedure}"
            suggestion = f"Write: {command} --resume={row.run}"
            raise InvalidInput([Problem(message, suggestion, title="Nothing to resume")])
        return row
    rows = reader.runs(procedure=plan.procedure, limit=1)
    if not rows:
        raise _nothing(f"there is no run of {plan.procedure} here")
    return rows[0]


def restored(row: RunRow) -> State:
    """Where a run stood. After an abort the failures are counted anew."""
    data = row.data.get("state")
    if data is None:
        return State()
    try:
        state = State.from_json(data)
    except (KeyError, TypeError, ValueError) as error:
        message = f"the state of run {row.run} can't be read: {type(error).__name__}: {error}"
        raise InvalidInput([Problem(message, "Start anew, without --resume")]) from None
    if row.status == Status.ABORTED:  # who starts it again has seen to that, or wants to see
        state = replace(state, consecutive_failures=0, idle=0, limited=())
    return state


def _used_up(row: RunRow, state: State, reason: str) -> InvalidInput:
    ran = state.iteration
    if reason:
        return _nothing(f"run {row.run}: {reason}", "Raise that limit")
    message = f"run {row.run} has run {count(ran, 'iteration')}, and no more are asked for"
    return _nothing(message, f"Ask for more in all: --max-iterations {ran + 5}")


def _nothing(message: str, suggestion: str = "Start anew, without --resume") -> InvalidInput:
    return InvalidInput([Problem(message, suggestion, title="Nothing to resume")])
