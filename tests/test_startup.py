"""What is imported when: nobody waits for a library that isn't needed."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from support.workspace import PROCEDURE, ROODA, Workspace

MODULE = ("-m", "rooda")
SCRIPT = (str(ROODA),)
# A measured test run would put its own libraries into the process that is looked at.
MEASURING = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "COV_CORE_SOURCE")


def imported(
    workspace: Workspace, *args: str, code: int = 0, env: Mapping[str, str | None] | None = None
) -> set[str]:
    """The modules that a Python process imports, by its own account."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *args],
        cwd=workspace.path,
        env=workspace.environ({**dict.fromkeys(MEASURING), **(env or {})}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr[-2000:]
    rows = [row.split("|") for row in done.stderr.splitlines() if row.startswith("import time:")]
    names = {row[2].strip() for row in rows}
    assert "rooda.cli.main" in names
    return names


def packages(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("start", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version_needs_no_library(
    workspace: Workspace, start: tuple[str, ...], word: str
) -> None:
    found = packages(imported(workspace, *start, word))
    assert found & {"yaml", "msgspec", "rich", "sqlite3", "click", "asyncio"} == set()


@pytest.mark.parametrize(
    "line", ["rooda bu", "rooda ", "rooda run bu", "rooda build --max", "rooda completion f"]
)
def test_completion_is_light(workspace: Workspace, line: str) -> None:
    workspace.config(PROCEDURE)
    env = {
        "_ROODA_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    found = packages(imported(workspace, *MODULE, env=env))
    assert found & {"yaml", "rich", "sqlite3", "asyncio"} == set()


def test_a_run_imports_nothing_heavy(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("exit 0")
    found = packages(imported(workspace, *SCRIPT, "work", "-n", "2", "--ai-cmd", agent, code=2))
    assert found & {"asyncio", "rich", "msgspec", "http", "ssl", "unittest"} == set()


def test_a_dry_run_imports_nothing_heavy(workspace: Workspace) -> None:
    found = packages(imported(workspace, *SCRIPT, "build", "--dry-run", "--ai-cmd", "true"))
    assert found & {"asyncio", "rich", "sqlite3", "msgspec", "http", "ssl", "unittest"} == set()
