"""How the prompt is put together, and what is said when it can't be."""

import os
from pathlib import Path

import pytest

from rooda.prompts.compose import assemble
from rooda.prompts.parts import Context, Part, TextPart
from support.surface import PHASES, TAG, plan, planned, procedure
from support.workspace import Finished, Workspace

ROOT = os.geteuid() == 0
not_as_root = pytest.mark.skipif(ROOT, reason="root may read everything")

EXAMPLE_4 = """\
# OODA Loop Iteration

## OBSERVE
look

## ORIENT
think

## DECIDE
choose

## ACT
do
"""

EXAMPLE_5 = """\
# OODA Loop Iteration

## CONTEXT
focus on the auth module, the JWT validation is broken

## OBSERVE
look

## ORIENT
think

## DECIDE
choose

## ACT
do
"""


def four(*words: str) -> dict[str, tuple[Part, ...]]:
    return {phase: (Part(TextPart(word)),) for phase, word in zip(PHASES, words, strict=True)}


def section(prompt: str, heading: str) -> str:
    """The text below a heading, up to the next one."""
    return prompt.partition(f"\n## {heading}\n")[2].partition("\n\n## ")[0].removesuffix("\n")


def observe(workspace: Workspace, value: str) -> str:
    """The observe section of a procedure whose observe phase is `value`."""
    workspace.config(procedure(observe=value))
    return section(plan(workspace).prompt(), "OBSERVE")


# -- composition ---------------------------------------------------------------------------


def test_the_prompt_is_seed_000_example_4_to_the_letter() -> None:
    assert assemble(four("look", "think", "choose", "do")) == EXAMPLE_4


def test_the_prompt_with_context_is_seed_000_example_5_to_the_letter() -> None:
    context = Context(TextPart("focus on the auth module, the JWT validation is broken"))
    assert assemble(four("look", "think", "choose", "do"), [context]) == EXAMPLE_5


def test_phases_come_in_their_order_whatever_order_the_file_has(workspace: Workspace) -> None:
    workspace.config(
        "procedures:\n  work:\n"
        "    act: [{content: do}]\n    decide: [{content: choose}]\n"
        "    orient: [{content: think}]\n    observe: [{content: look}]\n"
    )
    assert plan(workspace).prompt() == EXAMPLE_4


def test_the_agent_gets_exactly_that_prompt_on_standard_input(workspace: Workspace) -> None:
    workspace.config(
        procedure(
            observe="[{content: look}]",
            orient="[{content: think}]",
            decide="[{content: choose}]",
            act="[{content: do}]",
        )
    )
    words = "focus on the auth module, the JWT validation is broken"
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "--context", words)
    assert done.code == 2
    assert (workspace.path / "got").read_text() == EXAMPLE_5


@pytest.mark.parametrize(
    "content,shown",
    [
        ("look", "look"),
        ("look\n", "look"),
        ("\n\nlook\n\n\n", "look"),
        ("  indented\n    more\n", "  indented\n    more"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("\ufeffwith a mark", "with a mark"),
        ("Grüße 🎉", "Grüße 🎉"),
        ("# a heading\n## another", "# a heading\n## another"),
    ],
)
def test_a_file_is_taken_as_it_is_but_for_empty_lines_at_its_ends(
    workspace: Workspace, content: str, shown: str
) -> None:
    workspace.write("look.md", content)
    workspace.config(procedure(observe="look.md"))
    prompt = plan(workspace).prompt()
    assert f"\n\n## OBSERVE\n{shown}\n\n## ORIENT\n" in prompt


def test_a_list_mixes_paths_contents_and_builtin_texts_in_order(workspace: Workspace) -> None:
    workspace.write("a.md", "from a file\n")
    workspace.write("sub/b.md", "from a bare path\n")
    text = observe(
        workspace,
        "[{path: a.md}, {content: in place}, sub/b.md, {path: 'builtin:fragments/signals.md'}]",
    )
    assert text.startswith("from a file\n\nin place\n\nfrom a bare path\n\n### How to end\n")


def test_a_builtin_text_has_its_fragments_in_place(workspace: Workspace) -> None:
    text = observe(workspace, "builtin:prompts/act_build.md")
    assert "<promise>SUCCESS</promise>" in text
    assert "@include" not in text


@pytest.mark.parametrize(
    "value,words",
    [
        ("builtin:prompts/act_buld.md", "Did you mean 'builtin:prompts/act_build.md'?"),
        ("builtin:act_build.md", "builtin:prompts/"),
        ("builtin:../../__init__.py", "builtin:prompts/"),
        ("builtin:", "builtin:prompts/"),
    ],
)
def test_an_unknown_builtin_text_is_an_error_with_advice(
    workspace: Workspace, value: str, words: str
) -> None:
    workspace.config(procedure(observe=f"'{value}'"))
    prepared = planned(workspace)
    (problem,) = prepared.all_problems()
    assert not prepared.valid
    assert f"there is no built-in prompt '{value}'" in problem.message
    assert words in problem.suggestion
    assert (problem.file, problem.line) == ("rooda-config.yml", 3)


# -- parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text,parameters,shown",
    [
        ("in ${where}", "{where: src}", "in src"),
        ("${a}${b} ${a}", "{a: 1, b: 2}", "12 1"),
        ("${a} and ${unknown}", "{a: x}", "x and ${unknown}"),
        ("$a ${a:-b} ${#a} ${} $(a) ${a }", "{a: x}", "$a ${a:-b} ${#a} ${} $(a) ${a }"),
        ("${HOME}", "{a: x}", "${HOME}"),
        ("${a}", "{a: '${b}', b: x}", "${b}"),
        ("${a}", r"{a: '\1 \g<0> $&'}", r"\1 \g<0> $&"),
        ("${a-b.c_d}", "{a-b.c_d: x}", "x"),
        ("${flag}", "{flag: true}", "true"),
        ("${n}", "{n: 014}", "014"),
        ("python ${version}", "{version: 3.10}", "python 3.10"),
        ("[${gone}]", "{gone: null}", "[]"),
    ],
)
def test_parameters_replace_their_names_alone(
    workspace: Workspace, text: str, parameters: str, shown: str
) -> None:
    workspace.write("look.md", text)
    assert observe(workspace, f"[{{path: look.md, parameters: {parameters}}}]") == shown


