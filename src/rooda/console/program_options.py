"""The options for programs that start rooda: they are no settings, and no flags of the run."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooda.console.options import RunOption

if TYPE_CHECKING:
    from rooda.engine.for_programs import ForPrograms

SECTION = "For programs"  # the section of the help

_OPTIONS: Mapping[str, tuple[str, str]] = {
    "--record": ("DIR", "Keep the record of the run in DIR, not in the work tree"),
    "--run-id": ("NAME", "Name of the new run [default: its time and six letters]"),
    "--lifeline": (
        "FD",
        "Stop the agent, and exit with 130, when the other end of this pipe closes",
    ),
}
_NUMBER = re.compile(r"[0-9]{1,9}")
NAMES = frozenset(flag.removeprefix("--").replace("-", "_") for flag in _OPTIONS)


def program_options() -> list[click.Parameter]:
    """Return the options; only `--help-all` shows them."""
    return [
        RunOption([flag], metavar=metavar, help=words, section=SECTION, common=False)
        for flag, (metavar, words) in _OPTIONS.items()
    ]


def absolute(path: str | None) -> Path | None:
    """Return the path that the user named, as seen from the current folder."""
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100


def record_of(parameters: Mapping[str, Any]) -> Path | None:
    """Return the folder for the record that `--record` names. Raises InvalidInput."""
    # Imported here: help and completion need none of it.
    from rooda.config.world import this_world
    from rooda.engine.for_programs import record_apart

    folder = absolute(parameters.get("record"))
    return None if folder is None else record_apart(folder, this_world())


def check_run_id(parameters: Mapping[str, Any], *, is_new: bool) -> None:
    """Raise UsageError if `--run-id` can't be the name of the run; an earlier run has a name."""
    from rooda.record.run_names import wrong_name

    name = parameters["run_id"]
    if name is None:
        return
    if not is_new:
        raise click.UsageError("--run-id is for new runs: a run that goes on keeps its name")
    if trouble := wrong_name(name):
        raise click.UsageError(f"{name!r} can't be the name of a run: {trouble}")


def hold_lifeline(parameters: Mapping[str, Any]) -> None:
    """Hold the descriptor that `--lifeline` names, if it names one. Raises UsageError."""
    from rooda.process.lifeline import LifelineError, hold

    name = parameters["lifeline"]
    if name is None:
        return
    if not _NUMBER.fullmatch(name):
        raise click.UsageError(f"--lifeline {name} can't be used: it is no descriptor's number")
    try:
        hold(int(name))
    except LifelineError as error:
        raise click.UsageError(f"--lifeline {name} can't be used: {error}") from None


def for_programs(parameters: Mapping[str, Any]) -> "ForPrograms":
    """Return what the program that started rooda asks for."""
    from rooda.engine.for_programs import ForPrograms

    return ForPrograms(run_id=parameters["run_id"] or "")
