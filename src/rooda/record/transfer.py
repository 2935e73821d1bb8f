"""Take a run from one record to another: as one JSON document, without secrets and transcripts.

The document comes from a place that others can write to. So rooda reads it like any hostile input:
within limits, known fields only, and no word of it becomes a path except for the checked name.
"""

import base64
import binascii
import contextlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields, replace

from rooda.base.formats import parse_json
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.configured_env import configured_env
from rooda.plan.world import this_world
from rooda.record.given_flags import GivenFlags
from rooda.record.reader import MOST_ITERATIONS, RecordReader
from rooda.record.rows import (
    INTERRUPTED,
    RUNNING,
    IterationRow,
    RunRow,
    StoreError,
    is_run_alive,
    iteration_row,
    iteration_values,
    moment_of,
    run_row,
    run_values,
)
from rooda.record.run_folders import run_folder
from rooda.record.run_names import wrong_name
from rooda.record.store import Store
from rooda.world.files.plain_files import read_plain_file
from rooda.world.state.folder import UNTRACKED, StateFolder, keep_file, make_state_folder
from rooda.world.state.user_notes import (
    LONGEST,
    MOST,
    UserNote,
    is_note_name,
    waiting_notes,
    write_note,
)

FORMAT, VERSION = "rooda-run", 1
LARGEST: Final = 32 * 1024 * 1024  # bytes of a document
_LARGEST_LIST: Final = 8 * 1024 * 1024  # bytes of the list of untracked files
_ENDS = ("success", "max-iters", "aborted", INTERRUPTED)
# What names a process, a machine or a place: it means nothing elsewhere. The commands follow from
# the procedure: a document could name any others, and rooda offers them to the user.
_PRIVATE: Mapping[str, Any] = {
    "pid": 0,
    "pid_started": 0.0,
    "host": "",
    "boot": "",
    "workspace": "",
    "pid_namespace": None,
    "repository": None,
    "pruned": None,
    "commands": None,
}


class TransferError(Exception):
    """The run can't be exported or imported; the message says why."""


class StartedAs(Struct, frozen=True):
    """How the caller knows that a run was started. It replaces what a document says."""

    run: str
    procedure: str
    given: GivenFlags


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    """An exported run. A row is a list: its columns, and its other fields as an object."""

    format: str
    version: int
    run: list[Any]
    iterations: list[list[Any]]
    untracked: str | None = None  # base64
    notes: list[UserNote] = []


def export_run(state: StateFolder, run: str) -> bytes:
    """Return a run of the record, by its whole name, as one document. Raises TransferError."""
    reader = RecordReader(state)
    try:
        row = reader.run(run)
        iterations = reader.iterations(row.run)
    except StoreError as error:
        raise TransferError(str(error)) from None
    if row.run != run:
        raise TransferError(f"there is no run {run!r} in the record")
    if row.status == RUNNING:
        raise TransferError(f"run {row.run} is at work: wait until it has ended")
    mask = _Mask(_masker(row))
    row = replace(row, **_PRIVATE, given=_exported(row), unreadable={})
    document = {
        "format": FORMAT,
        "version": VERSION,
        "run": _exported_row(run_values(row), mask),
        "iterations": [_exported_row(iteration_values(one), mask) for one in iterations],
        "untracked": _untracked(state, row.run),
        "notes": [{"name": note.name, "text": mask(note.text)} for note in waiting_notes(state)],
    }
    data = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    if len(data) > LARGEST or parse_json(data) is None:
        raise TransferError(f"run {row.run} is too large to be exported: {len(data)} bytes")
    return data


def _exported(row: RunRow) -> Any:
    return row.given.without_secrets() if isinstance(row.given, GivenFlags) else row.given


def _masker(row: RunRow) -> Masker:
    """Return what masks the secrets of this environment and those that the run was given."""
    masker = Masker(os.environ)
    masker.learn(configured_env(this_world(), row.procedure))
    if isinstance(row.given, GivenFlags):
        masker.learn(row.given.variables())
    return masker


class _Mask(Struct, frozen=True):
    """Removes secrets from a text of a run that goes to another place."""

    masker: Masker

    def __call__(self, text: str) -> str:
        return self.masker.text(without_secret_values(text))


def _exported_row(values: tuple[Any, ...], mask: _Mask) -> list[Any]:
    """Return the values of a row with its JSON as an object, and without secrets."""
    *columns, data = values
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in columns]
    kept: list[Any] = _each_text([*texts, json.loads(data)], mask)
    return kept


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _each_text(one, change) for name, one in value.items()}
    if isinstance(value, list):
        return [_each_text(one, change) for one in value]
    return value


def _untracked(state: StateFolder, run: str) -> str | None:
    """Return the list of the files that were untracked at the start; None if there is none."""
    try:
        saved = read_plain_file(run_folder(state, run) / UNTRACKED, _LARGEST_LIST + 1)
    except OSError:
        return None
    return base64.b64encode(saved).decode() if len(saved) <= _LARGEST_LIST else None


# -- import ----------------------------------------------------------------------------------


class _Imported(Struct, frozen=True):
    run: RunRow
    iterations: tuple[IterationRow, ...]
    untracked: bytes | None
    notes: tuple[UserNote, ...]