def test_a_parameter_holds_for_its_own_fragment_alone(workspace: Workspace) -> None:
    value = "[{content: 'one ${a}', parameters: {a: x}}, {content: 'two ${a}'}]"
    assert observe(workspace, value) == "one x\n\ntwo ${a}"


def test_without_parameters_every_dollar_stays(workspace: Workspace) -> None:
    assert observe(workspace, "[{content: 'run ${CMD:-make} in ${PWD}'}]") == (
        "run ${CMD:-make} in ${PWD}"
    )


def test_a_parameter_that_nobody_asks_for_is_warned_of(workspace: Workspace) -> None:
    workspace.config(procedure(observe="[{content: 'in ${where}', parameters: {wher: src}}]"))
    prepared = planned(workspace)
    (problem,) = prepared.all_problems()
    assert prepared.valid
    assert "'wher'" in problem.message


def test_a_content_that_its_parameters_make_empty_is_an_error(workspace: Workspace) -> None:
    workspace.config(procedure(observe="[{content: '${a}', parameters: {a: ''}}]"))
    prepared = planned(workspace)
    assert not prepared.valid
    assert "empty" in prepared.all_problems()[0].message


# -- where relative paths lead -------------------------------------------------------------


def test_paths_are_relative_to_the_file_that_declares_them(workspace: Workspace) -> None:
    workspace.write("look.md", "the wrong one")
    workspace.write("conf/look.md", "beside the config")
    workspace.write("conf/mine.yml", procedure(observe="look.md"))
    prompt = plan(workspace, config="conf/mine.yml").prompt()
    assert section(prompt, "OBSERVE") == "beside the config"


def test_paths_of_the_global_config_are_relative_to_it(workspace: Workspace) -> None:
    workspace.write("look.md", "the wrong one")
    folder = workspace.global_config(procedure("everywhere", observe="look.md")).parent
    (folder / "look.md").write_text("beside the global config")
    assert section(plan(workspace, "everywhere").prompt(), "OBSERVE") == "beside the global config"


# -- context -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the JWT check is broken",
        "first paragraph\n\nsecond paragraph\n\n- a list\n- of two",
        "  keeps its indentation",
        "${HOME} $(rm -rf /) `id` %s {0}",
        "## OBSERVE\nnot a phase",
        "a word",
        "https://example.org/issue/7",
        "-n",
        "~",
        "x" * 1_000_000,
        "long paragraphs. " * 10_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_text_is_verbatim(workspace: Workspace, text: str) -> None:
    prepared = plan(workspace, contexts=(text,))
    assert f"\n\n## CONTEXT\n{text}\n\n## OBSERVE\nlook\n" in prepared.prompt()


def test_an_existing_file_is_read_and_named(workspace: Workspace) -> None:
    workspace.write("notes/TASK.md", "fix the login\n\nand the logout\n")
    text = section(plan(workspace, contexts=("notes/TASK.md",)).prompt(), "CONTEXT")
    assert text == "Source: notes/TASK.md\n\nfix the login\n\nand the logout"


