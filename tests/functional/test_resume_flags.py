"""`rooda resume` and `--resume` continue a run with the flags it was started with."""

import contextlib
import json
import re
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins

from rooda.front.cli.commands.run import run
from rooda.front.command_line import merge, parse, parts_of
from rooda.front.flags import RULES
from rooda.record.given_flags import GivenFlags
from support.children import Nursery
from support.finished import Finished, Rooda
from support.recorded import HANGS, SUCCESS, asked, refused, statuses, versioned, within
from support.states import state_of
from support.workspace import PROCEDURE, ROODA, Workspace

SECRET = "s3cret-value"
FAILS = ("--failure-threshold", "1")


@pytest.fixture
def look(workspace: Workspace) -> Rooda:
    """`rooda ARGS` in this process, to see what is in the record."""
    return workspace.inside


def interrupted(
    workspace: Workspace, nursery: Nursery, *args: str, by: signal.Signals = signal.SIGINT
) -> Finished:
    """A run that the user ends while its agent hangs."""
    running = nursery.start(workspace, "work", *args)
    nursery.pid("agent")
    running.signal(by)
    done = running.finish()
    assert done.code == 130, done.err
    (workspace.path / "agent.pid").unlink()
    return done


def last_run(look: Rooda) -> dict[str, Any]:
    found: dict[str, Any] = asked(look, "show")
    return found


def changed(workspace: Workspace, change: str, *values: str) -> None:
    """Write to the record as an agent or another version could."""
    with contextlib.closing(sqlite3.connect(workspace.state / "rooda.db")) as connection:
        connection.execute(change, values)
        connection.commit()


def given(workspace: Workspace, value: object) -> None:
    """Let the record have these as the flags of the run."""
    change = "update runs set data = json_set(data, '$.given', json(?))"
    changed(workspace, change, json.dumps(value))


def line_of(done: Finished, start: str = "Resuming run") -> str:
    (found,) = [line for line in done.log if start in line]
    return found


# -- with its flags --------------------------------------------------------------------------


@pytest.mark.long
def test_a_resumed_run_keeps_the_flags_it_was_started_with(
    workspace: Workspace, nursery: Nursery, look: Rooda
) -> None:
    command = workspace.agents("exit 0", "exit 0", HANGS, "exit 0")
    verify = "echo checked >> checks"
    flags = ("--ai-cmd", command, "-n", "4", "--verify", verify, "--idle-timeout", "9m")
    ended = interrupted(workspace, nursery, *flags)
    name = last_run(look)["run"]
    assert ended.err.endswith(f"\n  Next: rooda show · rooda report · rooda resume {name}\n")

    done = workspace.rooda("resume")
    assert done.code == 2, done.err
    assert "Iteration 3/4 starting..." in done.log
    assert "Iteration 4/4 completed in" in done.err
    assert (workspace.path / "checks").read_text().count("checked") == 5, "one before the first"
    path = shlex.split(command)[0]
    assert line_of(done) == (
        f"Resuming run {name} at iteration 3 with its flags: --max-iterations 4 "
        f"--idle-timeout 9m --ai-cmd {path} --verify '{verify}'"
    )
    found = last_run(look)
    assert (found["run"], found["status"]) == (name, "max-iters")
    assert statuses(found) == [(number, "completed") for number in (1, 2, 3, 4)]
    settings = {name: value for name, value, _ in found["settings"]}
    assert settings["loop.idle_timeout"] == "540s"
    assert len(asked(look, "history")) == 1


