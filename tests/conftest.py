import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.process.warden import client
from support.children import Nursery
from support.jobs import Job
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

if "COVERAGE_PROCESS_CONFIG" in os.environ:
    # Coverage gets into a process by the start-up files of the virtual environment.
    client.PYTHON, client.PYTHON_FLAGS = sys.executable, ("-I",)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty work folder and an empty home beside it."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Workspace(work, home)


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    """What a test starts in a work folder with a small procedure; it ends with the test."""
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


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children run without coverage: it takes descriptors, processes and time of its own."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