def test_several_contexts_keep_their_order(workspace: Workspace) -> None:
    workspace.write("b.md", "from b")
    workspace.write("d.md", "from d")
    contexts = ("a first", "b.md", "then c", "d.md", "a first")
    text = section(plan(workspace, contexts=contexts).prompt(), "CONTEXT")
    assert text == (
        "a first\n\nSource: b.md\n\nfrom b\n\nthen c\n\nSource: d.md\n\nfrom d\n\na first"
    )


def test_a_folder_is_text(workspace: Workspace) -> None:
    (workspace.path / "src").mkdir()
    assert section(plan(workspace, contexts=("src",)).prompt(), "CONTEXT") == "src"


def test_a_file_in_the_home_folder_may_be_written_with_a_tilde(workspace: Workspace) -> None:
    (workspace.home / "TASK.md").write_text("from home")
    done = workspace.work("true", "--dry-run", "-c", "~/TASK.md")
    assert "## CONTEXT\nSource: ~/TASK.md\n\nfrom home\n" in done.out


@pytest.mark.parametrize("value", ["notes/TASK.md", "TASK.md", "./todo", "~/x", "a.txt"])
def test_a_context_that_looks_like_a_missing_file_is_text_with_a_warning(
    workspace: Workspace, value: str
) -> None:
    prepared = planned(workspace, contexts=(value,))
    (problem,) = prepared.all_problems()
    assert prepared.valid
    assert prepared.plan is not None
    assert section(prepared.plan.prompt(), "CONTEXT") == value
    assert value in problem.message
    assert problem.severity == "warning"


@pytest.mark.parametrize(
    "value", ["fix a.py and b.py", "use and/or", "v1.2", "e.g.", "https://example.org/a.md"]
)
def test_a_context_that_reads_like_words_is_not_warned_of(workspace: Workspace, value: str) -> None:
    assert planned(workspace, contexts=(value,)).all_problems() == []


def test_bytes_of_an_argument_that_are_not_utf_8_reach_the_agent(workspace: Workspace) -> None:
    words = os.fsdecode(b"caf\xe9 \xff")
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "-c", words)
    assert done.code == 2
    assert b"## CONTEXT\ncaf\xe9 \xff\n\n## OBSERVE" in (workspace.path / "got").read_bytes()


def test_a_context_as_long_as_an_argument_may_be_reaches_the_agent(workspace: Workspace) -> None:
    words = "first paragraph\n\n" + "and so on. " * 10_000
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "-c", words)
    assert done.code == 2
    assert words in (workspace.path / "got").read_text()


def test_a_pipe_is_read_once_and_stays_for_every_iteration(workspace: Workspace) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"from a command\n")
        os.close(writer)
        prepared = plan(workspace, contexts=(f"/dev/fd/{reader}",))
    finally:
        os.close(reader)
    assert prepared.prompt() == prepared.prompt()
    assert "from a command" in section(prepared.prompt(), "CONTEXT")


@pytest.mark.parametrize("flag", ["--observe", "--context"])
def test_a_pipe_that_says_nothing_is_an_error(workspace: Workspace, flag: str) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    name = f"/dev/fd/{reader}"
    try:
        if flag == "--context":
            prepared = planned(workspace, contexts=(name,))
        else:
            prepared = planned(workspace, phases={"observe": (name,)})
    finally:
        os.close(reader)
    assert not prepared.valid
    assert "empty" in prepared.all_problems()[0].message


# -- every iteration reads anew ------------------------------------------------------------


def test_an_edit_of_prompt_or_context_takes_effect_in_the_next_iteration(
    workspace: Workspace,
) -> None:
    workspace.write("look.md", "old words")
    workspace.write("TASK.md", "old task")
    workspace.config(procedure(observe="look.md"))
    agent = workspace.agents(
        "cat > got.1; echo new words > look.md; echo new task > TASK.md", "cat > got.2"
    )
    assert workspace.work(agent, "-n", "2", "-c", "TASK.md").code == 2
    first, second = ((workspace.path / name).read_text() for name in ("got.1", "got.2"))
    assert (section(first, "OBSERVE"), section(second, "OBSERVE")) == ("old words", "new words")
    assert "old task" in section(first, "CONTEXT")
    assert section(second, "CONTEXT") == "Source: TASK.md\n\nnew task"


@pytest.mark.parametrize(
    "change,words",
    [
        ("rm look.md", "look.md does not exist"),
        (": > look.md", "look.md is empty"),
        ("rm look.md; mkdir look.md", "look.md is a folder"),
    ],
)
def test_a_prompt_file_lost_in_mid_run_aborts_at_once(
    workspace: Workspace, change: str, words: str
) -> None:
    workspace.write("look.md", "words")
    workspace.config(procedure(observe="look.md"))
    done = workspace.work(workspace.agents(change), "-n", "5", "--failure-threshold", "9")
    assert done.code == 1
    assert workspace.starts == 1
    assert words in done.err
    assert "Iteration timing: min=" in done.err


