"""The screens of `rooda watch`, with Textual's own pilot in place of a terminal."""

import os
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from rooda.front.watch.run_screen import MOST_CHARACTERS, MOST_LINES, WordsView
from rooda.record.run_folders import run_folder
from rooda.world.state.folder import SESSION
from rooda.world.state.user_notes import waiting_notes
from support.nights import at, failed, iteration, night, results
from support.states import state_of
from support.watched import NO_FLEET, Machine, at_work, good_rows, talk_to, until, until_seen

AT_WORK = "20261115-010000-build"
SIZES = [(80, 24), (200, 50), (40, 15), (8, 3)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_list_has_the_runs_of_all_work_trees_those_at_work_first(machine: Machine) -> None:
    machine.keep("ledger", night(ended_at=at(600)), good_rows(2))
    machine.keep("tabq", at_work(run=AT_WORK, started_at=at(-90000)), good_rows(3))

    async def look(pilot: Pilot[int]) -> None:
        text = await until_seen(pilot, "1 run at work, 1 run ended", "ledger", "q Quit")
        assert text.index("tabq") < text.index("ledger")
        assert "▶ running" in text
        assert "✓ success" in text
        assert "Enter Open" in text
        await pilot.press("down", "enter")
        await until_seen(pilot, "✓ ledger: build ended as success")
        await pilot.press("escape")
        await until_seen(pilot, "1 run at work")
        await pilot.press("up", "enter")
        await until_seen(pilot, "▶ tabq: build has been running for")

    talk_to(machine.app(), look)


def test_a_machine_without_a_run_says_how_to_start_one(machine: Machine) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "No run is recorded on this machine yet.", "No run is at work")
        await pilot.press("enter", "down", "pagedown", "end")

    talk_to(machine.app(), look)


def test_a_record_that_can_not_be_read_is_named_and_the_others_are_shown(
    machine: Machine,
) -> None:
    machine.keep("tabq", night(), good_rows(1))
    broken = machine.keep("broken", night(), good_rows(1))
    (state_of(broken.tree) / "rooda.db").write_bytes(b"no database" * 1000)

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, str(broken.tree), "✓ success  tabq")

    talk_to(machine.app(), look, (200, 30))


def test_a_run_shows_its_iterations_plots_words_and_keys(machine: Machine) -> None:
    rows = [iteration(1, results(4)), failed(2, "verify", "make test failed", cost=0.2)]
    place = machine.keep("tabq", at_work(), rows, "I look at the plan first.\n")

    async def look(pilot: Pilot[int]) -> None:
        text = await until_seen(pilot, "I look at the plan first.", "nothing has ended", "q Quit")
        assert "The run is at work at iteration 2; nothing has ended it yet." in text
        assert "Tests passed 4/4" in text
        assert "Cost $0.70" in text
        assert "█" in text
        assert " 1  completed" in text
        assert "›  2  failed" in text  # the cursor begins at the newest
        for key in ("t Tell", "s Stop later", "S Stop now", "f Fleet", "? Help", "q Quit"):
            assert key in text

    talk_to(machine.app(place), look)


def test_new_words_and_iterations_appear_and_the_end_is_shown_without_a_key(
    machine: Machine,
) -> None:
    place = machine.keep("tabq", at_work(), good_rows(1), "one\n")
    log = run_folder(state_of(place.tree), place.run) / SESSION

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "one", "›  1  completed")
        with log.open("a") as file:
            file.write("half of ")
        await until_seen(pilot, "half of")
        with log.open("a") as file:
            file.write("a line\n")
        await until_seen(pilot, "half of a line")
        machine.keep("tabq", at_work(), [iteration(2)])
        await until_seen(pilot, "›  2  completed")
        ended = night(started_at=at(0), ended_at=at(600), reason="done")
        machine.keep("tabq", ended, [iteration(2, results(7), signal="SUCCESS")])
        end = "✓ tabq: build ended as success (exit code 0)"
        text = await until_seen(pilot, end, "git log --oneline --stat")
        assert "The agent signaled SUCCESS in iteration 2" in text
        assert "verify passed after iteration 2: 7/7 tests, commit 0000002" in text
        await pilot.press("s")
        await until_seen(pilot, "has ended: there is nothing to stop.")

    talk_to(machine.app(place), look)


