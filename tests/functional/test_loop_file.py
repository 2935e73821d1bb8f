"""`rooda loop FILE`: a run whose prompt is one file."""

import os
import shlex
from pathlib import Path

import pytest

from rooda.plan.prompts import builtin
from support.children import Nursery
from support.finished import Rooda
from support.recorded import HANGS, SUCCESS, asked, refused, statuses, within
from support.surface import planned, procedure
from support.workspace import PROCEDURE, Workspace

SIGNALS = builtin.read("fragments/prompt_file.md")
TAG = "<promise>SUCCESS</promise>"
MEGABYTE = 1024 * 1024


@pytest.fixture
def inside(workspace: Workspace) -> Rooda:
    workspace.write("PROMPT.md", "Fix all bugs.\n")
    return workspace.inside


# -- the prompt ----------------------------------------------------------------------------


def test_dry_run_shows_the_words_of_the_file_and_what_rooda_adds(inside: Rooda) -> None:
    flags = ("--ai-cmd", "true", "-c", "only the parser", "--dry-run")
    done = inside("loop", "PROMPT.md", *flags)
    assert (done.code, done.err) == (0, "")
    assert "=== Dry-Run: loop ===" in done.out
    assert "✓ Prompt file exists: PROMPT.md" in done.out
    assert f"Fix all bugs.\n\n## CONTEXT\nonly the parser\n\n{SIGNALS}\n" in done.out
    assert "OODA" not in done.out
    command = "rooda loop PROMPT.md --ai-cmd true -c 'only the parser'"
    assert f"Ready to execute: {command}" in done.out


@pytest.mark.real
@pytest.mark.parametrize(
    "text,flags,prompt,warning",
    [
        pytest.param(f"Do it, then print {TAG}", {}, "", "", id="own-signal"),
        pytest.param(
            "Say <promise>COMPLETE</promise>",
            {},
            "",
            "Add --signals-success COMPLETE. Or: Name <promise>SUCCESS</promise> in the file",
            id="word-of-another-run",
        ),
        pytest.param(
            "Say <promise>COMPLETE</promise>",
            {"signals.success": ("--signals-success", "COMPLETE")},
            "",
            "",
            id="word-as-configured",
        ),
        pytest.param("Print <promise>!", {}, "", "Name <promise>SUCCESS", id="no-word"),
        pytest.param(
            "Do it.",
            {"signals.success": ("--signals-success", "DONE")},
            SIGNALS.replace("SUCCESS", "DONE"),
            "",
            id="configured-word",
        ),
        pytest.param(
            "Do it.",
            {"preset": ("--preset", "v1")},
            SIGNALS.replace(
                builtin.read("fragments/signals.md"), builtin.read("fragments/signals_none.md")
            ),
            "",
            id="no-signals",
        ),
    ],
)
def test_rooda_explains_the_signals_unless_the_file_names_one(
    workspace: Workspace,
    text: str,
    flags: dict[str, tuple[str, str]],
    prompt: str,
    warning: str,
) -> None:
    workspace.write("p.md", f"\n{text}\n")
    found = planned(workspace, "loop", {"ai_cmd": ("--ai-cmd", "true"), **flags}, file="p.md")
    assert found.plan is not None
    assert found.plan.prompt() == (f"{text}\n\n{prompt}\n" if prompt else f"{text}\n")
    advice = [one.suggestion for one in found.problems if "the prompt never names" in one.message]
    assert len(advice) == bool(warning)
    assert all(one.startswith(warning) for one in advice)


# -- a file that can't be the prompt -------------------------------------------------------


def made(folder: Path, kind: str) -> str:
    """Make a thing that is no prompt file; return its name."""
    path = folder / "thing.md"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link to nothing":
            path.symlink_to("nothing")
        case "too large":
            with path.open("wb") as file:
                file.truncate(11 * MEGABYTE)
        case "binary":
            path.write_bytes(b"\x7fELF\x02\x01\x00\x00")
        case "latin-1":
            path.write_bytes("Für Elise".encode("latin-1"))
        case "blank":
            path.write_text(" \n\t\n")
    return path.name


