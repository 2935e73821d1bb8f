"""What a resumed run counts from 0: otherwise the rule that aborted it would do so again."""

from msgspec.structs import replace

from rooda.loop.state import Limits, SavedState, State, Status
from rooda.loop.stops import StopRule, stop
from rooda.run.resume import restored
from support.nights import night

COUNTS = {"consecutive_failures": 3, "backoffs": 2, "idle": 4, "refusals": 3}


def test_resume_counts_from_zero_after_an_abort_alone() -> None:
    saved = replace(State(iteration=5, tokens=7), **COUNTS).saved()
    for status in (Status.ABORTED, Status.INTERRUPTED):
        state = restored(night(status=str(status), state=saved))
        assert (state.iteration, state.tokens) == (5, 7)
        counts = {name: getattr(state, name) for name in COUNTS}
        assert counts == (dict.fromkeys(COUNTS, 0) if status is Status.ABORTED else COUNTS)
        found = stop(state, Limits(None, 3, stall_threshold=4))
        assert (found is None) == (status is Status.ABORTED)


def test_record_keeps_every_count_of_a_stop_rule() -> None:
    counted = {name for rule in StopRule for name in rule.row.recounts}
    assert counted - set(SavedState.__struct_fields__) == set()
    assert counted >= set(COUNTS)
