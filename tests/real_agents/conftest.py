import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from real_agents.bench import SANDBOXED, Bench
from real_agents.programs import PROGRAMS
from real_agents.scripted_api import ScriptedApi
from support.recorded import versioned
from support.sandboxes import require_bwrap
from support.workspace import Workspace

_HERE = Path(__file__).parent
_WANTED = os.environ.get("ROODA_REAL_AGENTS") == "1"


if not _WANTED:  # `make test-agents` wants them; the programs need much disk space
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put these tests into the second ring, because they start programs."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("real")


@pytest.fixture(params=[*PROGRAMS, *(name + SANDBOXED for name in PROGRAMS)])
def bench(request: pytest.FixtureRequest, workspace: Workspace) -> Iterator[Bench]:
    """A program, a git repository and the API; no process may survive the test.

    Each program runs with and without the sandbox.
    """
    name = request.param
    program = PROGRAMS[name.removesuffix(SANDBOXED)]
    if shutil.which("npm") is None:
        pytest.skip("npm is missing; it installs the agents")
    if not program.path.exists():
        pytest.skip(f"{program.name} is not installed: `make test-agents` installs it")
    if name.endswith(SANDBOXED):
        require_bwrap()
    with ScriptedApi() as api:
        found = Bench(program, versioned(workspace), api, sandboxed=name.endswith(SANDBOXED))
        yield found
        left = found.survivors()
        for process in left:
            process.kill()
        psutil.wait_procs(left)
        assert not left
