"""An agent can write modules to the work tree: rooda does not import them."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.workspace import Workspace

# Coverage would import them before rooda starts.
NO_COVERAGE = {"COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""}
# Modules of Python, dependencies of rooda, and one of the warden.
PLANTED = ("typing", "signal", "socket", "json", "sqlite3", "click", "msgspec", "yaml", "psutil")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("path", [":", "src", "{here}", "{here}/src:/nowhere"])
def test_python_path_does_not_lead_rooda_into_the_work_tree(
    workspace: Workspace, tmp_path: Path, path: str
) -> None:
    marker = tmp_path / "imported"
    for name in PLANTED:
        for folder in ("", "src/"):
            workspace.write(f"{folder}{name}.py", f"open({str(marker)!r}, 'a').write({name!r})")
    workspace.env.update({**NO_COVERAGE, "PYTHONPATH": path.format(here=workspace.path)})
    done = workspace.work("echo '<promise>SUCCESS</promise>'")
    assert done.code == 0, done.err
    assert not marker.exists(), marker.read_text()


# Python loads these before rooda's first line; processes.md names them.
BEFORE_ROODA = {"encodings", "re", "sitecustomize", "usercustomize", "rooda"}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("path", [":", ".", "{here}", "below/.."])
@pytest.mark.parametrize("words", [("diff",), ("show",), ("why",), ("demo",)])
def test_commands_and_their_helpers_import_nothing_from_the_work_tree(
    workspace: Workspace, tmp_path: Path, path: str, words: tuple[str, ...]
) -> None:
    marker = tmp_path / "imported"
    workspace.env.update(NO_COVERAGE)
    subprocess.run(["git", "init", "-q", str(workspace.path)], check=True)
    assert workspace.work("echo x > file; echo '<promise>SUCCESS</promise>'").code == 0
    probe = "import sys, re; print(*sys.modules)"
    first = subprocess.check_output([sys.executable, "-I", "-c", probe], text=True).split()
    (workspace.path / "below").mkdir()
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")} | set(PLANTED)
    for name in names - set(first) - BEFORE_ROODA:
        workspace.write(f"{name}.py", f"open({str(marker)!r}, 'a').write('{name} ')")
    workspace.env["PYTHONPATH"] = path.format(here=workspace.path)
    done = workspace.rooda(*words)
    assert done.code == 0, done.err
    assert not marker.exists(), marker.read_text()


def test_python_path_is_found_in_the_whole_work_tree(workspace: Workspace, tmp_path: Path) -> None:
    marker = tmp_path / "imported"
    workspace.write("click.py", f"open({str(marker)!r}, 'w').write('click')")
    below = workspace.path / "below"
    for folder in (workspace.path, below):  # an agent can make a repository in the work tree
        (folder / ".git").mkdir(parents=True)
    done = Workspace(below, workspace.home, {**NO_COVERAGE, "PYTHONPATH": ".."}).rooda("list")
    assert done.code == 0, done.err
    assert not marker.exists()


@pytest.mark.real
def test_isolated_python_ignores_modules_that_would_be_loaded_before_rooda(
    workspace: Workspace, tmp_path: Path
) -> None:
    marker = tmp_path / "imported"
    for name in ("sitecustomize", "usercustomize", "re", "rooda", "typing"):
        workspace.write(f"{name}.py", f"open({str(marker)!r}, 'a').write({name!r})")
    done = subprocess.run(
        [sys.executable, "-I", "-m", "rooda", "list"],
        cwd=workspace.path,
        env=workspace.environ({**NO_COVERAGE, "PYTHONPATH": ":"}),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not marker.exists(), marker.read_text()
