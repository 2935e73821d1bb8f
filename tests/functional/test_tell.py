"""`rooda tell`: notes of the user for the next prompt, before a run and during one."""

import contextlib
import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from rooda.base.problems import InvalidInput
from rooda.plan.world import this_world
from rooda.record.store import Store
from rooda.run.control import NoteTarget
from rooda.world.state.lock import Lock
from support.children import Nursery, until
from support.finished import Rooda
from support.ralphs import ralph_work
from support.record import RUN, a_run
from support.recorded import SUCCESS, asked, git, refused, versioned, within
from support.workspace import PROCEDURE, Workspace, wait_for

HEADING = "## NOTE FROM THE USER"
NO_RUN = "No run is at work here; the next run reads it.\n"
WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
WAITS_AGAIN = "while ! test -e go2; do sleep 0.02; done"


@pytest.fixture
def rooda(workspace: Workspace) -> Rooda:
    """Run `rooda ARGS` in this process."""
    return workspace.inside


def prompt(workspace: Workspace, iteration: int = 1, attempt: int = 1) -> str:
    """Return the prompt that an iteration of the newest run got."""
    return (workspace.kept(iteration, attempt) / "prompt.md").read_text()


def notes(workspace: Workspace) -> Path:
    return workspace.state / "notes"


def test_run_in_another_tree_with_the_same_state_folder_is_named(
    workspace: Workspace, rooda: Rooda
) -> None:
    """Two containers with one state home may have different work trees at one path."""
    with contextlib.closing(Store(workspace.state, print)) as store:
        store.save(run=a_run(RUN, "success"))
    with contextlib.closing(Lock(workspace.sibling("other").path, state=workspace.state)):
        assert (
            "The run at work here, on another machine or in a container"
            in rooda("tell", "use tabs").out
        )
        refused(rooda("stop"), "in another PID namespace")
    assert rooda("tell", "use tabs").out == NO_RUN


# -- before a run --------------------------------------------------------------------------


@pytest.mark.long
def test_notes_are_in_the_next_prompt_once_and_kept_notes_in_every_prompt(
    workspace: Workspace, rooda: Rooda
) -> None:
    versioned(workspace)
    below = within(workspace, "src/deep")
    first = below.rooda("tell", "use", "tabs")
    assert (first.code, first.out, first.err) == (0, NO_RUN, "")
    piped = workspace.start("tell", "--keep", stdin="")
    out, err = piped.process.communicate("line one\nline two\n\n")
    assert out == "No run is at work here; the next run reads it in every iteration.\n", err
    listed = rooda("tell", "--list").out.splitlines()
    assert listed[0].startswith("1  ")
    assert listed[1] == "   use tabs"
    assert listed[2].endswith("ago, kept")
    assert listed[3:] == ["   line one", "   line two"]
    assert git(workspace, "status", "--porcelain") == ""

    section = f"{HEADING}\nuse tabs\n\nline one\nline two\n\n## OBSERVE\n"
    command = workspace.agent("true")
    tried = workspace.work(command, "--context", "the context", "--dry-run")
    assert f"## CONTEXT\nthe context\n\n{section}" in tried.out
    done = workspace.work(command, "-n", "2", "--context", "the context")
    assert f"## CONTEXT\nthe context\n\n{section}" in prompt(workspace)
    assert f"{HEADING}\nline one\nline two\n\n## OBSERVE\n" in prompt(workspace, 2)
    assert done.log[2] == "Note from the user in the prompt: use tabs (and 1 more)"
    assert sum(HEADING in line or "Note from" in line for line in done.log) == 1

    (run,) = asked(rooda, "history")
    told = [asked(rooda, "show", run["run"], str(number))["told"] for number in (1, 2)]
    assert told == [["use tabs", "line one\nline two"], ["line one\nline two"]]
    assert rooda("tell", "--clear", "1").out == "Deleted note 1: line one\n"
    assert rooda("tell", "--list").out == "No note waits.\n"


@pytest.mark.long
def test_note_before_the_first_run_needs_no_repository_and_no_record(
    workspace: Workspace,
) -> None:
    assert workspace.rooda("tell", "-", env={}).err.startswith("Error: the note is empty")
    assert workspace.rooda("tell", "hello").out == NO_RUN
    assert workspace.work(workspace.agent(SUCCESS)).code == 0
    assert f"{HEADING}\nhello\n" in prompt(workspace)
    assert list(notes(workspace).iterdir()) == []


