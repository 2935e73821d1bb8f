"""An internal error of rooda: exit code 3, a short message, and a log fit for a bug report."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rooda import __version__
from rooda.front import errors
from rooda.front.cli.app import app
from rooda.front.cli.commands import setup
from rooda.front.command_table import COMMANDS, CommandRow
from rooda.world.process.interrupts import Interrupts
from support.workspace import ROODA, Workspace

SECRET = "sk-very-secret-42"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the user for this test only."""
    folder = tmp_path / "state"
    monkeypatch.setenv("ROODA_STATE_HOME", str(folder))
    monkeypatch.setenv("ROODA_LOOP_AI_CMD", f"agent --key {SECRET}")
    monkeypatch.setenv("API_KEY", SECRET)
    return folder


@pytest.fixture
def install_broken_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Install a command `boom` that raises the given error."""

    def add_command(error: BaseException) -> None:
        def fail(words: tuple[str, ...]) -> None:  # noqa: ARG001 - click's form
            raise error

        argument = click.Argument(["words"], nargs=-1)
        command = click.Command("boom", callback=fail, params=[argument])
        monkeypatch.setattr(setup, "boom", command, raising=False)
        monkeypatch.setitem(COMMANDS, "boom", CommandRow("setup", "boom", "Run", "Fail."))

    return add_command


@pytest.fixture(scope="module")
def interrupts() -> Interrupts:
    return Interrupts()


def test_unexpected_error_exits_with_3_and_a_short_message(
    state: Path,
    install_broken_command: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_broken_command(RuntimeError("internal failure"))
    assert errors.run(["boom", "some", "words"], interrupts, app) == 3
    out, err = capsys.readouterr()
    (log,) = state.iterdir()
    assert out == ""
    assert len(err.splitlines()) <= 3
    assert err.startswith("Internal error: RuntimeError: internal failure\n")
    assert str(log) in err
    assert "Traceback" not in err
    assert SECRET not in err


def test_log_is_fit_for_a_bug_report(
    state: Path, install_broken_command: Callable[[BaseException], None], interrupts: Interrupts
) -> None:
    install_broken_command(RuntimeError("internal failure"))
    errors.run(["boom", "some", "words"], interrupts, app)
    (file,) = state.iterdir()
    log = file.read_text()
    assert "Traceback (most recent call last):" in log
    assert "RuntimeError: internal failure" in log
    assert f"rooda {__version__}" in log
    assert f"Python {sys.version.split()[0]}" in log
    assert "['boom', 'some', 'words']" in log
    assert "ROODA_LOOP_AI_CMD" in log, "the log names the variables"
    assert SECRET not in log, "the log does not show their values"


def test_long_error_is_shortened_on_the_terminal(
    state: Path,
    install_broken_command: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_broken_command(ValueError("\x1b[31mline\n" * 500))
    assert errors.run(["boom"], interrupts, app) == 3
    err = capsys.readouterr().err
    assert len(err.splitlines()) <= 5
    assert "\x1b" not in err
    (file,) = state.iterdir()
    assert file.read_text().count("line") >= 500, "the log has the complete error"


def test_log_goes_to_the_temporary_folder_without_a_state_folder(
    state: Path,
    tmp_path: Path,
    install_broken_command: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state.write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    install_broken_command(RuntimeError("internal failure"))
    assert errors.run(["boom"], interrupts, app) == 3
    (log,) = tmp_path.glob("crash-*.log")
    assert str(log) in capsys.readouterr().err


@pytest.mark.parametrize(
    "error,code",
    [
        (click.UsageError("wrong"), 1),
        (click.ClickException("wrong"), 1),
        (click.exceptions.Exit(7), 7),
        (BrokenPipeError(), 0),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0),
        (RecursionError("deep"), 3),
        (MemoryError(), 3),
        (KeyError("x"), 3),
        (OSError(28, "No space left on device"), 1),
        (OSError(5, "Input/output error"), 3),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_only_unexpected_errors_exit_with_3_and_write_a_log(
    state: Path,
    install_broken_command: Callable[[BaseException], None],
    interrupts: Interrupts,
    error: BaseException,
    code: int,
) -> None:
    install_broken_command(error)
    assert errors.run(["boom"], interrupts, app) == code
    assert state.exists() == (code == 3)


@pytest.mark.real
def test_installed_command_exits_with_3(workspace: Workspace) -> None:
    program = """
import sys, click
from rooda.front.cli import app
from rooda.front.cli.commands import setup
from rooda.front import errors
from rooda.front.command_table import COMMANDS, CommandRow
from rooda.front.cli.main import main
def fail(): raise RuntimeError("internal failure")
setup.boom = click.Command("boom", callback=fail)
app.COMMANDS["boom"] = CommandRow("setup", "boom", "Run", "Fail.")
sys.exit(main(["boom"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=workspace.path,
        env=workspace.environ({"API_KEY": SECRET}),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr
    (log,) = Path(os.environ["ROODA_STATE_HOME"]).glob("crash-*")
    assert str(log) in done.stderr
    text = log.read_text()
    assert "Traceback" in text
    assert SECRET not in text


def test_log_has_no_values_of_the_agents_environment(
    state: Path, install_broken_command: Callable[[BaseException], None], interrupts: Interrupts
) -> None:
    install_broken_command(RuntimeError("internal failure"))
    errors.run(["boom", "--", "--env", f"TOKEN={SECRET}", f"--env=KEY={SECRET}"], interrupts, app)
    (file,) = state.iterdir()
    log = file.read_text()
    assert "TOKEN" in log
    assert SECRET not in log


@pytest.mark.real(rows=1)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [["list"], ["config", "schema"]])
def test_full_disk_is_reported_without_an_internal_error(
    workspace: Workspace, words: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [ROODA, *words],
            cwd=workspace.path,
            env=workspace.environ(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Internal error" not in done.stderr
