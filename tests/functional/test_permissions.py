"""The user may not read the state folder: every command says so, and a run continues."""

from collections.abc import Iterator

import pytest

from support.children import Nursery
from support.faults import check, powerless
from support.recorded import versioned
from support.states import state_of
from support.workspace import Workspace

pytestmark = pytest.mark.real

READING = ("show", "history", "why", "diff 1", "restore 1", "follow", "resume")


@pytest.fixture
def with_record(workspace: Workspace) -> Iterator[Workspace]:
    """Return a repository with a record; its modes are corrected at the end."""
    versioned(workspace)
    assert workspace.work("true", "-n", "1").code == 2
    yield workspace
    (workspace.state).chmod(0o700)
    (workspace.state / "rooda.db").chmod(0o600)
    (workspace.state / "runs").chmod(0o700)


@pytest.mark.long
@pytest.mark.parametrize("what", ["", "rooda.db"])
def test_reading_commands_name_a_record_without_permissions(
    with_record: Workspace, nursery: Nursery, what: str
) -> None:
    folder = state_of(with_record.path)
    (folder / what).chmod(0)
    for command in READING:
        done = nursery.start(with_record, *command.split(), before=powerless()).finish()
        check(done, with_record, 1)
        assert f"`{folder}/rooda.db` can't be read (Permission denied)" in done.err, command
        assert f"`chmod -R u+rwX {folder}`" in done.err, command


def test_run_goes_on_if_the_folder_of_earlier_runs_has_no_permissions(
    with_record: Workspace, nursery: Nursery
) -> None:
    (state_of(with_record.path) / "runs").chmod(0)
    started = nursery.start(with_record, "work", "--ai-cmd", "true", "-n", "1", before=powerless())
    done = started.finish()
    check(done, with_record, 2)
    assert "WARN: The state folder can't be written; a temporary file" in done.err
