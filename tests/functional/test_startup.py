"""Imports at start-up: each command imports only the libraries that it needs."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from rooda.world.agents.registry import COMMANDS
from support.workspace import PROCEDURE, ROODA, Workspace

pytestmark = pytest.mark.real

MODULE = ("-m", "rooda")
SCRIPT = (str(ROODA),)
ADAPTERS = {f"rooda.world.agents.{name.replace('-', '_')}" for name in COMMANDS}
# Runs rooda and prints every loaded module: -X importtime does not list those of importlib.
LOADED = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, sep="\\n", file=sys.stderr))
runpy.run_module("rooda", run_name="__main__")
"""
# With coverage, a test run would import its own libraries into the process.
COVERAGE = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "COV_CORE_SOURCE")


def imported(
    workspace: Workspace, *args: str, code: int = 0, env: Mapping[str, str | None] | None = None
) -> set[str]:
    """The modules that a Python process imports, as -X importtime prints them."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *args],
        cwd=workspace.path,
        env=workspace.environ({**dict.fromkeys(COVERAGE), **(env or {})}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr[-2000:]
    rows = [row.split("|") for row in done.stderr.splitlines() if row.startswith("import time:")]
    names = {row[2].strip() for row in rows}
    assert "rooda.front.cli.main" in names
    return names


FLEET = {"dbos", "sqlalchemy", "psycopg"}  # for `rooda fleet` and `rooda worker` alone
EXTRAS = FLEET | {"textual", "starlette", "uvicorn", "apprise"}  # each is for a command of its own


def packages(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("start", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize("word", ["--version", "version"])
def test_version_imports_no_library(
    workspace: Workspace, start: tuple[str, ...], word: str
) -> None:
    found = packages(imported(workspace, *start, word))
    assert found & {"yaml", "msgspec", "rich", "sqlite3", "click", "asyncio"} == set()
    assert found & EXTRAS == set()


def test_help_imports_no_command(workspace: Workspace) -> None:
    found = imported(workspace, *MODULE, "--help")
    assert packages(found) & {"yaml", "msgspec", "sqlite3"} == set()
    assert not {
        name for name in found if name.startswith(("rooda.front.cli.commands.", "rooda.plan."))
    }


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "args", [("build", "--help"), ("resume", "--help")], ids=lambda args: args[0]
)
def test_help_of_a_run_imports_no_module_that_only_a_run_needs(
    workspace: Workspace, args: tuple[str, ...]
) -> None:
    found = imported(workspace, *MODULE, *args)
    assert packages(found) & {"yaml", "sqlite3", "subprocess"} == set()
    assert "rooda.plan.prepare" not in found


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "line",
    [
        "rooda bu",
        "rooda ",
        "rooda run bu",
        "rooda build --max",
        "rooda completion f",
        "rooda resume l",
        "rooda build --ai-cmd-alias c",
    ],
)
def test_completion_imports_no_heavy_library(workspace: Workspace, line: str) -> None:
    workspace.config(PROCEDURE)
    env = {
        "_ROODA_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    found = packages(imported(workspace, *MODULE, env=env))
    assert found & {"yaml", "rich", "sqlite3", "asyncio"} == set()


def test_run_imports_no_heavy_library(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("exit 0")
    found = packages(imported(workspace, *SCRIPT, "work", "-n", "2", "--ai-cmd", agent, code=2))
    assert found & {"asyncio", "rich", "http", "ssl", "unittest", "jinja2", "markupsafe"} == set()
    assert found & EXTRAS == set()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "args,adapters",
    [
        (("build", "--dry-run", "--ai-cmd-alias", "codex"), {"rooda.world.agents.codex"}),
        (("build", "--dry-run", "--ai-cmd", "true"), set()),
        (("list", "--aliases"), set()),
    ],
)
def test_rooda_imports_only_the_adapter_of_the_chosen_agent(
    workspace: Workspace, args: tuple[str, ...], adapters: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *args],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "rooda.front.cli.main" in done.stderr.split()
    assert set(done.stderr.split()) & ADAPTERS == adapters


def test_run_that_sends_messages_leaves_the_libraries_for_that_to_another_process(
    workspace: Workspace,
) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("exit 0")
    env = {"ROODA_LOOP_NOTIFY_URLS": "json://127.0.0.1:9/x"}
    found = packages(
        imported(workspace, *SCRIPT, "work", "-n", "1", "--ai-cmd", agent, code=2, env=env)
    )
    assert found & (EXTRAS | {"asyncio", "http", "ssl", "requests"}) == set()


def test_dry_run_imports_no_heavy_library(workspace: Workspace) -> None:
    found = packages(imported(workspace, *SCRIPT, "build", "--dry-run", "--ai-cmd", "true"))
    assert found & EXTRAS == set()
    assert found & {"asyncio", "rich", "sqlite3", "http", "ssl", "unittest"} == set()