@pytest.mark.parametrize(
    "kind,words",
    [
        ("folder", "thing.md is a folder, not a file"),
        ("pipe", "thing.md is not a regular file"),
        ("link to nothing", "thing.md does not exist"),
        ("missing", "thing.md does not exist"),
        ("too large", "thing.md is larger than max_prompt_size (10MB)"),
        ("binary", "thing.md is not text: it has a zero byte"),
        ("latin-1", "thing.md is not UTF-8 text (byte 1)"),
        ("blank", "thing.md is empty"),
    ],
)
def test_file_that_is_no_prompt_is_one_error_before_the_first_iteration(
    workspace: Workspace, inside: Rooda, kind: str, words: str
) -> None:
    done = inside("loop", made(workspace.path, kind), "--ai-cmd", "true")
    refused(done, f"FILE: {words}")
    assert not (workspace.state).exists()


@pytest.mark.parametrize(
    "args,words",
    [
        (("-",), "FILE: can't be standard input"),
        (("",), "FILE: must not be empty"),
        (("PROMPT.md", "other.md"), "unexpected extra argument (other.md)"),
        ((), "Missing argument 'FILE'"),
        (("--resume",), "Start a new run: rooda loop FILE"),
        (("PROMPT.md", "--observe", "look"), "No such option"),
    ],
)
def test_command_line_that_is_wrong_is_one_error(
    inside: Rooda, args: tuple[str, ...], words: str
) -> None:
    refused(inside("loop", *args, "--ai-cmd", "true"), words)


def test_missing_agent_is_explained_with_the_whole_command(inside: Rooda) -> None:
    done = inside("loop", "PROMPT.md")
    refused(done, "Example: rooda loop PROMPT.md --ai-cmd-alias kiro-cli")


# -- a run ---------------------------------------------------------------------------------


@pytest.mark.long
def test_run_reads_the_file_again_verifies_and_goes_on_from_a_subfolder(
    workspace: Workspace,
) -> None:
    workspace.write("plans/my prompt.md", "The first words.")
    agent = workspace.agents(
        "echo 'The second words.' > 'plans/my prompt.md'", "true", f"touch good; {SUCCESS}"
    )
    flags = ("--ai-cmd", agent, "-n", "2", "--verify", "test -e good || { echo missing; false; }")
    assert workspace.rooda("-q", "loop", "plans/my prompt.md", *flags).code == 2

    below = within(workspace, "plans")
    resumed = below.rooda("resume", "-n", "5")
    assert resumed.code == 0, resumed.err
    run = asked(workspace.inside, "show")
    assert (run["procedure"], run["flags"][-1]) == ("loop", "plans/my prompt.md")
    assert statuses(run) == [(1, "failed"), (2, "failed"), (3, "completed")]
    first, second, third = (one["prompt"] for one in run["iterations"])
    assert first == f"The first words.\n\n{SIGNALS}\n"
    assert second.startswith("The second words.\n\n## FEEDBACK\n")
    assert "missing" in second
    assert second.endswith(f"\n\n{SIGNALS}\n")
    assert third.startswith("The second words.\n\n## FEEDBACK\n")

    again = below.rooda("resume")
    refused(again, "Start a new run: rooda loop 'plans/my prompt.md'")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "harm,words",
    [("rm PROMPT.md", "PROMPT.md does not exist"), (": > PROMPT.md", "PROMPT.md is empty")],
)
def test_run_ends_if_the_file_is_gone_or_empty(workspace: Workspace, harm: str, words: str) -> None:
    workspace.write("PROMPT.md", "Do it.")
    done = workspace.rooda("loop", "PROMPT.md", "--ai-cmd", workspace.agents(harm, "true"))
    assert done.code == 1
    assert f"prompt assembly: {words}" in done.err
    assert workspace.starts == 1