def import_run(state: StateFolder, data: bytes, started: StartedAs | None = None) -> str:
    """Put an exported run into the record, and return its name. Raises TransferError.

    A run of the same name is replaced; files of it stay where they are. The folder with the record
    is made if it is missing. `rooda resume` runs the flags of the document, commands included,
    unless the caller gives its own with `started`.
    """
    found = _read(data)
    name = found.run.run
    if started is not None:
        if name != started.run:
            raise TransferError(f"the document has the run {name}, and not {started.run}")
        known = replace(found.run, procedure=started.procedure, given=started.given)
        found = replace(found, run=known)
    _refuse_active(state, name)
    troubles: list[str] = []
    try:
        make_state_folder(state)
        store = Store(state, troubles.append)
    except (OSError, StoreError) as error:
        raise TransferError(_words(error)) from None
    with contextlib.closing(store):
        store.forget([name])
        for row in found.iterations:
            store.save(iteration=row)
        store.save(run=found.run)
    if troubles:
        raise TransferError(troubles[0])
    if found.untracked is not None:
        keep_file(state, f"runs/{name}/{UNTRACKED}", found.untracked)
    try:
        for note in found.notes:
            write_note(state, note)
    except OSError as error:
        raise TransferError(_words(error)) from None
    return name


def _refuse_active(state: StateFolder, name: str) -> None:
    """Raise TransferError if a run of this name is at work."""
    try:
        rows = [row for row in RecordReader(state).runs(status=RUNNING) if row.run == name]
    except StoreError as error:
        raise TransferError(str(error)) from None
    if any(is_run_alive(row, state) for row in rows):
        raise TransferError(f"run {name} is at work here: it can't be replaced")


def _words(error: Exception) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or str(error)


def _read(data: bytes) -> _Imported:
    """Return what the document says. Raises TransferError."""
    if len(data) > LARGEST:
        raise TransferError(f"the document is too large: more than {LARGEST} bytes")
    found = parse_json(data)
    if not isinstance(found, dict):
        raise TransferError("this is no exported run: it is not JSON, or has too many parts")
    try:
        document = convert(found, _Document)
    except ValidationError as error:
        raise TransferError(f"this is no exported run: {error}") from None
    if document.format != FORMAT or document.version != VERSION:
        raise TransferError(
            f"this rooda reads exported runs of version {VERSION}, and not {document.version}"
        )
    run = _run(document.run)
    return _Imported(run, _iterations(document, run.run), _list(document), _notes(document))


def _run(values: list[Any]) -> RunRow:
    """Return the row of the run. Raises TransferError."""
    row = run_row(_stored(values, RunRow))
    if row is None or row.unreadable:
        raise TransferError(f"the run can't be read: {_first(row)}")
    if trouble := wrong_name(row.run):
        raise TransferError(f"{row.run!r} can't be the name of a run: {trouble}")
    if row.status not in _ENDS:
        raise TransferError(f"a run does not end as {row.status!r}")
    if moment_of(row.started_at) is None or not _is_end(row.ended_at):
        raise TransferError("the times of the run can't be read")
    if isinstance(row.given, GivenFlags) and (trouble := row.given.trouble()):
        raise TransferError(f"the flags of the run can't be read: {trouble}")
    return replace(row, **_PRIVATE)


def _iterations(document: _Document, run: str) -> tuple[IterationRow, ...]:
    """Return the rows of all attempts. Raises TransferError."""
    if len(document.iterations) > MOST_ITERATIONS:
        raise TransferError(f"the run has more than {MOST_ITERATIONS} attempts")
    rows = []
    for values in document.iterations:
        row = iteration_row(_stored(values, IterationRow))
        if row is None or row.unreadable:
            raise TransferError(f"an iteration of the run can't be read: {_first(row)}")
        is_sound = row.run == run and row.number > 0 and row.attempt > 0
        if not is_sound or moment_of(row.started_at) is None or not _is_end(row.ended_at):
            raise TransferError("an iteration of the run makes no sense")
        rows.append(row)
    if len({(row.number, row.attempt) for row in rows}) < len(rows):
        raise TransferError("an iteration of the run is there twice")
    return tuple(rows)


def _is_end(time: str | None) -> bool:
    return time is None or moment_of(time) is not None


def _stored(values: list[Any], kind: type[RunRow | IterationRow]) -> list[Any]:
    """Return the values as the database has them. Raises TransferError for an unknown field."""
    data = values[-1] if values else None
    if not isinstance(data, dict):
        raise TransferError("this is no exported run: a row has no fields")
    known = {one.name for one in fields(kind)} - {"unreadable"}
    if unknown := sorted(set(data) - known):
        raise TransferError(f"this rooda does not know the field {unknown[0]!r}")
    return [*values[:-1], json.dumps(data)]


def _first(row: RunRow | IterationRow | None) -> str:
    """Return the first thing that is wrong with a row."""
    if row is None:
        return "its columns make no sense"
    name, trouble = next(iter(row.unreadable.items()))
    return f"{name}: {trouble}"


def _list(document: _Document) -> bytes | None:
    """Return the list of untracked files. Raises TransferError."""
    if document.untracked is None:
        return None
    try:
        found = base64.b64decode(document.untracked, validate=True)
    except (binascii.Error, ValueError):
        raise TransferError("the list of untracked files can't be read") from None
    if len(found) > _LARGEST_LIST:
        raise TransferError("the list of untracked files is too large")
    return found


def _notes(document: _Document) -> tuple[UserNote, ...]:
    """Return the notes of the user. Raises TransferError."""
    if len(document.notes) > MOST:
        raise TransferError(f"there are more than {MOST} notes")
    for note in document.notes:
        try:
            size = len(note.text.encode())
        except UnicodeEncodeError:
            size = LONGEST + 1
        if not is_note_name(note.name) or size > LONGEST:
            raise TransferError("a note of the user makes no sense")
    return tuple(document.notes)
