"""Start a prepared run, or continue an earlier one with its flags and those given now."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from rooda.base.paths import is_folder
from rooda.base.problems import InvalidInput, Problem
from rooda.front import crash
from rooda.front.command_line import anchored_in, given_of, merge, parse, parts_of
from rooda.front.command_table import RESERVED
from rooda.front.flags import MergeRules
from rooda.loop.events.run import RunResumed
from rooda.loop.next_steps import LIMIT_FLAGS, RunCommands
from rooda.loop.state import Status
from rooda.plan.layers import FILE_RUN
from rooda.plan.prepare import Prepared
from rooda.plan.world import go_to, this_world
from rooda.record.given_flags import NO_FLAGS, GivenFlags, missing_now
from rooda.record.reader import RecordReader
from rooda.record.rows import NothingRecorded, RunRow
from rooda.record.run_names import from_end
from rooda.run.outcome import write_not_started, write_outcome
from rooda.run.request import Invocation, TakenUp
from rooda.run.resume import TITLE, new_run, nothing_to_resume, readable
from rooda.run.start import report, start_run
from rooda.world.process.interrupts import Interrupts
from rooda.world.state.record_place import RecordPlace

LAST = ""  # `--resume` without a name


def launch(prepared: Prepared, interrupts: Interrupts, invocation: Invocation) -> int:
    """Run the plan to its end and return the exit code; print a message for every error."""
    programs = invocation.programs
    try:
        result = start_run(prepared, interrupts, invocation)
    except InvalidInput as invalid:
        taken_up = invocation.taken_up
        problems = invalid.problems if taken_up is None else taken_up.explained(invalid.problems)
        report(prepared.request.flag_names.problems(problems), prepared.values)
        if programs.result is not None:
            name = programs.run_id if taken_up is None else taken_up.run
            write_not_started(programs.result, [one.message for one in problems], name)
        return 1
    if programs.result is not None and (trouble := write_outcome(programs.result, result.outcome)):
        click.echo(f"Error: {trouble}", err=True)
        return result.exit_code or 1
    for failure in result.failures:
        crash.tell(failure, sys.argv[1:])
    return result.exit_code


def find(place: RecordPlace, wanted: str, procedure: str | None = None, start: str = "") -> RunRow:
    """Return a run by its name, or the last one. Raises InvalidInput.

    `start` is the command that starts a run of the procedure.
    """
    reader = RecordReader(place.state)
    return readable(lambda: _find(reader, wanted, procedure, start))


def find_for_rooda(place: RecordPlace, wanted: str) -> RunRow:
    """Return the run for `rooda resume`: one that this command resumes."""
    row = find(place, wanted)
    commands = commands_of(row)
    if row.status == Status.SUCCESS:
        raise nothing_to_resume(f"run {row.run} ended as success", new_run(commands.start))
    if commands.resume != RunCommands().named(row.run).resume:
        message = f"run {row.run} is one of {row.procedure}"
        raise nothing_to_resume(message, f"Write: {commands.resume}")
    return row


def take_up(
    place: RecordPlace,
    row: RunRow,
    now: click.Context,
    command: click.Command,
    rules: MergeRules,
    arguments: Sequence[str] = (),
    *,
    is_apart: bool = False,
) -> TakenUp:
    """Return the run with its flags and those given now; change to the folder where it was started.

    The run was started with `command`; `arguments` come before the recorded ones. If the record is
    apart from the work tree, the run goes on in the current folder. Raises InvalidInput.
    """
    start = commands_of(row).start
    recorded = _recorded(row, start)
    here = this_world().folder
    folder = here if is_apart else _folder(place.tree, row, recorded)
    given_now = parts_of(now)
    if folder != here:
        given_now = anchored_in(here, given_now, rules)
    try:
        earlier = parts_of(parse(command, recorded or NO_FLAGS, arguments))
        merged = merge(earlier, given_now, rules)
        given = given_of(command, merged.kept, merged.now)
        parameters = parse(command, given, arguments).params
    except click.UsageError as error:
        words = error.format_message().rstrip(".")
        message = f"this version of rooda refuses the recorded flags of run {row.run}: {words}"
        advice = f"Another version wrote them, or something changed them. {new_run(start)}"
        raise InvalidInput([Problem(message, advice, title=TITLE)]) from None
    _refuse_missing(row.run, recorded, given)
    news = RunResumed(
        run=row.run,
        iteration=0,
        recorded=recorded is not None,
        flags=given_of(command, merged.kept).masked(),
        given=given_of(command, merged.now).masked(),
        replaced=given_of(command, merged.replaced).masked(),
        folder="" if folder == here else str(folder),
    )
    world = replace(go_to(folder), place=place, is_apart=is_apart)
    return TakenUp(row.run, world, given, parameters, news)


def _refuse_missing(run: str, recorded: GivenFlags | None, given: GivenFlags) -> None:
    """Raise InvalidInput if the run came here without flags that the user has not given again."""
    missing = [] if recorded is None else missing_now(recorded.left_out, given)
    if missing:
        message = f"run {run} was imported without the values of: {', '.join(missing)}"
        advice = "They may be secrets. Give these flags again"
        raise InvalidInput([Problem(message, advice, title=TITLE)])


def _recorded(row: RunRow, start: str) -> GivenFlags | None:
    """Return the flags of the start of the run; None if an earlier version did not keep them."""
    trouble = row.unreadable.get("given", "")
    if isinstance(row.given, GivenFlags):
        trouble = row.given.trouble()
    if trouble:
        message = f"the recorded flags of run {row.run} can't be read: {trouble}"
        advice = f"Something changed the record. {new_run(start)}"
        raise InvalidInput([Problem(message, advice, title=TITLE)])
    return row.given if isinstance(row.given, GivenFlags) else None


def _folder(workspace: Path, row: RunRow, recorded: GivenFlags | None) -> Path:
    """Return the folder where the run was started. The workspace may have been moved."""
    folder = Path(os.path.normpath(workspace / (recorded.folder if recorded else ".")))
    if not is_folder(folder):
        message = f"the folder where run {row.run} was started is gone: {folder}"
        raise InvalidInput([Problem(message, "Create that folder again", title=TITLE)])
    return folder


def prompt_file_of(row: RunRow) -> str | None:
    """Return the prompt file of a run of `rooda loop FILE`; None for a run of a procedure.

    A procedure of that name was started without a file.
    """
    if row.procedure != FILE_RUN or not isinstance(row.given, GivenFlags):
        return None
    return next(iter(row.given.arguments), None)


def commands_of(row: RunRow) -> RunCommands:
    """Return the commands of a run in the record."""
    known = row.known_commands
    return known if known.start else rooda_commands(row.procedure, prompt_file_of(row), row.run)


def rooda_commands(procedure: str, file: str | None = None, run: str | None = None) -> RunCommands:
    """Return the commands for a procedure or a prompt file; for any run if it has no name yet.

    A procedure with the name of a command needs `run`.
    """
    if file is not None:
        start = f"rooda {FILE_RUN} {shlex.quote(file)}"
    else:
        start = f"rooda run {procedure}" if procedure in RESERVED else f"rooda {procedure}"
    commands = RunCommands(start, flags=LIMIT_FLAGS)
    return commands if run is None else commands.named(run)


def _find(reader: RecordReader, wanted: str, procedure: str | None, start: str) -> RunRow:
    if wanted == LAST or from_end(wanted) is not None:
        return _from_end(reader, wanted or None, procedure, start)
    row = reader.run(wanted)
    if procedure not in (None, row.procedure):
        message = f"run {row.run} is one of {row.procedure}, not of {procedure}"
        raise nothing_to_resume(message, f"Write: {commands_of(row).resume}")
    return row


def _from_end(
    reader: RecordReader, wanted: str | None, procedure: str | None, start: str
) -> RunRow:
    """Return the last run, or one before it: of a procedure, if the user has named one."""
    try:
        return reader.run(wanted, procedure)
    except NothingRecorded:
        if procedure is None:
            raise
        message = f"there is no run of {procedure} here"
        raise nothing_to_resume(message, new_run(start)) from None
