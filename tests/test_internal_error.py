"""An error of rooda's own: exit 3, a short message, and a log fit for a bug report."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rooda import __version__
from rooda.cli.app import app
from rooda.cli.commands import setup
from rooda.console import errors
from rooda.console.command_table import COMMANDS, CommandRow
from rooda.process.interrupts import Interrupts
from support.workspace import ROODA, Workspace

SECRET = "sk-very-secret-42"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for state; nothing of the machine's own is touched."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setenv("ROODA_LOOP_AI_CMD", f"agent --key {SECRET}")
    monkeypatch.setenv("API_KEY", SECRET)
    return folder


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Puts a command `boom` into the table that raises what it is told to."""

    def install(error: BaseException) -> None:
        def fail(words: tuple[str, ...]) -> None:  # noqa: ARG001 - click's form
            raise error

        argument = click.Argument(["words"], nargs=-1)
        command = click.Command("boom", callback=fail, params=[argument])
        monkeypatch.setattr(setup, "boom", command, raising=False)
        monkeypatch.setitem(COMMANDS, "boom", CommandRow("setup", "boom", "Run", "Fail."))

    return install


@pytest.fixture(scope="module")
def interrupts() -> Interrupts:
    return Interrupts()


def test_an_unexpected_error_is_exit_3_and_a_short_message(
    state: Path,
    broken: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken(RuntimeError("the flux is gone"))
    assert errors.run(["boom", "some", "words"], interrupts, app) == 3
    out, err = capsys.readouterr()
    (log,) = (state / "rooda").iterdir()
    assert out == ""
    assert len(err.splitlines()) <= 3
    assert err.startswith("Internal error: RuntimeError: the flux is gone\n")
    assert str(log) in err
    assert "Traceback" not in err
    assert SECRET not in err


def test_the_log_is_fit_for_a_bug_report(
    state: Path, broken: Callable[[BaseException], None], interrupts: Interrupts
) -> None:
    broken(RuntimeError("the flux is gone"))
    errors.run(["boom", "some", "words"], interrupts, app)
    (file,) = (state / "rooda").iterdir()
    log = file.read_text()
    assert "Traceback (most recent call last):" in log
    assert "RuntimeError: the flux is gone" in log
    assert f"rooda {__version__}" in log
    assert f"Python {sys.version.split()[0]}" in log
    assert "['boom', 'some', 'words']" in log
    assert "ROODA_LOOP_AI_CMD" in log, "which variables were set is worth knowing"
    assert SECRET not in log, "what they were set to is nobody's business"


def test_a_long_error_is_cut_for_the_terminal(
    state: Path,
    broken: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken(ValueError("\x1b[31mline\n" * 500))
    assert errors.run(["boom"], interrupts, app) == 3
    err = capsys.readouterr().err
    assert len(err.splitlines()) <= 5
    assert "\x1b" not in err
    (file,) = (state / "rooda").iterdir()
    assert file.read_text().count("line") >= 500, "the log has all of it"


def test_without_a_place_for_state_the_log_goes_to_the_temporary_folder(
    state: Path,
    tmp_path: Path,
    broken: Callable[[BaseException], None],
    interrupts: Interrupts,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state.write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken(RuntimeError("the flux is gone"))
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
        (RecursionError("deep"), 3),
        (MemoryError(), 3),
        (KeyError("x"), 3),
        (OSError(28, "No space left on device"), 1),
        (OSError(5, "Input/output error"), 3),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_which_errors_are_whose(
    state: Path,
    broken: Callable[[BaseException], None],
    interrupts: Interrupts,
    error: BaseException,
    code: int,
) -> None:
    broken(error)
    assert errors.run(["boom"], interrupts, app) == code
    assert (state / "rooda").exists() == (code == 3)


def test_the_whole_program_ends_with_3(workspace: Workspace) -> None:
    program = """
import sys, click
from rooda.cli import app
from rooda.cli.commands import setup
from rooda.console import errors
from rooda.console.command_table import COMMANDS, CommandRow
from rooda.cli.main import main
def fail(): raise RuntimeError("the flux is gone")
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
    (log,) = (workspace.home / ".local/state/rooda").iterdir()
    assert str(log) in done.stderr
    text = log.read_text()
    assert "Traceback" in text
    assert SECRET not in text


def test_values_for_the_agent_s_environment_are_left_out(
    state: Path, broken: Callable[[BaseException], None], interrupts: Interrupts
) -> None:
    broken(RuntimeError("the flux is gone"))
    errors.run(["boom", "--", "--env", f"TOKEN={SECRET}", f"--env=KEY={SECRET}"], interrupts, app)
    (file,) = (state / "rooda").iterdir()
    log = file.read_text()
    assert "TOKEN" in log
    assert SECRET not in log


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [["list"], ["config", "schema"]])
def test_a_full_disk_is_an_error_and_not_a_bug(workspace: Workspace, words: list[str]) -> None:
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
