"""docs/reference/fleet.md names every state, kind, column, key and variable that there is."""

from pathlib import Path

import pytest

from rooda.fleet.actions.merge_runs import MergeOutcome
from rooda.fleet.display.fleet_table import Sight, as_object, run_object
from rooda.fleet.remote.fence import FALLBACK
from rooda.fleet.remote.record_commits import FILES, Facts, PublishedResult, RecordKind
from rooda.fleet.run_model import BRANCHES, RECORDS, Batch, FleetTask, Run, RunState
from rooda.fleet.slot.slot import Slot
from rooda.fleet.store.tables import METADATA
from rooda.world.tools import Tools
from support.tables import each_row

PAGE = (Path(__file__).parents[2] / "docs/reference/fleet.md").read_text()
RUN = Run("project", "auth", Batch("b", "0" * 40), FleetTask("auth"))
SLOT = Slot(Path("/nowhere/project/1"), 1, "/nowhere", Tools({}), -1)


@each_row(
    "names",
    [
        pytest.param(tuple(RunState), id="states"),
        pytest.param(tuple(MergeOutcome), id="outcomes of a merge"),
        pytest.param((*RecordKind, *FILES, *Facts.__struct_fields__), id="record commits"),
        pytest.param(PublishedResult.__struct_fields__, id="result.json"),
        pytest.param(tuple(METADATA.tables), id="tables"),
        pytest.param(tuple(as_object(Sight([], 0.0))), id="keys of the fleet"),
        pytest.param(tuple(run_object(RUN, {}, 0.0)), id="keys of a run"),
        pytest.param(tuple(SLOT.environment()), id="variables"),
    ],
)
def test_each_name_is_on_the_page(names: tuple[str, ...]) -> None:
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_each_column_of_a_table_is_on_the_page() -> None:
    for table in METADATA.tables.values():
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{table.name}`"))
        assert [column.name for column in table.columns if f"`{column.name}`" not in row] == []


def test_the_places_in_git_are_on_the_page() -> None:
    for place in (BRANCHES, RECORDS, FALLBACK.removeprefix("refs/heads/")):
        assert f"{place}RUN`" in PAGE
