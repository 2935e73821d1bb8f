"""The options for programs that start rooda: they are no settings, and no flags of the run."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooda.front.options import RunOption

if TYPE_CHECKING:
    from rooda.run.request import ForPrograms
    from rooda.world.state.record_place import RecordPlace

SECTION = "For programs"  # the section of the help

_OPTIONS: Mapping[str, tuple[str, str]] = {
    "--record": ("DIR", "Keep the record of the run in DIR, outside of the work tree"),
    "--run-id": ("NAME", "Name of the new run [default: its time and six letters]"),
    "--result": ("FILE", "Write the outcome of the run to FILE, as one JSON object"),
    "--account": ("NAME", "Account that pays for the agent, for messages about its usage limits"),
    "--pause-after": ("N", "End with exit code 0 after N more iterations; `resume` continues"),
    "--lifeline": (
        "FD",
        "Stop the agent, and exit with 130, when the other end of this pipe closes",
    ),
    "--only-run": (
        "CMD",
        "Run CMD in place of the agent, in the sandbox if there is one; exit with its code",
    ),
}
_NUMBER = re.compile(r"[0-9]{1,9}")
NAMES = frozenset(flag.removeprefix("--").replace("-", "_") for flag in _OPTIONS)


class _AbsolutePath(click.ParamType[str]):
    """A path as seen from the folder where the user is now: rooda may go to another one."""

    name = "path"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> str:
        """Return the absolute path."""
        return os.path.abspath(str(value))  # noqa: PTH100


_TYPES: Mapping[str, click.ParamType[Any]] = {"DIR": _AbsolutePath(), "FILE": _AbsolutePath()}


def program_options() -> list[click.Parameter]:
    """Return the options; only `--help-all` shows them."""
    return [
        RunOption(
            [flag],
            metavar=metavar,
            type=_TYPES.get(metavar, click.STRING),
            help=words,
            section=SECTION,
            common=False,
        )
        for flag, (metavar, words) in _OPTIONS.items()
    ]


def record_of(parameters: Mapping[str, Any]) -> "RecordPlace | None":
    """Return the place of the record that `--record` names. Raises InvalidInput."""
    # Imported here: help and completion need none of it.
    from rooda.plan.world import this_world
    from rooda.run.request import record_apart

    folder = parameters.get("record")
    return None if folder is None else record_apart(Path(folder), this_world())


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


def check_pause(parameters: Mapping[str, Any]) -> None:
    """Raise UsageError if `--pause-after` is no number of iterations."""
    text = parameters["pause_after"]
    if text is not None and not (_NUMBER.fullmatch(text) and int(text)):
        raise click.UsageError(f"--pause-after {text}: write a whole number from 1 on")


def hold_lifeline(parameters: Mapping[str, Any]) -> None:
    """Hold the descriptor that `--lifeline` names, if it names one. Raises UsageError."""
    from rooda.world.process.lifeline import LifelineError, hold

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
    from rooda.run.request import ForPrograms

    pause = parameters["pause_after"]
    return ForPrograms(
        run_id=parameters["run_id"] or "",
        result=parameters["result"] and Path(parameters["result"]),
        account=parameters["account"] or "",
        pause_after=None if pause is None else int(pause),
    )


@contextlib.contextmanager
def telling_result(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Remove the result of an earlier run, and write one if the run can't start.

    Raises UsageError if `--result` can't be written. A dry run writes none.
    """
    if parameters["result"] is None or parameters["dry_run"]:
        yield
        return
    _check_result(Path(parameters["result"]))
    from rooda.base.problems import InvalidInput

    try:
        yield
    except InvalidInput as invalid:
        tell_not_started(parameters, [one.message for one in invalid.problems])
        raise
    except click.UsageError as error:
        tell_not_started(parameters, [error.format_message()])
        raise


def _check_result(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        if not path.parent.is_dir():
            raise NotADirectoryError(errno.ENOENT, os.strerror(errno.ENOENT))
    except OSError as error:
        raise click.UsageError(f"--result {path} can't be written: {error.strerror}") from None


def tell_not_started(parameters: Mapping[str, Any], problems: Sequence[str]) -> None:
    """Write to the file of `--result`, if it is given, that the run could not start."""
    from rooda.run.outcome import write_not_started

    if parameters["result"] is not None and not parameters["dry_run"]:
        write_not_started(Path(parameters["result"]), problems, parameters["run_id"])
