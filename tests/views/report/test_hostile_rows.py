"""An agent can write to the record: a report of any rows is made without an error."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from msgspec.structs import replace

from rooda.loop.iteration_facts import Segment, SegmentKind
from rooda.record.rows import IterationRow, RecordedWait, Slept
from rooda.views.model.build import summarize
from rooda.views.report.details import DetailReader
from rooda.views.report.make import as_json, html
from rooda.views.report.markdown_report import markdown
from rooda.world.git.snapshots.tree_changes import LineCount, LineCounts
from rooda.world.testresults.results import TestResults
from support.nights import START, at, iteration, night
from support.pages import Page
from support.properties import examples
from support.states import record_at

NUMBERS = st.sampled_from([0.0, -1.0, 1e-9, 5.0, 1e6, 1e17, 1e308, -1e308])
WHOLE = st.sampled_from([0, -1, 1, 7, 10**9, 10**17])
TIMES = st.sampled_from(
    [at(0), at(600), at(-9e5), "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00", "x", ""]
)
ROWS = st.builds(
    lambda number, status, started, ended, duration, cost, segment, slept, counts, tests: replace(
        iteration(1),
        number=number,
        status=status,
        started_at=started,
        ended_at=ended,
        duration=duration,
        cost=cost,
        segments=(segment,) * 3,
        slept=(slept,),
        lines=counts,
        result=replace(iteration(1).result or 0, test_results=tests),  # type: ignore[type-var]
    ),
    WHOLE,
    st.sampled_from(["completed", "failed", "executing", "timed_out", "skipped", "interrupted"]),
    TIMES,
    st.none() | TIMES,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.builds(Segment, st.sampled_from(SegmentKind), NUMBERS, NUMBERS),
    st.builds(Slept, TIMES, NUMBERS),
    st.none()
    | st.builds(
        LineCounts,
        WHOLE,
        WHOLE,
        WHOLE,
        st.tuples(st.builds(LineCount, st.text(max_size=5), st.none() | WHOLE, st.none() | WHOLE)),
    ),
    st.none() | st.builds(TestResults, WHOLE, WHOLE, WHOLE, WHOLE),
)
WAITS = st.builds(
    RecordedWait,
    WHOLE,
    st.sampled_from(["limit", "outage", "backoff", "other"]),
    st.just("claude"),
    st.just("reason"),
    TIMES,
    NUMBERS,
    waited=st.none() | NUMBERS,
    started_at=st.none() | TIMES,
)


@pytest.mark.long
@examples(
    60,
    phases=[Phase.explicit, Phase.generate],  # to make it smaller would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(ROWS, max_size=4),
    waits=st.tuples() | st.tuples(WAITS),
    status=st.sampled_from(["running", "success", "aborted", "interrupted", "max-iters", "other"]),
    rule=st.sampled_from([None, "signal", "failure-threshold", "max-iterations", "max-cost", "x"]),
    ended=st.none() | TIMES,
    started=TIMES,
)
def test_any_rows_make_a_report(
    tmp_path: Path,
    rows: list[IterationRow],
    waits: tuple[RecordedWait, ...],
    status: str,
    rule: str | None,
    ended: str | None,
    started: str,
) -> None:
    run = night(status=status, rule=rule, ended_at=ended, started_at=started, waits=waits)
    ordered = sorted(rows, key=lambda row: row.number)
    found = summarize(run, ordered, START + timedelta(hours=9))
    page = Page("".join(html(found, record_at(tmp_path), DetailReader(record_at(tmp_path)))))
    assert page.elements["script"] == 1
    assert "".join(markdown(found)).startswith("# tabq")
    assert "".join(as_json(found))
