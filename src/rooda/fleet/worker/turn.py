"""One turn of a run: its iterations in one slot, each as a durable step.

`take_turn` is the workflow, and `TurnWork.iterate` is the step. Whatever happens between two lines
of it, the next start finds in git what counts: the record says which iterations are done.
"""

import random
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, convert, to_builtins
from sqlalchemy.exc import DataError, SQLAlchemyError

from rooda.base.controls import one_line
from rooda.base.numbers import count, money
from rooda.fleet.crash_points import reach
from rooda.fleet.display.run_words import BATCH_SPENT, progress_of
from rooda.fleet.remote.fence import BrokenRecord
from rooda.fleet.remote.record_commits import read_published
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import Next, Order, Run, RunProgress, RunState
from rooda.fleet.slot.slot import SlotChanged, SlotGone
from rooda.fleet.store.store import Dismissed, FleetStore
from rooda.fleet.worker.control import ActiveTurn, Control
from rooda.fleet.worker.durable import Steps
from rooda.fleet.worker.slot_work import RunLost, SlotWork
from rooda.loop.stops import StopRule
from rooda.loop.waits import AgentHold
from rooda.run.outcome import NOT_STARTED, RunOutcome
from rooda.world.process.interrupts import INTERRUPTED

# What keeps a run from its next iteration: the budget of its batch, or a hold of its account.


_CROWDED = 30.0  # seconds until a run looks again whether it may work


def wait_or_end(store: FleetStore, run: Run) -> Next | None:
    """Return why the run can't have its next iteration now; None if it can."""
    return _spent(store, run) or _held(store, run)


def _spent(store: FleetStore, run: Run) -> Next | None:
    most = run.batch.max_cost
    if most is None:
        return None
    cost, unknown = store.spent(run.project, run.batch.name)
    if cost < most:
        return None
    reason = f"{BATCH_SPENT} {money(cost)} of {money(most)} (max_cost)"
    if unknown:
        reason += f"; {count(unknown, 'iteration')} told no cost"
    return Next("end", state=RunState.FAILED, reason=reason)


def _held(store: FleetStore, run: Run) -> Next | None:
    hold = store.accounts.hold(run.account)
    now = store.now()
    if hold.until > now:
        return Next("wait", seconds=hold.until - now, reason=hold.reason)
    if hold.most is None or hold.most_until <= now:
        return None
    if store.accounts.rank(run.project, run.run, run.account) < hold.most:
        return None
    return Next("wait", seconds=min(_CROWDED, hold.most_until - now), reason=hold.reason)


_T = TypeVar("_T")
_RETRY = 1.0  # seconds between two tries while the database is away
_AFTER_ERROR = 60.0  # seconds until a run is tried again that rooda could not work on
_OUTAGE = 60.0  # seconds until a run is tried again whose service is overloaded or out of reach
_LOWERED = 600.0  # seconds for which fewer runs of an overloaded account are at work
_UNKNOWN_LIMIT = 900.0  # seconds to wait for a limit whose end the agent does not tell
_JITTER = 5.0  # seconds over which the runs of an account wake up
_TRIES_TO_START = 2  # of rooda, before a run ends because it can't start
_MOST_VOIDED = 3  # times in a row that the same damage to the slot voids an iteration


class TurnPlace(Struct, frozen=True):
    """Where a turn is taken: a worker, and its words for people."""

    worker: str
    where: str
    on_lost: Callable[[str], NoReturn]  # another worker has the run


def take_turn(work: "TurnWork", steps: Steps) -> str:
    """Work on the run until it ends, must wait, or the worker is to stop; return which."""
    while True:
        found = steps("iteration", work.iterate)
        reach("after-step", work.run, found["iteration"])
        if found["move"] != "again":
            break
    if found["move"] != "gone":
        steps("settle", lambda: work.settle(convert(found, Next)))
    return str(found["move"])