def test_a_run_whose_process_was_killed_is_shown_as_interrupted(machine: Machine) -> None:
    gone = at_work(pid=os.getpid(), pid_started=1.0)
    place = machine.keep("tabq", gone, good_rows(2))

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "■ tabq: build ended as interrupted", "rooda itself was killed")
        await pilot.press("escape")
        await until_seen(pilot, "■ interrupted")

    talk_to(machine.app(place), look)


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_size_of_terminal_shows_all_screens(machine: Machine, size: tuple[int, int]) -> None:
    place = machine.keep("tabq", night(), [*good_rows(30), failed(31, "verify", "no")], "words\n")

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "tabq" if size[0] > 8 else "✓")
        for keys in (
            ["enter"],
            ["escape"],
            ["question_mark"],
            ["escape"],
            ["f"],
            ["escape"],
            ["t"],
        ):
            await pilot.press(*keys)
            await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.resize_terminal(30, 10)
        await until_seen(pilot, "No run is at work")

    talk_to(machine.app(place), look, size)


def test_enter_shows_one_iteration_and_escape_goes_back(machine: Machine) -> None:
    place = machine.keep("tabq", night(), good_rows(3))

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "›  3  completed")
        await pilot.press("up", "enter")
        text = await until_seen(pilot, "Iteration 2 completed.", "Finished step 2")
        assert "passed after 40.0s (make test)" in text
        await pilot.press("j", "k", "escape")
        await until_seen(pilot, "›  2  completed")
        await pilot.press("home", "pagedown", "pageup")
        await until_seen(pilot, "›  1  completed")

    talk_to(machine.app(place), look)


def test_an_iteration_that_is_gone_is_said_to_be(machine: Machine) -> None:
    place = machine.keep("tabq", night(), good_rows(1))

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "›  1  completed")
        (state_of(place.tree) / "rooda.db").unlink()
        await pilot.press("enter")
        await until_seen(pilot, "─Iteration 1", "run")

    talk_to(machine.app(place), look)


def test_a_mouse_click_chooses_a_row_and_a_double_click_opens_it(machine: Machine) -> None:
    place = machine.keep("tabq", night(), good_rows(3))

    async def look(pilot: Pilot[int]) -> None:
        # When all of these are visible, the table does not move any more.
        await until_seen(pilot, "›  3  completed", "Lines 4 files", "rooda why", "q Quit")
        await pilot.pause()
        await pilot.click("#iterations", offset=(5, 2))
        await until_seen(pilot, "›  1  completed")
        await pilot.click("#iterations", offset=(5, 1))  # the titles
        await pilot.click("#iterations", offset=(5, 2), times=2)
        await until_seen(pilot, "Iteration 1 completed.")

    talk_to(machine.app(place), look)


def test_the_fleet_and_the_keys_have_a_screen(machine: Machine) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "No run is at work")
        await pilot.press("f")
        await until_seen(pilot, "─Fleet", NO_FLEET)
        await pilot.press("f", "escape", "question_mark")
        await until_seen(pilot, "Keys of rooda watch", "quit; the run goes on")
        await pilot.press("escape")
        await until_seen(pilot, "Enter Open")

    talk_to(machine.app(), look)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_quit_ends_the_view_with_exit_code_0(machine: Machine, key: str) -> None:
    app = machine.app()

    async def look(pilot: Pilot[int]) -> None:
        await pilot.press(key)

    talk_to(app, look)
    assert app.return_value == 0


# -- steering ----------------------------------------------------------------------------------


def test_a_note_is_written_for_the_next_prompt(machine: Machine) -> None:
    place = machine.keep("tabq", night(), good_rows(1))

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "›  1  completed")
        await pilot.press("t", *"use q", "enter")
        await until_seen(pilot, "No run is at work here; the next run reads it.")
        assert [note.text for note in waiting_notes(state_of(place.tree))] == ["use q"]
        await pilot.press("t", "enter")  # an empty note is none
        await pilot.press("t", "x", "escape")
        assert not pilot.app.screen.query_one(Input).display
        assert len(waiting_notes(state_of(place.tree))) == 1

    talk_to(machine.app(place), look)


def test_a_note_that_is_refused_says_why(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    place = machine.keep("tabq", night(), good_rows(1))
    monkeypatch.setattr("rooda.run.control.MOST", 0)

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "›  1  completed")
        await pilot.press("t", "x", "enter")
        await until_seen(pilot, "0 notes wait already. Delete them with `rooda tell --clear`")

    talk_to(machine.app(place), look)


def test_stop_says_why_it_can_not_stop_a_run(machine: Machine) -> None:
    place = machine.keep("tabq", at_work(), good_rows(1))  # its process holds no lock

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "›  1  completed")
        await pilot.press("s")
        await until_seen(pilot, "No run is at work here.")
        await pilot.press("S")
        await until_seen(pilot, f"Stop run {place.run} now?", "y: yes   n: no")
        await pilot.press("n")
        await pilot.press("S", "y")
        await until_seen(pilot, "No run is at work here.")

    talk_to(machine.app(place), look)


# -- hostile and huge --------------------------------------------------------------------------

HOSTILE = (
    "[red]red[/red] [@click=app.quit]click[/] [/] [link=file:///x]l[/link] \\[bold]\n"
    "\x1b[2J\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \u202eright to left\n"
)