@pytest.mark.long
def test_ralph_reads_the_note_at_the_end_of_its_prompt(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.plan()
        work.agent_does("date +%N >> work")
        assert work.rooda("tell", "mind the gap").code == 0
        work.ralph("build", "-n", "1")
        given = prompt(Workspace(work.path, work.home))
        assert given.endswith(f"\n\n{HEADING}\nmind the gap\n")


# -- during a run --------------------------------------------------------------------------


@pytest.mark.long
def test_note_told_during_an_iteration_survives_an_agent_that_deletes_the_state_folder(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agents(f"{WAITS}; rm -rf $STATE", f"{WAITS_AGAIN}; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    run = json.loads(wait_for(workspace.state / "run.json"))
    told = within(workspace, "deep").rooda("tell", "keep calm")
    assert told.out == f"Run {run['run']} reads it in its next iteration.\n"
    open_files = Path(f"/proc/{running.process.pid}/fd")
    assert workspace.rooda("tell", "--keep", "and go on").code == 0
    until(
        lambda: any(str(notes(workspace)) in str(one.readlink()) for one in open_files.iterdir()),
        "the run looks at the notes",
    )
    workspace.write("go", "")
    until(lambda: workspace.starts == 2, "the second iteration")
    assert f"{HEADING}\nkeep calm\n\nand go on\n" in prompt(workspace, 2)
    # The user sees at once that the agent has the note; it is deleted after the iteration.
    shown = json.loads(workspace.rooda("show", "2", "--json").out)
    assert shown["told"] == ["keep calm", "and go on"]
    page = workspace.rooda("show", "2").out
    assert "Notes from the user in the prompt\n  keep calm\n  and go on\n" in page
    workspace.write("go2", "")
    assert running.finish().code == 0
    assert [file.read_text() for file in notes(workspace).iterdir()] == ["and go on"]


@pytest.mark.long
def test_note_for_an_agent_that_could_not_work_waits_for_one_that_can(
    workspace: Workspace, nursery: Nursery
) -> None:
    hook = "loop: {hooks: {pre_iteration: [{command: exit 1, on_error: fail}]}}\n"
    workspace.config(hook + PROCEDURE)
    workspace.rooda("tell", "wait for me")
    skipped = workspace.work(workspace.agent("true"), "-n", "1")
    assert "WARN: A note was not delivered: it waits for the next run" in skipped.err
    assert not any("Note from the user" in line for line in skipped.log)
    workspace.config(PROCEDURE)
    broken = workspace.write("broken", "#!/nowhere/at/all\n")
    broken.chmod(0o755)
    assert "not delivered" in workspace.work(str(broken)).err
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS))
    nursery.pid("agent")
    running.signal(signal.SIGINT)
    interrupted = running.finish()
    assert "not delivered" not in interrupted.err  # the agent had it
    assert len([*notes(workspace).iterdir()]) == 1
    resumed = workspace.rooda("resume", "--ai-cmd", workspace.agent(SUCCESS, "other.sh"))
    assert resumed.code == 0, resumed.err
    assert f"{HEADING}\nwait for me\n" in prompt(workspace, 1, 2)
    assert [*notes(workspace).iterdir()] == []


@pytest.mark.real
def test_note_is_given_again_after_a_usage_limit(workspace: Workspace) -> None:
    limit = {
        "type": "result",
        "is_error": True,
        "api_error_status": 429,
        "result": "Usage limit reached. Please try again in 1 second.",
    }
    done = {"type": "result", "is_error": False, "result": "<promise>SUCCESS</promise>"}
    prints = [f"echo {shlex.quote(json.dumps(event))}" for event in (limit, done)]
    script = workspace.agents(*prints).strip("'")
    (workspace.path / "claude").symlink_to(script)
    workspace.rooda("tell", "once more")
    assert workspace.work("./claude -p --output-format stream-json").code == 0
    assert all(f"{HEADING}\nonce more\n" in prompt(workspace, 1, one) for one in (1, 2))
    assert [*notes(workspace).iterdir()] == []


@pytest.mark.real
def test_note_told_in_the_folder_of_the_agent_goes_to_the_record_of_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    other = workspace.sibling("other")
    command = workspace.agent(f"cd {workspace.path}; {WAITS}")
    arguments = ("work", "--ai-cmd", command, "--working-dir", str(other.path), "-n", "1")
    running = nursery.start(workspace, *arguments)
    nursery.pid("agent")
    assert "reads it in its next iteration" in other.rooda("tell", "over there").out
    assert [file.read_text() for file in notes(workspace).iterdir()] == ["over there"]
    workspace.write("go", "")
    assert "A note was not delivered: it waits for the next run" in running.finish().err


@pytest.mark.real
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux tells whose a process is")
def test_note_for_the_run_of_another_user_is_refused(
    workspace: Workspace, nursery: Nursery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS), "-n", "1")
    nursery.pid("agent")
    (workspace.state / "run.json").unlink()  # another user may not read it
    monkeypatch.setattr(os, "geteuid", lambda: 4711)  # who has a state home of his own
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "states"))
    monkeypatch.chdir(workspace.path)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        NoteTarget.find(this_world()).tell("for him")
    assert not (tmp_path / "states").exists()
    workspace.write("go", "")
    running.finish()