class TurnWork:
    """The work on one turn, in one execution of it."""

    def __init__(
        self,
        project: str,
        run: str,
        turn: int,
        *,
        store: FleetStore,
        slot: SlotWork,
        control: Control,
        place: TurnPlace,
    ) -> None:
        self._project = project
        self.run = run
        self._turn = turn
        self._store = store
        self._slot = slot
        self._control = control
        self._place = place
        self._not_starts = 0  # how often rooda could not start, since the last publication
        self._voided: list[str] = []  # why the iteration at work has to be done again, each time
        control.begin(ActiveTurn(run, turn))

    # -- steps -----------------------------------------------------------------------------

    def iterate(self) -> dict[str, Any]:
        """Publish one more iteration, or find out why not. The result is for `take_turn`."""
        self._control.check()
        try:
            try:
                found = self._iterate()
            except SlotChanged as error:
                found = self._void(str(error))
        except (RunLost, SlotGone) as error:
            self._place.on_lost(str(error))
        except BrokenRecord as error:
            found = Next("end", state=RunState.FAILED, reason=str(error))
        except Unreachable as error:  # the turn is to end, and git is away
            found = self._interrupted(f": {one_line(str(error))}")
        except Exception as error:  # noqa: BLE001 - the run must not be stuck in any case
            traceback.print_exc()
            self._replace_without_slot()
            reason = f"rooda could not work on it: {one_line(str(error)) or type(error).__name__}"
            self._slot.leave()
            found = Next("wait", seconds=_AFTER_ERROR, reason=reason)
        self._control.check()
        return dict(to_builtins(found))

    def settle(self, found: Next) -> dict[str, Any]:
        """End the turn: note that the run waits or has ended, and how."""
        run = self._begun()
        if run is None:
            return {}
        if found.move == "end":
            try:
                ended = self._slot.finish(run, found.state)
            except SlotGone as error:
                self._place.on_lost(str(error))
            self._ask(
                lambda: self._store.end(
                    *self._key, self._turn, self._place.worker, found.state, found.reason, ended
                )
            )
        else:
            seconds = found.seconds + (random.uniform(0, _JITTER) if found.seconds else 0)  # noqa: S311
            self._ask(
                lambda: self._store.wait(
                    *self._key, self._turn, self._place.worker, seconds, found.reason
                )
            )
        return {}

    # -- one iteration ---------------------------------------------------------------------

    @property
    def _key(self) -> tuple[str, str]:
        return self._project, self.run

    def _iterate(self) -> Next:
        run = self._begun()
        if run is None:
            return Next("gone")
        if (found := self._before(run)) is not None:
            ended = self._slot.end(run, found) if found.move == "end" else found
            self._catch_up(run)
            return ended
        found = self._slot.open(run)
        self._catch_up(run)
        if found is not None:
            return found
        result = self._slot.work(run)
        if result is None or result.exit_code == INTERRUPTED:
            return self._interrupted()
        if result.status == NOT_STARTED:
            return self._not_started(run, result)
        if result.limit is not None and result.rule in (StopRule.LIMIT, StopRule.MAX_OUTAGE_WAIT):
            return self._held(run, result, result.limit)
        return self._published(run, result)

    def _begun(self) -> Run | None:
        place = self._place
        try:
            return self._ask(
                lambda: self._store.begin(*self._key, self._turn, place.worker, place.where)
            )
        except Dismissed as error:
            place.on_lost(str(error))

    def _catch_up(self, run: Run) -> None:
        """Tell the database what git has and it has not: a worker died after it had published."""
        record = self._slot.seen
        if record is None or record.run != run.run:
            return
        told = read_published(record)
        if record.iteration > run.iteration or told.cost > run.cost:
            progress = RunProgress(**told.progress | {"iteration": record.iteration})
            self._ask(lambda: self._store.advance(*self._key, self._place.worker, progress))

    def _before(self, run: Run) -> Next | None:
        """Return why no further iteration begins now; None if it may."""
        if run.order is not Order.NONE or self._control.order is not Order.NONE:
            return Next("end", state=RunState.STOPPED, reason="stopped by the user")
        if self._control.is_draining:
            return Next("wait", reason="handed back by its worker")
        return self._ask(lambda: wait_or_end(self._store, run))

    def _interrupted(self, why: str = "") -> Next:
        """Nothing of an interrupted iteration is published."""
        self._control.check()
        self._slot.leave()  # the next try claims the run again, and claims are counted
        if self._control.order is Order.NOW:
            return Next("end", state=RunState.STOPPED, reason=f"stopped by the user{why}")
        if self._control.is_draining:
            return Next("wait", reason=f"handed back by its worker{why}")
        return Next("again")

    def _void(self, why: str) -> Next:
        """Nothing of an iteration is published whose slot changed: it is done again.

        The same damage again and again comes from the agent, and each repetition is paid for.
        Raises RunLost, SlotGone, SlotChanged or Unreachable.
        """
        self._control.check()
        self._slot.discard(self.run, why)
        self._voided = [*(one for one in self._voided if one == why), why]
        if len(self._voided) < _MOST_VOIDED:
            return self._interrupted()
        self._slot.leave()
        run = self._begun()
        if run is None:
            return Next("gone")
        reason = f"{why}, {_MOST_VOIDED} times in a row: its agent seems to do that"
        return self._slot.end(run, Next("end", state=RunState.FAILED, reason=reason))

    def _replace_without_slot(self) -> None:
        try:
            self._slot.check_folder()
        except SlotGone as error:
            self._place.on_lost(str(error))

    def _not_started(self, run: Run, result: RunOutcome) -> Next:
        """End a run that can't start, unless it was bad luck, such as a killed git.

        Claims do not tell: those of workers that died count too.
        """
        self._not_starts += 1
        if self._not_starts < _TRIES_TO_START:
            self._slot.leave()
            return Next("again")
        return self._slot.give_up(run, RunState.FAILED, one_line(result.reason))

    def _held(self, run: Run, result: RunOutcome, limit: AgentHold) -> Next:
        """The account has a limit, or its service is away: keep what the agent did, and wait."""
        reason = f"{limit.kind} of {run.account}: {one_line(limit.evidence)}"
        seconds = _OUTAGE
        if limit.kind == "limit":
            seconds = _seconds_until(limit.until)
            reason = f"the account {run.account} has a usage limit: {one_line(limit.evidence)}"
            self._ask(lambda: self._store.accounts.set_hold(run.account, seconds, reason))
        elif limit.kind == "overloaded":
            self._ask(lambda: self._store.accounts.lower(run.account, _LOWERED, reason))
        found = self._slot.publish(run, result, RunState.QUEUED, is_done=False)
        return found or Next("wait", seconds=seconds, reason=reason)

    def _published(self, run: Run, result: RunOutcome) -> Next:
        state, reason = _end_of(result)
        number = result.iteration
        reach("after-commit", self.run, number)
        found = self._slot.publish(run, result, state or RunState.WORKING, reason=reason)
        if found is not None:
            return found
        self._not_starts, self._voided = 0, []
        reach("after-push", self.run, number)
        progress = progress_of(result)
        self._ask(lambda: self._store.advance(*self._key, self._place.worker, progress))
        if state is None and result.retry_in:
            reason = f"iteration {number} failed: the next try waits"
            return Next("wait", seconds=result.retry_in, reason=reason, iteration=number)
        if state is None:
            return Next("again", iteration=number)
        return Next("end", state=state, reason=reason, iteration=number)

    def _ask(self, question: Callable[[], _T]) -> _T:
        """Return what the database answers; wait while it is away."""
        while True:
            self._control.check()
            try:
                return question()
            except DataError:
                raise  # the database is there, and refuses a value: to ask again does not help
            except SQLAlchemyError:
                self._control.rest(_RETRY)


def _end_of(result: RunOutcome) -> tuple[RunState | None, str]:
    """Return the state in which the run ended and why; None if it goes on."""
    match result.status, result.rule:
        case _, StopRule.PAUSED:
            return None, ""
        case "success", _:
            return RunState.SUCCESS, result.reason
        case "interrupted", _:
            return RunState.STOPPED, result.reason or "interrupted"
        case _:
            return RunState.FAILED, result.reason or result.rule or "failed"


def _seconds_until(end: datetime | None) -> float:
    """Return the seconds from now until the end of a limit, on the clock that read it."""
    if end is None:
        return _UNKNOWN_LIMIT
    return max(1.0, (end - datetime.now(UTC)).total_seconds())