def test_markup_and_control_codes_of_an_agent_are_text(machine: Machine) -> None:
    headline = "[red]red[/] [@click=app.quit]click[/] \x1b[31mx\x1b[0m [/]"
    row = iteration(1, headline=headline)
    place = machine.keep("tabq", night(status="aborted", reason=headline), [row], HOSTILE)

    async def look(pilot: Pilot[int]) -> None:
        text = await until_seen(pilot, "[@click=app.quit]click[/]", "[link=file:///x]l[/link]")
        assert "link right to left" in text
        assert not set(text) & {"\x1b", "\u202e", "\x07"}
        await pilot.press("enter")
        await until_seen(pilot, "[red]red[/] [@click=app.quit]click[/] x [/]")
        await pilot.press("escape")
        await until_seen(pilot, "─Words")
        await pilot.press("escape")
        text = await until_seen(pilot, "STATUS", "[@click=app.quit]click[/]")
        assert "\x1b" not in text

    talk_to(machine.app(place), look, (160, 40))


def test_names_of_folders_are_text(machine: Machine) -> None:
    name = "[red]\x1b[31mr\udcff"  # not UTF-8, and with a control code
    place = machine.keep(name, night(), good_rows(1))
    broken = machine.keep(f"{name}2", night(), good_rows(1))
    (state_of(broken.tree) / "rooda.db").write_bytes(b"no database" * 1000)

    async def look(pilot: Pilot[int]) -> None:
        text = await until_seen(pilot, "[red]r?: build ended as success")
        text.encode()
        await pilot.press("escape")
        text = await until_seen(pilot, "✓ success  [red]r?", "can't be read")
        text.encode()
        assert "\x1b" not in text

    talk_to(machine.app(place), look, (250, 30))


def test_words_are_kept_within_limits(machine: Machine) -> None:
    place = machine.keep("tabq", at_work(), good_rows(1), "one\n")
    app = machine.app(place)

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "one")
        words = app.screen.query_one(WordsView)
        words.add("x" * 10_000_000)
        assert len(words.text) < 5000
        words.add("\n" + "y\n" * 50_000)
        assert len(words.text.splitlines()) <= MOST_LINES + 1
        words.add("z" * 1999 + "\n")
        words.add(("z" * 1999 + "\n") * 5000)
        assert len(words.text) <= MOST_CHARACTERS + 5000
        words.add("\tindented " + "word " * 60 + "\n" + "=" * 80 + "\n")
        await until_seen(pilot, "    indented word", "    word")

    talk_to(app, look)


def test_words_stay_where_the_user_has_scrolled_to(machine: Machine) -> None:
    place = machine.keep("tabq", at_work(), good_rows(1), "".join(f"line {n}\n" for n in range(99)))
    app = machine.app(place)

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "line 98")
        await pilot.press("tab", "g")
        await until_seen(pilot, "line 0\n")
        app.screen.query_one(WordsView).add("newest\n")
        text = await until_seen(pilot, "line 0\n")
        assert "newest" not in text
        await pilot.press("G")
        await until_seen(pilot, "newest")
        app.screen.query_one(WordsView).add("and one more\n")
        await until_seen(pilot, "and one more")

    talk_to(app, look)


@pytest.mark.long
def test_a_record_of_1000_iterations_and_a_log_of_100_mb_stay_fluid(machine: Machine) -> None:
    rows = [iteration(number, results(number)) for number in range(1, 1001)]
    place = machine.keep("tabq", at_work(), rows)
    log = run_folder(state_of(place.tree), place.run) / SESSION
    with log.open("w") as file:
        for _ in range(100):
            file.write(("w" * 99 + "\n") * 10_000)
        file.write("the last line\n")
    app = machine.app(place)

    async def look(pilot: Pilot[int]) -> None:
        await until_seen(pilot, "› 1000  completed", "the last line", "Tests passed 1000/1000")
        began = time.monotonic()
        await pilot.press(*["up"] * 20)
        await until_seen(pilot, "›  980  completed")
        assert time.monotonic() - began < 10

    talk_to(app, look)


def test_a_bug_of_a_reader_ends_the_view_without_the_values_of_its_variables(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def look_at_runs(*_: object, **__: object) -> None:
        secret = "password"  # noqa: F841
        raise RuntimeError("a bug")

    monkeypatch.setattr("rooda.front.watch.run_list.machine_runs", look_at_runs)
    app = machine.app()

    async def look(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: str(app.failure), lambda text: "a bug" in text)

    with pytest.raises(RuntimeError, match="a bug"):
        talk_to(app, look)
    assert isinstance(app.failure, RuntimeError)
    assert "password" not in capsys.readouterr().err
