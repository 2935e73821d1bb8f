"""Runs that are taken from one record to another."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from rooda.loop.next_steps import RunCommands, earlier_commands
from rooda.record.given_flags import GivenFlags
from rooda.record.reader import RecordReader
from rooda.record.rows import IterationRow, RunRow
from rooda.record.store import Store
from rooda.record.transfer import TransferError, export_run, import_run
from rooda.world.state.user_notes import new_note, waiting_notes
from support.states import state_of
from support.tables import each_row

AT = "2026-11-16T10:00:00.000+00:00"
SECRET = "hunter2hunter2"


def run(cost: float | None = None) -> RunRow:
    command = f"agent --api-key {SECRET}"
    flags = (("--ai-cmd", command), ("--env", f"A={SECRET}"), ("--max-iterations", "5"))
    given = GivenFlags(flags, (), "x")
    return RunRow(
        run="api",
        procedure="work",
        status="interrupted",
        started_at=AT,
        ended_at=AT,
        pid=4711,
        pid_started=1.5,
        host="box",
        boot="b",
        workspace="/w",
        command=command,
        given=given,
        commands=RunCommands("rooda work").named("api"),
        cost=cost,
    )


def saved(workspace: Path, row: RunRow, *rows: IterationRow) -> Path:
    workspace.mkdir(parents=True, exist_ok=True)
    store = Store(state_of(workspace), print)
    for one in rows:
        store.save(iteration=one)
    store.save(run=row)
    store.close()
    return workspace


def attempts() -> list[IterationRow]:
    first = IterationRow(
        run="api", number=1, attempt=1, status="interrupted", started_at=AT, ended_at=AT
    )
    second = replace(first, attempt=2, status="completed", headline="all \ud800")
    return [replace(first, headline="half"), second]


def document(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        export_run(state_of(saved(tmp_path / "a", run(), *attempts())), "api")
    )
    return found


def test_a_run_comes_out_of_another_record_as_it_went_in(tmp_path: Path) -> None:
    source = saved(tmp_path / "a", run(cost=1.5), *attempts())
    (state_of(source) / "runs/api").mkdir(parents=True)
    (state_of(source) / "runs/api/untracked").write_bytes(b"1 \0.env\0")
    new_note(state_of(source), "mind the gap")
    target = tmp_path / "deep" / "b"
    data = export_run(state_of(source), "api")
    for _ in range(2):  # the second replaces the first
        assert import_run(state_of(target), data) == "api"
    (row,) = RecordReader(state_of(target)).runs()
    assert (row.run, row.status, row.cost) == ("api", "interrupted", 1.5)
    assert RecordReader(state_of(target)).iterations("api") == attempts()
    assert (state_of(target) / "runs/api/untracked").read_bytes() == b"1 \0.env\0"
    assert [note.text for note in waiting_notes(state_of(target))] == ["mind the gap"]


def test_an_exported_run_has_no_secret_and_nothing_of_its_machine(tmp_path: Path) -> None:
    found = document(tmp_path)
    text = json.dumps(found)
    assert SECRET not in text
    for word in ("4711", "box", "/w"):
        assert word not in text
    given = found["run"][-1]["given"]
    assert given["flags"] == [["--max-iterations", "5"]]
    assert given["left_out"] == ["--ai-cmd", "--env A"]


def test_the_commands_of_a_run_do_not_come_from_the_document(tmp_path: Path) -> None:
    found = document(tmp_path)
    assert "commands" not in found["run"][-1]
    evil = "rooda loop x.md --ai-cmd 'touch /x'"
    found["run"][-1]["commands"] = {"start": evil, "resume": evil, "then": evil}
    import_run(state_of(tmp_path / "b"), json.dumps(found).encode())
    row = RecordReader(state_of(tmp_path / "b")).run("api")
    assert row.known_commands == earlier_commands(row.procedure, "api")


def test_the_run_of_another_name_and_files_of_the_record_stay(tmp_path: Path) -> None:
    data = export_run(state_of(saved(tmp_path / "a", run(), *attempts())), "api")
    other = saved(tmp_path / "b", replace(run(), run="ui", status="success", given=UNSET))
    import_run(state_of(other), data)
    assert {row.run for row in RecordReader(state_of(other)).runs()} == {"ui", "api"}


def change(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Return a change of the document: `run.0` is the first column of the run."""

    def changed(found: dict[str, Any]) -> None:
        *above, last = [int(one) if one.lstrip("-").isdigit() else one for one in path.split(".")]
        place: Any = found
        for one in above:
            place = place[one]
        place[last] = value

    return changed


HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    "a path as name": change("run.0", "../../etc"),
    "a word as name": change("run.0", "last"),
    "another name": change("iterations.0.0", "ui"),
    "an unknown field": change("more", 1),
    "an unknown field of the run": change("run.-1.unreadable", {}),
    "an unknown field of an iteration": change("iterations.0.-1.x", 1),
    "a later version": change("version", 2),
    "another format": change("format", "tar"),
    "a run at work": change("run.2", "running"),
    "a status of its own": change("run.2", "\x1b[31mgood"),
    "no time": change("run.3", "yesterday"),
    "no state": change("run.-1.state", {"iteration": -1}),
    "flags that are none": change(
        "run.-1.given", {"flags": [["x"]], "arguments": [], "folder": ""}
    ),
    "iteration 0": change("iterations.0.1", 0),
    "an iteration twice": change("iterations.0.2", 2),
    "an iteration that is none": change("iterations.0", []),
    "no list": change("untracked", "%%%"),
    "a note that is a path": change("notes", [{"name": "../x", "text": ""}]),
    "a huge note": change("notes", [{"name": f"{1:019}-{1:08x}.md", "text": "x" * 200_000}]),
}


@each_row("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_is_refused_and_changes_nothing(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    found = document(tmp_path)
    change(found)
    with pytest.raises(TransferError):
        import_run(state_of(tmp_path / "b"), json.dumps(found).encode())
    assert not (tmp_path / "b").exists()


@each_row(
    "data",
    [b"", b"null", b"[" * 100_000, b"\xff", b'{"run": NaN}', base64.b64encode(bytes(99))],
    ids=["empty", "null", "deep", "bytes", "nan", "base64"],
)
def test_what_is_no_document_is_one_typed_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TransferError):
        import_run(state_of(tmp_path / "b"), data)


def test_a_run_that_is_not_there_can_not_be_exported(tmp_path: Path) -> None:
    source = saved(tmp_path, run())
    for name in ("ui", "ap", "last"):
        with pytest.raises(TransferError, match="no run"):
            export_run(state_of(source), name)


def test_a_document_of_too_many_parts_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="too many parts"):
        import_run(state_of(tmp_path), b"[" + b"[]," * 1_000_000 + b"[]]")