@pytest.mark.real
def test_resume_on_a_procedure_means_the_same(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agents("exit 0", HANGS, "exit 0")
    interrupted(workspace, nursery, "--ai-cmd", command, "-n", "2", by=signal.SIGTERM)
    done = workspace.rooda("work", "--resume")
    assert done.code == 2, done.err
    assert "Iteration 2/2 starting..." in done.log
    assert f"with its flags: --max-iterations 2 --ai-cmd {shlex.split(command)[0]}" in done.err


@pytest.mark.long
def test_resume_takes_the_last_run_of_any_procedure_or_the_one_named(
    workspace: Workspace, look: Rooda
) -> None:
    other = PROCEDURE.replace("work:", "other:").replace("procedures:", "")
    workspace.config(PROCEDURE + other)
    command = workspace.agents("exit 1", "exit 1", SUCCESS)
    for procedure in ("work", "other"):
        assert workspace.rooda(procedure, "--ai-cmd", command, *FAILS).code == 1
    (second, first) = asked(look, "history")
    assert workspace.rooda("resume").code == 0
    assert workspace.rooda("resume", first["run"][:-1]).code == 0
    assert [run["status"] for run in asked(look, "history")] == ["success", "success"]
    refused(workspace.rooda("resume"), f"{second['run']} ended as success", "rooda other")
    refused(workspace.rooda("resume", "nonsense"), "there is no run 'nonsense'", "rooda history")


@pytest.mark.long
def test_flags_given_now_override_and_stay_for_the_next_time(
    workspace: Workspace, look: Rooda
) -> None:
    prints = 'echo "A=$A B=$B" >> seen; cat >> prompts; exit 1'
    command = workspace.agent(prints)
    workspace.write("notes.md", "from the notes\n")
    flags = ("-n", "9", "--env", "A=old", "--env", "B=kept", "-c", "first words", "-c", "notes.md")
    assert workspace.work(command, *FAILS, *flags).code == 1
    now = ("--env", "A=new", "--env=C=more", "-c", "other words", "--max-iterations=7")
    done = workspace.rooda("resume", *now)
    assert done.code == 1, done.err
    assert (workspace.path / "seen").read_text() == "A=old B=kept\nA=new B=kept\n"
    one, two = (workspace.path / "prompts").read_text().split("# OODA Loop Iteration")[1:]
    assert "first words" in one
    assert "from the notes" in one
    assert "other words" in two
    assert "first words" not in two
    assert "from the notes" not in two
    assert line_of(done).endswith(
        f" with its flags: --failure-threshold 1 --ai-cmd {shlex.split(command)[0]} "
        "--env B=...; given now: --max-iterations 7 --env A=... --env C=... "
        "--context 'other words', instead of: --max-iterations 9 --env A=... "
        "--context 'first words' --context notes.md"
    )
    again = workspace.rooda("resume")
    assert "Iteration 3/7 starting..." in again.log
    assert "other words" in asked(look, "show", "3")["prompt"]
    assert (workspace.path / "seen").read_text().endswith("A=new B=kept\n")


@pytest.mark.parametrize(
    "earlier,now,kept,replaced",
    [
        ("-n 8", "-u", "", "--max-iterations 8"),
        ("-u", "-n 8", "", "--unlimited"),
        ("--iteration-mode unlimited", "-n 8", "", "--iteration-mode unlimited"),
        ("--ai-cmd a", "--ai-cmd-alias b", "", "--ai-cmd a"),
        ("--ai-cmd-alias b", "--ai-cmd a", "", "--ai-cmd-alias b"),
        ("-v", "-q", "", "--verbose"),
        ("-v", "--no-show-ai-output", "", "--verbose"),
        ("-q", "--log-level debug", "", "--quiet"),
        ("-v --log-level debug", "-q", "", "--verbose --log-level debug"),
        ("--commit", "--no-commit", "", "--commit"),
        ("--commit --push", "--no-push", "--commit", "--push"),
        ("--env A=1 --env B=2", "--env B=3", "--env A=1", "--env B=2"),
        ("--env A=1 --env B=2", "--env none", "", "--env A=1 --env B=2"),
        ("--env none", "--env A=1", "", "--env none"),
        ("-c a -c b", "-c c", "", "--context a --context b"),
        ("--observe a --act b", "--act c", "--observe a", "--act b"),
        ("--keep-processes a", "--keep-processes b", "", "--keep-processes a"),
        ("--config a.yml", "--config b.yml", "", "--config a.yml"),
        ("-n 8 --verify x", "", "--max-iterations 8 --verify x", ""),
        ("-c --resume --verify=-d", "-n 3", "--verify -d --context --resume", ""),
    ],
)
def test_what_a_flag_given_now_replaces(earlier: str, now: str, kept: str, replaced: str) -> None:
    def parts(line: str) -> Any:
        return parts_of(run.make_context("run", ["work", *line.split()]))

    def words(some: Any) -> str:
        return " ".join(word for every in some.values() for one in every for word in one)

    merged = merge(parts(earlier), parts(now), RULES)
    assert (words(merged.kept), words(merged.replaced)) == (kept, replaced)


@pytest.mark.long
def test_iterations_that_are_used_up_are_named_with_the_command_for_more(
    workspace: Workspace, look: Rooda
) -> None:
    assert workspace.work("true", "-n", "2").code == 2
    name = last_run(look)["run"]
    advice = (f"{name} has run 2 iterations", f"rooda resume {name} --max-iterations 12")
    refused(workspace.rooda("resume"), *advice)
    refused(workspace.rooda("resume", "-n", "2"), *advice)
    done = workspace.rooda("resume", "-n", "3")
    assert (done.code, line_of(done, "starting...")) == (2, "Iteration 3/3 starting...")


@pytest.mark.long
def test_an_interrupted_run_with_all_its_failures_can_be_resumed(workspace: Workspace) -> None:
    """The signal came just before the threshold would have ended the run."""
    command = workspace.agents("exit 1", SUCCESS)
    assert workspace.work(command, *FAILS).code == 1
    changed(workspace, "update runs set status = 'interrupted'")
    assert workspace.rooda("resume").code == 0


# -- where it was started --------------------------------------------------------------------


@pytest.mark.long
def test_a_run_continues_in_its_own_folder_from_a_folder_below(
    workspace: Workspace, look: Rooda
) -> None:
    versioned(workspace)
    below = within(workspace, "src/deep")
    workspace.write("notes.md", "from the top\n")
    below.write("notes.md", "from below\n")
    workspace.agent("pwd >> agent.pwd; echo $PWD >> agent.pwd; exit 1")
    flags = ("--ai-cmd", "./agent.sh", *FAILS, "-c", "notes.md", "--log-file", "agent.log")
    assert workspace.rooda("work", *flags).code == 1

    done = below.rooda("resume")
    assert done.code == 1, done.err
    assert f"at iteration 2 in {workspace.path} with its flags" in line_of(done)
    assert set((workspace.path / "agent.pwd").read_text().split()) == {str(workspace.path)}
    assert "from the top" in asked(look, "show", "2")["prompt"]
    assert "Iteration 2/5" in (workspace.path / "agent.log").read_text()
    assert not (state_of(below.path)).exists()
    assert not (below.path / "agent.log").exists()

    # A path given now is one of the folder that the user is in.
    assert below.rooda("work", "--resume", "-c", "notes.md", "-c", "plain words").code == 1
    prompt = asked(look, "show", "3")["prompt"]
    assert "from below" in prompt
    assert "plain words" in prompt
    assert "from the top" not in prompt


@pytest.mark.long
def test_a_folder_that_was_moved_continues_its_runs(workspace: Workspace) -> None:
    workspace.write("notes.md", "some words\n")
    workspace.agents("exit 1", f"cat; {SUCCESS}")
    flags = ("--ai-cmd", "sh agent.sh", *FAILS, "-c", "notes.md")
    workspace.config(PROCEDURE)
    assert workspace.rooda("work", *flags).code == 1
    moved = Workspace(workspace.path.rename(workspace.path.with_name("moved")), workspace.home)
    (moved.path / "starts").rename(workspace.path.parent / "starts")
    moved.write("agent.sh", f"cat; {SUCCESS}\n")
    done = moved.rooda("resume", "-v")
    assert done.code == 0, done.err
    assert "Source: notes.md\n\nsome words" in done.out


@pytest.mark.long
def test_the_text_of_a_pipe_is_still_there(workspace: Workspace, look: Rooda) -> None:
    workspace.config(PROCEDURE)
    command = workspace.agents("exit 1", SUCCESS)
    line = f'"$@" work --ai-cmd {shlex.quote(command)} --failure-threshold 1 -c <(echo piped words)'
    done = subprocess.run(
        ["bash", "-c", line, "bash", str(ROODA)],
        cwd=workspace.path,
        env=workspace.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert workspace.rooda("resume").code == 0
    assert "piped words" in asked(look, "show", "2")["prompt"]


# -- what is read as it is now ---------------------------------------------------------------


@pytest.mark.real
def test_config_and_environment_are_those_of_now(workspace: Workspace) -> None:
    command = workspace.agents("exit 1", SUCCESS)
    workspace.config(f"loop: {{failure_threshold: 1, default_max_iterations: 4}}\n{PROCEDURE}")
    env = {"ROODA_LOOP_VERIFY_COMMAND": "touch checked", "ROODA_LOOP_VERIFY_BASELINE": "false"}
    assert workspace.work(command, env=env).code == 1
    workspace.config(f"loop: {{default_max_iterations: 3}}\n{PROCEDURE}")
    done = workspace.rooda("resume")
    assert done.code == 0, done.err
    assert "Iteration 2/3 starting..." in done.log
    assert not (workspace.path / "checked").exists()


# -- a dry run -------------------------------------------------------------------------------


@pytest.mark.real
def test_a_dry_run_shows_what_would_go_on_and_changes_nothing(
    workspace: Workspace, look: Rooda
) -> None:
    assert workspace.work("false", *FAILS, "-n", "8", "--env", f"KEY={SECRET}").code == 1
    before = last_run(look)
    done = look("resume", "-n", "9", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("=== Dry-Run: work ===\n\nResuming run ")
    assert f"{before['run']} at iteration 2 with its flags: --failure-threshold 1" in done.out
    assert "given now: --max-iterations 9, instead of: --max-iterations 8\n" in done.out
    assert "  AI Command: false (cli: --ai-cmd)\n  Max Iterations: 9 " in done.out
    assert done.out.endswith("Ready to execute: rooda resume -n 9\n")
    assert SECRET not in done.out
    assert last_run(look) == before
    assert look("work", "--resume", "--dry-run").code == 0


@pytest.mark.real
def test_a_dry_run_says_that_there_is_nothing_to_resume(workspace: Workspace, look: Rooda) -> None:
    workspace.config(PROCEDURE)
    refused(look("resume", "--dry-run"), "no run has been recorded here yet")
    refused(look("work", "--resume", "-d"), "there is no run of work here", "rooda work")
    assert workspace.work(workspace.agent(SUCCESS), "-n", "3").code == 0
    refused(look("resume", "-d"), "ended as success")
    done = look("work", "--resume", "-d")
    assert (done.code, done.err) == (1, "")
    assert "✗ Nothing to resume: run " in done.out
    assert done.out.endswith("Error: Dry-run validation failed\n")


# -- the end of a run ------------------------------------------------------------------------


@pytest.mark.long
def test_the_end_of_an_interrupted_run_says_how_to_continue_it(
    workspace: Workspace, nursery: Nursery, look: Rooda
) -> None:
    command = workspace.agent(HANGS)
    flags = ("--ai-cmd", command, "--log-format", "json", "--log-file", "agent.log")
    done = interrupted(workspace, nursery, *flags, by=signal.SIGTERM)
    name = last_run(look)["run"]
    for text in (done.err, (workspace.path / "agent.log").read_text()):
        last = json.loads(text.splitlines()[-1])
        assert (last["event"], last["resume"]) == ("run_ended", f"rooda resume {name}")
    running = nursery.start(workspace, "resume", "--log-format", "logfmt")
    nursery.pid("agent")
    running.signal(signal.SIGINT)
    err = running.finish().err
    assert re.search(rf'INFO Resuming a run run={name} iteration=1 flags="--ai-cmd ', err)
    assert err.splitlines()[-1].endswith(f' resume="rooda resume {name}"')


@pytest.mark.long
def test_a_run_that_the_user_stopped_says_how_to_continue_it(
    workspace: Workspace, nursery: Nursery, look: Rooda
) -> None:
    waits = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agents(waits, SUCCESS))
    nursery.pid("agent")
    assert look("stop").code == 0
    workspace.write("go", "")
    done = running.finish()
    assert done.code == 130
    assert done.err.endswith(
        f"\n  Next: rooda show · rooda report · rooda resume {last_run(look)['run']}\n"
    )
    assert workspace.rooda("resume").code == 0


@pytest.mark.long
def test_which_ends_have_a_command_to_continue(workspace: Workspace, look: Rooda) -> None:
    def last(done: Finished) -> str:
        return done.err.splitlines()[-1].replace(last_run(look)["run"], "RUN")

    done = workspace.work("false", *FAILS, "--log-format", "logfmt")
    assert last(done).endswith(' resume="rooda resume RUN"')
    begin = "  Next: rooda show · rooda report"
    assert last(workspace.work("false", *FAILS)) == f"{begin} · rooda resume RUN"
    hook = "loop: {hooks: {loop_start: {command: exit 1, on_error: abort}}}\n"
    workspace.config(hook + PROCEDURE)
    assert last(workspace.work("true")) == f"{begin} · rooda resume RUN"
    workspace.config(PROCEDURE)
    assert (
        last(workspace.work("true", "-n", "1")) == f"{begin} · rooda resume RUN --max-iterations 11"
    )
    assert last(workspace.work(workspace.agent(SUCCESS))) == begin
    slow = workspace.agent("exec sleep 60")
    done = workspace.work(slow, "--max-duration", "1s")
    assert last(done) == f"{begin} · rooda resume RUN --max-duration 2s"
    refused(workspace.rooda("resume"), "max_duration of 1.0s reached", "--max-duration 2s")


# -- secrets ---------------------------------------------------------------------------------


@pytest.mark.long
def test_no_view_shows_the_secrets_among_the_flags(workspace: Workspace, look: Rooda) -> None:
    agent = workspace.agent('test "$2" = "$PLAIN" && touch agent.knows; exit 1')
    hidden = (
        *("--ai-cmd", f"{agent} --api-key {SECRET} --token={SECRET}"),
        *("--env", f"PLAIN={SECRET}", "--env", "PASSWORD_X=right"),
        *("--verify", f"API_TOKEN={SECRET} true", "-c", f"log in with KEY='{SECRET} {SECRET}'"),
    )
    log = ("--log-level", "debug", "--log-file", "agent.log")
    workspace.config(PROCEDURE)
    done = workspace.rooda("work", *hidden, *FAILS, *log)
    again = workspace.rooda("resume")
    assert (done.code, again.code) == (1, 1)
    assert SECRET not in done.err + again.err
    assert "--api-key ... --token=...' --env PLAIN=... --env PASSWORD_X=... " in again.err
    assert (workspace.path / "agent.knows").exists(), "the agent gets the values themselves"
    assert SECRET not in (workspace.path / "agent.log").read_text()
    (folder,) = (workspace.state / "runs").iterdir()
    assert SECRET not in (folder / "session.log").read_text()
    for words in (("history",), ("show",), ("why",), ("why", "1"), ("resume", "--dry-run")):
        assert SECRET not in look(*words).out.partition("Assembled Prompt")[0], words
    for words in (("history",), ("why",)):
        assert SECRET not in look(*words, "--json").out, words
    found = last_run(look)
    assert "--env PLAIN=... --env PASSWORD_X=..." in " ".join(found["flags"])
    found["iterations"] = []  # the prompt has the context as it is
    assert SECRET not in json.dumps(found)
    state = workspace.state
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (state, state / "rooda.db")]
    assert modes == [0o700, 0o600]


# -- records of other versions, and of other hands --------------------------------------------


@pytest.mark.long
def test_a_run_whose_flags_were_not_recorded_continues_with_those_given_now(
    workspace: Workspace, look: Rooda
) -> None:
    command = workspace.agents("exit 1", "exit 1", SUCCESS)
    assert workspace.work(command, *FAILS, "-n", "8").code == 1
    changed(workspace, "update runs set data = json_remove(data, '$.given')")
    assert last_run(look)["flags"] is None
    assert "\nFlags" not in look("show").out
    refused(workspace.rooda("resume"), "AI command", "Warning: the flags of run", "not recorded")
    done = workspace.rooda("resume", "--ai-cmd", command, *FAILS)
    assert done.code == 1, done.err
    line = line_of(done)
    assert line.startswith("WARN: Resuming run ")
    assert "at iteration 2 with the flags given now: --failure-threshold 1 --ai-cmd " in line
    assert line.endswith("; the flags of the run were not recorded")
    assert "Iteration 2/5 starting..." in done.log
    assert workspace.rooda("resume").code == 0, "from now on they are recorded"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "value,words",
    [
        (None, "can't be read"),
        (7, "can't be read"),
        ([], "can't be read"),
        ({}, "can't be read"),
        ({"flags": "--commit", "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["--commit"]], "arguments": [], "folder": None}, "can't be read"),
        ({"flags": [["--commit"]], "arguments": [3], "folder": "."}, "can't be read"),
        ({"flags": [[]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["commit"]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["--"]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["-n", "3"]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["--env", "A", "B"]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["--ai-cmd", "a\0b"]], "arguments": [], "folder": "."}, "can't be read"),
        ({"flags": [["--bygone", "3"]], "arguments": [], "folder": "."}, "--bygone"),
        ({"flags": [["--ai-cmd"]], "arguments": [], "folder": "."}, "lacks its value"),
        ({"flags": [["--commit", "3"]], "arguments": [], "folder": "."}, "unexpected"),
        ({"flags": [["--help"]], "arguments": [], "folder": "."}, "--help"),
        ({"flags": [["--dry-run"]], "arguments": [], "folder": "."}, "--dry-run"),
        ({"flags": [["--resume=x"]], "arguments": [], "folder": "."}, "--resume"),
        ({"flags": [], "arguments": ["other"], "folder": "."}, "unexpected"),
        ({"flags": [], "arguments": [], "folder": "gone"}, "is gone"),
        ({"flags": [], "arguments": [], "folder": "x" * 5000}, "is gone"),
        ({"flags": [["--max-iterations", "x"]], "arguments": [], "folder": "."}, "whole number"),
    ],
)
def test_recorded_flags_that_make_no_sense_are_one_clear_error(
    an_abort: Path, workspace: Workspace, look: Rooda, value: object, words: str
) -> None:
    for source, copy in ((an_abort, workspace.path), (state_of(an_abort), workspace.state)):
        shutil.copytree(source, copy, dirs_exist_ok=True)
    given(workspace, value)
    refused(look("resume", "--ai-cmd", "true"), words)
    for shown in (look("show"), look("history"), look("show", "--json"), look("why")):
        assert shown.code == 0, shown.err


@pytest.fixture(scope="module")
def an_abort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work tree of a run that was aborted."""
    home = tmp_path_factory.mktemp("aborted")
    found = Workspace(home / "work", home / "home")
    found.path.mkdir()
    found.home.mkdir()
    assert found.work("false", *FAILS).code == 1
    return found.path


def test_words_that_are_no_utf8_come_back_as_they_were() -> None:
    odd = GivenFlags((("--context", "caf\udce9 \udcff"), ("--commit",)), ("\udc80",), "a\udcffb")
    assert odd.trouble() == ""
    assert convert(json.loads(json.dumps(to_builtins(odd))), GivenFlags) == odd


def test_a_command_line_is_the_same_after_it_was_kept() -> None:
    line = ["-vn3", "-c", "-d", "--context=two\nlines", "--no-commit", "--env", "A=-x", "--act", ""]
    ctx = run.make_context("run", ["work", *line])
    kept = GivenFlags(tuple(one for every in parts_of(ctx).values() for one in every), (), ".")
    assert parse(run, kept, ["work"]).params == ctx.params


# -- the command itself ----------------------------------------------------------------------


def test_resume_is_a_command_like_the_others(workspace: Workspace, look: Rooda) -> None:
    assert re.search(r"^  resume +Continue an interrupted run", look("--help").out, re.MULTILINE)
    text = look("resume", "--help").out
    assert text.startswith("Usage: rooda resume [OPTIONS] [RUN]")
    assert "--resume" not in text
    for flag in ("-n, --max-iterations", "-c, --context", "-d, --dry-run", "--verify"):
        assert flag in text
    env = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda resu", "COMP_CWORD": "1"}
    assert workspace.rooda(env=env).out == "plain,resume\n"
    refused(look("resume", "-v", "-q"), "--verbose and --quiet can't be given together")
    refused(look("resume", "a", "b"), "unexpected extra argument (b)")


def test_that_there_is_nothing_to_resume_is_said_in_the_form_of_the_log(
    workspace: Workspace,
) -> None:
    done = workspace.rooda("resume", "--log-format", "json")
    assert done.code == 1
    (problem,) = map(json.loads, done.err.splitlines())
    assert (problem["event"], problem["title"]) == ("problem_found", "Nothing to resume")


@pytest.mark.long
def test_a_run_that_is_at_work_is_left_alone(workspace: Workspace, nursery: Nursery) -> None:
    waits = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agents(waits, SUCCESS))
    nursery.pid("agent")
    refused(workspace.rooda("resume"), "another run is at work")
    workspace.write("go", "")
    assert running.finish().code == 0