# -- limits and hostile files --------------------------------------------------------------


def test_wrong_notes_are_refused(workspace: Workspace, rooda: Rooda) -> None:
    refused(rooda("tell", " \n "), "the note is empty")
    refused(rooda("tell", "x" * 102_401), "the note is longer than 100KB")
    refused(rooda("tell", "\udcff"), "the note is not UTF-8 text")
    refused(rooda("tell", "--list", "text"), "--list and --clear take no note")
    refused(rooda("tell", "--clear", "1"), "'1' is not the number of a note: no note waits")
    assert rooda("tell", "x").code == 0
    refused(rooda("tell", "--clear", "2"), "'2' is not the number of a note: there is 1")
    refused(rooda("tell", "--clear", "0"), "'0'")
    assert rooda("tell", "--clear").out == "Deleted 1 note.\n"
    workspace.write(
        f"{workspace.state}/notes/.1000000000000000000-00000000.md.4711", "of a killed command"
    )
    assert rooda("tell", "--clear").out == "Deleted 0 notes.\n"
    assert [*notes(workspace).iterdir()] == []


@pytest.mark.real
def test_note_that_does_not_fit_into_the_prompt_waits(workspace: Workspace, rooda: Rooda) -> None:
    for text in ("short", "x" * 900, "behind"):
        assert rooda("tell", text).code == 0
    done = workspace.work(workspace.agent(SUCCESS), "--max-prompt-size", "1k")
    assert done.code == 0
    assert "max_prompt_size has no room for 2 of 3 notes: they wait" in done.err
    assert f"{HEADING}\nshort\n\n## OBSERVE" in prompt(workspace)
    assert "2 notes were not delivered: they wait for the next run" in done.err


@pytest.mark.real
def test_files_that_are_no_notes_do_no_harm(workspace: Workspace, rooda: Rooda) -> None:
    assert rooda("tell", "the \x1b[31mreal\x1b[0m one").code == 0
    folder, secret = notes(workspace), workspace.write("secret", "a secret")
    name = "1000000000000000000-0000000{}.md"
    (folder / name.format(1)).symlink_to(secret)
    os.mkfifo(folder / name.format(2))
    (folder / name.format(3)).mkdir()
    (folder / name.format(4)).write_bytes(b"\xff\xfe")
    with (folder / name.format(5)).open("wb") as huge:
        huge.truncate(10**12)
    (folder / "notes.md").write_text("no note")
    assert rooda("tell", "--list").out.splitlines()[1:] == ["   the real one"]
    done = workspace.work(workspace.agent(SUCCESS))
    assert done.code == 0, done.err
    assert f"{HEADING}\nthe \x1b[31mreal\x1b[0m one\n\n## OBSERVE" in prompt(workspace)
    assert "\x1b" not in done.err
    assert rooda("tell", "--clear").code == 0


@pytest.mark.long
def test_notes_of_many_commands_at_once_are_all_there(workspace: Workspace) -> None:
    started = [workspace.start("tell", f"note {number}") for number in range(4)]
    assert [one.finish().code for one in started] == [0] * 4
    listed = workspace.rooda("tell", "--list").out
    assert all(f"   note {number}\n" in listed for number in range(4))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_note_in_a_folder_that_is_read_only_is_an_error(workspace: Workspace) -> None:
    workspace.path.chmod(0o500)
    try:
        refused(workspace.rooda("tell", "x"), "the note can't be written", "Permission denied")
    finally:
        workspace.path.chmod(0o700)
