import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rooda.world.process.warden import client
from rooda.world.state.home import VARIABLE
from support import rings
from support.children import Nursery
from support.jobs import Job
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

_WARDENS = ("world/process", "world/sandbox")  # folders of tests

# `nohup make test &` leaves these ignored, and rooda and the agents would inherit that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ring", choices=rings.RINGS, default="all", help="which tests to run")


def pytest_configure(config: pytest.Config) -> None:
    if expression := rings.RINGS[config.getoption("--ring")]:
        config.option.markexpr = expression


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules without a test of the ring. None: pytest decides."""
    if not collection_path.match("test_*.py"):
        return None
    return rings.has_none_of(config.getoption("--ring"), collection_path.read_text()) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all rows of a table but those that `real(rows=...)` asks for to the third ring."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("real")
        if marker is not None and "rows" in marker.kwargs and not item.get_closest_marker("long"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for rows in tables.values():
        marker = rows[0].get_closest_marker("real")
        assert marker is not None
        for item in rings.left_out(rows, marker.kwargs["rows"]):
            item.add_marker("long")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by reason."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test of the first ring fail if the test or one of its fixtures starts a process."""
    if any(item.get_closest_marker(name) for name in rings.MARKERS):
        return (yield)
    with rings.without_processes(*(["git"] if item.get_closest_marker("git") else [])):
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def state_home_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state home for the tests of a module, so that none of them writes to that of the user."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.getbasetemp() / "states" / os.urandom(4).hex()
        monkeypatch.setenv(VARIABLE, str(folder))
        yield folder


@pytest.fixture(autouse=True)
def state_home(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, state_home_of_module: Path
) -> Path:
    """A state home for one test; tests that share a record share it too."""
    if _shares_records(request.path):
        return state_home_of_module
    folder = state_home_of_module / os.urandom(4).hex()
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@cache
def _shares_records(module: Path) -> bool:
    return 'scope="module"' in module.read_text()


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
    folder = request.path.parent.relative_to(Path(__file__).parent).as_posix()
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