def test_a_context_file_lost_in_mid_run_aborts_at_once(workspace: Workspace) -> None:
    workspace.write("TASK.md", "words")
    done = workspace.work(workspace.agents("rm TASK.md"), "-n", "5", "-c", "TASK.md")
    assert (done.code, workspace.starts) == (1, 1)
    assert "TASK.md does not exist" in done.err


# -- files that can't be used --------------------------------------------------------------


def refused(workspace: Workspace, *args: str) -> Finished:
    """A run that may not start: exit 1, one message, no agent, no log line."""
    done = workspace.work(workspace.agent("touch started"), *args)
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("Error:") == 1, done.err
    assert "Traceback" not in done.err
    assert done.log == []
    assert not (workspace.path / "started").exists()
    return done


def make_bad(kind: str, path: Path) -> None:
    match kind:
        case "folder":
            path.mkdir()
        case "empty":
            path.touch()
        case "blank":
            path.write_text(" \n\t\r\n")
        case "not UTF-8":
            path.write_bytes(b"caf\xe9")
        case "FIFO":
            os.mkfifo(path)
        case "unreadable":
            path.write_text("words")
            path.chmod(0)
        case "dangling link":
            path.symlink_to("nowhere")
        case "link to itself":
            path.symlink_to(path.name)


@pytest.mark.parametrize(
    "kind,words",
    [
        ("missing", "look.md does not exist"),
        ("folder", "look.md is a folder"),
        ("empty", "look.md is empty"),
        ("blank", "look.md is empty"),
        ("not UTF-8", "look.md is not UTF-8 text (byte 3)"),
        ("FIFO", "look.md is not a regular file"),
        ("dangling link", "look.md does not exist"),
        ("link to itself", "look.md"),
        pytest.param("unreadable", "look.md can't be read: Permission denied", marks=not_as_root),
    ],
)
def test_a_prompt_file_that_cant_be_used_is_one_clear_message(
    workspace: Workspace, kind: str, words: str
) -> None:
    make_bad(kind, workspace.path / "look.md")
    workspace.config(procedure(observe="look.md"))
    done = refused(workspace)
    first, advice = done.err.splitlines()
    assert first.startswith("Error: rooda-config.yml:3: procedures.work.observe: ")
    assert words in first
    assert advice.startswith("  ")


@pytest.mark.parametrize(
    "name,words",
    [("a" * 300 + ".md", "File name too long"), (r'"a\0b.md"', "does not exist")],
    ids=["too long", "NUL"],
)
def test_a_name_that_no_file_can_have_is_one_problem(
    workspace: Workspace, name: str, words: str
) -> None:
    workspace.config(procedure(observe=name))
    (problem,) = planned(workspace).all_problems()
    assert words in problem.message


@pytest.mark.parametrize(
    "kind,words",
    [
        ("not UTF-8", "bad.md is not UTF-8 text"),
        pytest.param("unreadable", "bad.md can't be read", marks=not_as_root),
    ],
)
@pytest.mark.parametrize("flag", ["--context", "--act"])
def test_a_file_given_by_flag_that_cant_be_used_is_one_clear_message(
    workspace: Workspace, flag: str, kind: str, words: str
) -> None:
    make_bad(kind, workspace.path / "bad.md")
    assert words in refused(workspace, flag, "bad.md").err


def test_every_bad_file_is_reported_at_once(workspace: Workspace) -> None:
    workspace.write("empty.md", "")
    workspace.config(procedure(observe="gone.md", orient="empty.md", act="[gone.md, also.md]"))
    messages = [problem.message for problem in planned(workspace).all_problems()]
    assert messages == [
        "gone.md does not exist",
        "empty.md is empty",
        "gone.md does not exist",
        "also.md does not exist",
    ]


# -- warned of at the start ----------------------------------------------------------------


def test_a_prompt_that_never_names_the_signal_is_warned_of(workspace: Workspace) -> None:
    workspace.config(procedure(**dict.fromkeys(PHASES, "[{content: words}]")))
    done = workspace.work(workspace.agent("exit 0"), "-n", "1")
    assert done.code == 2
    assert f"the prompt never names {TAG}" in done.err


def test_one_that_names_it_in_its_context_is_not(workspace: Workspace) -> None:
    workspace.config(procedure(**dict.fromkeys(PHASES, "[{content: words}]")))
    assert planned(workspace, contexts=(f"say {TAG} at the end",)).all_problems() == []