@pytest.mark.long
def test_loop_resumes_with_another_file_and_refuses_phases(
    workspace: Workspace, nursery: Nursery
) -> None:
    workspace.write("a.md", "From a.")
    workspace.write("below/b.md", "From b.")
    running = nursery.start(workspace, "loop", "a.md", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    assert workspace.rooda("stop", "--now").code == 0
    assert "rooda resume" in running.finish().err

    phase = workspace.rooda("resume", "--act", "something")
    refused(phase, "--act is for procedures: the prompt of this run is one file")
    other = within(workspace, "below").rooda("loop", "b.md", "--resume", "--ai-cmd", "cat", "-d")
    assert other.code == 0, other.out
    assert "From b.\n\n## ITERATIONS" in other.out
    wrong = workspace.rooda("build", f"--resume={run_name(workspace)}")
    refused(wrong, "is one of loop, not of build", "Write: rooda resume")


def run_name(workspace: Workspace) -> str:
    return next((workspace.state / "runs").iterdir()).name


# -- `loop` in a config file ---------------------------------------------------------------


def test_settings_for_loop_are_those_of_the_command(workspace: Workspace, inside: Rooda) -> None:
    config = "loop: {ai_cmd: 'true'}\nprocedures:\n  loop: {default_max_iterations: 40}\n"
    workspace.config(config)
    done = inside("loop", "PROMPT.md", "--dry-run")
    assert done.code == 0, done.out
    assert "Max Iterations: 40 (workspace: ./rooda-config.yml)" in done.out
    assert "!" not in done.out
    check = inside("config", "check")
    assert (check.code, check.err) == (0, "")
    assert "default_max_iterations: 40" in inside("config", "show", "loop").out
    assert "\nloop " not in inside("list").out
    refused(inside("run", "loop"), "'loop' is a command", "rooda loop")


def test_procedure_named_loop_is_reached_with_run(workspace: Workspace, inside: Rooda) -> None:
    workspace.config(procedure("loop"))
    done = inside("run", "loop", "--ai-cmd", "true", "--dry-run")
    assert done.code == 0
    assert "## OBSERVE\nmy observe" in done.out
    assert "Run it with `rooda run loop`" in done.out
    assert "OODA" not in inside("loop", "PROMPT.md", "--ai-cmd", "true", "--dry-run").out


def test_procedure_named_loop_that_lacks_a_phase_is_an_error(
    workspace: Workspace, inside: Rooda
) -> None:
    workspace.config(PROCEDURE + "  loop: {act: [{content: go}]}\n")
    done = inside("config", "check")
    assert done.code == 1
    assert "the procedure 'loop' lacks observe, orient, decide" in done.err


# -- a file in place of a procedure ----------------------------------------------------------


@pytest.mark.parametrize(
    "args,words,advice",
    [
        ("PROMPT.md", "'PROMPT.md' is a file, not a procedure", "rooda loop PROMPT.md"),
        ("./PROMPT.md -n 3 -v", "'./PROMPT.md' is a file", "rooda loop ./PROMPT.md"),
        ("run PROMPT.md --dry-run", "'PROMPT.md' is a file", "rooda loop PROMPT.md"),
        ("Makefile", "'Makefile' is a file", "rooda loop Makefile"),
        ("TODO.MD", "there is no procedure and no file named 'TODO.MD'", "rooda loop TODO.MD"),
        ("'my prompt.md'", "'my prompt.md' is a file", "rooda loop 'my prompt.md'"),
    ],
)
def test_file_in_place_of_a_procedure_gets_the_command_that_runs_it(
    workspace: Workspace, inside: Rooda, args: str, words: str, advice: str
) -> None:
    for name in ("my prompt.md", "Makefile"):
        workspace.write(name, "test:\n")
    done = inside(*shlex.split(args))
    assert done.code == 1
    printed = done.out + done.err
    assert words in printed
    assert f"{advice}\n" in printed
    assert "AI command" not in done.err
    assert not (workspace.state).exists()


def test_word_that_is_no_file_gets_the_names_of_procedures(
    workspace: Workspace, inside: Rooda
) -> None:
    within(workspace, "buil")  # a folder
    refused(inside("buil"), "there is no procedure or command named 'buil'", "Did you mean 'build'")
