"""Which notes of the user wait for the next prompt of a run."""

import os
import shutil
from pathlib import Path

import pytest

from rooda.loop.note_delivery import NoteBox, was_received
from rooda.loop.outcome import Outcome, Verdict
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.state.user_notes import new_note, notes_folder, remove_note, waiting_notes
from support.states import state_of
from support.tables import each_row


@each_row(
    "verdict, kind, expected",
    [
        (Verdict.CONTINUE, None, True),
        (Verdict.COMPLETE, None, True),
        (Verdict.FAILURE, FailureKind.EXIT, True),
        (Verdict.FAILURE, FailureKind.TIMEOUT, True),
        (Verdict.FAILURE, FailureKind.VERIFY, True),
        (Verdict.FAILURE, FailureKind.CONTEXT, True),
        (Verdict.FAILURE, FailureKind.EMPTY, False),
        (Verdict.FAILURE, FailureKind.STARTUP, False),
        (Verdict.ABORT, FailureKind.AUTH, False),
        (Verdict.ABORT, FailureKind.USAGE, False),
        (Verdict.LIMITED, FailureKind.LIMIT, False),
        (Verdict.LIMITED, FailureKind.OFFLINE, False),
        (Verdict.INTERRUPTED, None, False),
    ],
)
def test_agent_has_a_note_if_it_could_work(
    verdict: Verdict, kind: FailureKind | None, *, expected: bool
) -> None:
    assert was_received(Outcome(verdict, kind)) is expected


def test_notes_that_vanish_with_their_folder_are_put_back(tmp_path: Path) -> None:
    box = NoteBox(state_of(tmp_path))
    assert box.waiting() == []
    first = new_note(state_of(tmp_path), "first")
    box.look()
    shutil.rmtree(state_of(tmp_path))
    box.look()  # the agent may not be done with it
    second = new_note(state_of(tmp_path), "second")
    assert box.waiting() == [first, second]
    assert waiting_notes(state_of(tmp_path)) == [first, second]
    box.close()


def test_note_that_the_user_clears_is_not_put_back(tmp_path: Path) -> None:
    box = NoteBox(state_of(tmp_path))
    first, second = (
        new_note(state_of(tmp_path), "first"),
        new_note(state_of(tmp_path), "second", keep=True),
    )
    assert box.waiting() == [first, second]
    remove_note(state_of(tmp_path), first)
    assert box.waiting() == [second]
    box.close()


def test_done_note_does_not_come_back_with_the_others(tmp_path: Path) -> None:
    box = NoteBox(state_of(tmp_path))
    first, second = (
        new_note(state_of(tmp_path), "first"),
        new_note(state_of(tmp_path), "second", keep=True),
    )
    assert box.waiting() == [first, second]
    assert box.announce([first, second])
    assert not box.announce([second])
    assert box.finish([first, second]) == ""
    shutil.rmtree(notes_folder(state_of(tmp_path)))
    assert box.waiting() == [second]
    assert box.unheard() == []
    box.close()


def test_done_note_that_can_not_be_deleted_is_given_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    box = NoteBox(state_of(tmp_path))
    note = new_note(state_of(tmp_path), "once")
    assert box.waiting() == [note]
    monkeypatch.setattr("rooda.loop.note_delivery.remove_note", refuse)
    assert box.finish([note]) == "Permission denied"
    assert box.waiting() == []
    assert waiting_notes(state_of(tmp_path)) == [note]
    box.close()


def test_notes_have_the_order_of_their_commands_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = new_note(state_of(tmp_path), "first")
    monkeypatch.setattr("rooda.world.state.user_notes.time.time_ns", lambda: 10**18)
    second = new_note(state_of(tmp_path), "second")
    assert waiting_notes(state_of(tmp_path)) == [first, second]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_notes_in_a_folder_without_permissions_are_kept_in_memory(tmp_path: Path) -> None:
    box = NoteBox(state_of(tmp_path))
    note = new_note(state_of(tmp_path), "patience")
    box.look()
    (state_of(tmp_path)).chmod(0)
    try:
        assert box.waiting() == [note]
    finally:
        (state_of(tmp_path)).chmod(0o700)
    box.close()
