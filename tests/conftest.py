import os
from pathlib import Path

import pytest

from rooda.process.warden import client
from support.workspace import Workspace

if "COVERAGE_PROCESS_CONFIG" in os.environ:
    # Coverage gets into a process by the start-up files, which a warden does without.
    client.PYTHON_FLAGS = ("-I",)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty work folder and an empty home beside it."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Workspace(work, home)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children run without coverage: it takes descriptors, processes and time of its own."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
