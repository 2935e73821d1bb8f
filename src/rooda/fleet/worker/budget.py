"""What keeps a run from its next iteration: the budget of its batch, or a hold of its account."""

from rooda.base.numbers import count, money
from rooda.fleet.display.run_words import BATCH_SPENT
from rooda.fleet.run_model import Run, RunState
from rooda.fleet.store.store import FleetStore
from rooda.fleet.worker.next_move import Next

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
