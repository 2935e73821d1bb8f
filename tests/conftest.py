import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.process.warden import client
from support.children import Nursery
from support.jobs import Job
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

_WARDENS = ("process", "sandbox")  # folders of tests

# `nohup make test &` leaves these ignored, and rooda and the agents would inherit that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


PART = "ROODA_TEST_PART"  # 0 to 4: of large matrices of slow tests, run this part
_PARTS = 5
_LARGE = 5  # sets of parameters
_WHOLE = ("test_the_same_holds_in_the_sandbox",)  # matrices that always run as a whole


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a part of each large matrix of slow tests, where `.ci/run` asks for that."""
    part = os.environ.get(PART)
    if part is None:
        return
    matrices: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("slow") and not name.endswith(_WHOLE):
            matrices.setdefault(name, []).append(item)
    left_out: set[pytest.Item] = set()
    for same in matrices.values():
        if len(same) >= _LARGE:
            ordered = sorted(same, key=lambda item: item.nodeid)
            left_out.update(set(same).difference(ordered[int(part) :: _PARTS]))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty work folder and an empty home folder next to it."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Workspace(work, home)


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    """A work folder with a small procedure. Processes started there end with the test."""
    workspace.config(PROCEDURE)
    found = Nursery(workspace.path)
    yield found
    found.clear()


@pytest.fixture
def screen(nursery: Nursery) -> Iterator[Screen]:
    """A terminal for one run."""
    assert nursery.folder.is_dir()
    found = Screen()
    yield found
    found.close()


@pytest.fixture
def job(nursery: Nursery) -> Iterator[Job]:
    """A small shell on a terminal, with rooda as its job."""
    assert nursery.folder.is_dir()
    found = Job()
    yield found
    found.close()


@pytest.fixture(autouse=True, scope="module")
def measured_wardens(request: pytest.FixtureRequest) -> Iterator[None]:
    """Measure the coverage of wardens where they are tested; it makes their start slow."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    with pytest.MonkeyPatch.context() as monkeypatch:
        if folder in _WARDENS and "COVERAGE_PROCESS_CONFIG" in os.environ:
            # Coverage starts in a process through the start-up files of the virtual environment.
            monkeypatch.setattr(client, "PYTHON", sys.executable)
            monkeypatch.setattr(client, "PYTHON_FLAGS", ("-I",))
        yield


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run children without coverage, which takes descriptors, processes and time."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
