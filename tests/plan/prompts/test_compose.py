"""Composition of the prompt, and the errors of parts that cannot be read."""

import os
from pathlib import Path

import pytest

from rooda.plan.prompts.compose import assemble
from rooda.plan.prompts.parts import Context, Part, TextPart
from support.finished import Finished
from support.surface import PHASES, TAG, plan, planned, procedure
from support.workspace import Workspace

ROOT = os.geteuid() == 0
not_as_root = pytest.mark.skipif(ROOT, reason="root may read everything")

PLAIN_PROMPT = """\
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

PROMPT_WITH_CONTEXT = """\
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


def four_phases(*words: str) -> dict[str, tuple[Part, ...]]:
    return {phase: (Part(TextPart(word)),) for phase, word in zip(PHASES, words, strict=True)}


def section(prompt: str, heading: str) -> str:
    """Return the text below a heading, up to the next heading."""
    return prompt.partition(f"\n## {heading}\n")[2].partition("\n\n## ")[0].removesuffix("\n")


def observe(workspace: Workspace, value: str) -> str:
    """Return the observe section for a procedure with `value` as its observe phase."""
    workspace.config(procedure(observe=value))
    return section(plan(workspace).prompt(), "OBSERVE")


# -- composition ---------------------------------------------------------------------------


def test_prompt_has_a_title_and_one_section_per_phase() -> None:
    assert assemble(four_phases("look", "think", "choose", "do")) == PLAIN_PROMPT


def test_context_section_comes_before_the_phases() -> None:
    context = Context(TextPart("focus on the auth module, the JWT validation is broken"))
    assert assemble(four_phases("look", "think", "choose", "do"), [context]) == PROMPT_WITH_CONTEXT


def test_phases_have_a_fixed_order_independent_of_the_file(workspace: Workspace) -> None:
    workspace.config(
        "procedures:\n  work:\n"
        "    act: [{content: do}]\n    decide: [{content: choose}]\n"
        "    orient: [{content: think}]\n    observe: [{content: look}]\n"
    )
    assert plan(workspace).prompt() == PLAIN_PROMPT


@pytest.mark.real
def test_agent_gets_exactly_the_composed_prompt_on_stdin(workspace: Workspace) -> None:
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
    assert (workspace.path / "got").read_text() == PROMPT_WITH_CONTEXT


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
def test_file_is_used_unchanged_except_for_empty_lines_at_its_ends(
    workspace: Workspace, content: str, shown: str
) -> None:
    workspace.write("look.md", content)
    workspace.config(procedure(observe="look.md"))
    prompt = plan(workspace).prompt()
    assert f"\n\n## OBSERVE\n{shown}\n\n## ORIENT\n" in prompt


def test_list_of_paths_contents_and_builtin_texts_keeps_its_order(workspace: Workspace) -> None:
    workspace.write("a.md", "from a file\n")
    workspace.write("sub/b.md", "from a bare path\n")
    text = observe(
        workspace,
        "[{path: a.md}, {content: in place}, sub/b.md, {path: 'builtin:fragments/signals.md'}]",
    )
    assert text.startswith("from a file\n\nin place\n\nfrom a bare path\n\n### How to end\n")


def test_builtin_text_includes_its_fragments(workspace: Workspace) -> None:
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
def test_unknown_builtin_text_is_an_error_with_advice(
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
def test_only_known_parameters_are_replaced(
    workspace: Workspace, text: str, parameters: str, shown: str
) -> None:
    workspace.write("look.md", text)
    assert observe(workspace, f"[{{path: look.md, parameters: {parameters}}}]") == shown


def test_parameters_apply_only_to_their_own_part(workspace: Workspace) -> None:
    value = "[{content: 'one ${a}', parameters: {a: x}}, {content: 'two ${a}'}]"
    assert observe(workspace, value) == "one x\n\ntwo ${a}"


def test_text_without_parameters_keeps_every_dollar(workspace: Workspace) -> None:
    assert observe(workspace, "[{content: 'run ${CMD:-make} in ${PWD}'}]") == (
        "run ${CMD:-make} in ${PWD}"
    )


def test_unused_parameter_is_a_warning(workspace: Workspace) -> None:
    workspace.config(procedure(observe="[{content: 'in ${where}', parameters: {wher: src}}]"))
    prepared = planned(workspace)
    (problem,) = prepared.all_problems()
    assert prepared.valid
    assert "'wher'" in problem.message


def test_content_that_is_empty_after_replacement_is_an_error(workspace: Workspace) -> None:
    workspace.config(procedure(observe="[{content: '${a}', parameters: {a: ''}}]"))
    prepared = planned(workspace)
    assert not prepared.valid
    assert "empty" in prepared.all_problems()[0].message


# -- relative paths ------------------------------------------------------------------------


def test_paths_are_relative_to_the_config_file(workspace: Workspace) -> None:
    workspace.write("look.md", "the wrong one")
    workspace.write("conf/look.md", "beside the config")
    workspace.write("conf/mine.yml", procedure(observe="look.md"))
    prompt = plan(workspace, config="conf/mine.yml").prompt()
    assert section(prompt, "OBSERVE") == "beside the config"


def test_paths_in_the_global_config_are_relative_to_its_folder(workspace: Workspace) -> None:
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
def test_context_text_is_inserted_verbatim(workspace: Workspace, text: str) -> None:
    prepared = plan(workspace, contexts=(text,))
    assert f"\n\n## CONTEXT\n{text}\n\n## OBSERVE\nlook\n" in prepared.prompt()


def test_context_file_is_inserted_with_a_source_line(workspace: Workspace) -> None:
    workspace.write("notes/TASK.md", "fix the login\n\nand the logout\n")
    text = section(plan(workspace, contexts=("notes/TASK.md",)).prompt(), "CONTEXT")
    assert text == "Source: notes/TASK.md\n\nfix the login\n\nand the logout"


def test_contexts_keep_their_order(workspace: Workspace) -> None:
    workspace.write("b.md", "from b")
    workspace.write("d.md", "from d")
    contexts = ("a first", "b.md", "then c", "d.md", "a first")
    text = section(plan(workspace, contexts=contexts).prompt(), "CONTEXT")
    assert text == (
        "a first\n\nSource: b.md\n\nfrom b\n\nthen c\n\nSource: d.md\n\nfrom d\n\na first"
    )


def test_context_that_names_a_folder_is_text(workspace: Workspace) -> None:
    (workspace.path / "src").mkdir()
    assert section(plan(workspace, contexts=("src",)).prompt(), "CONTEXT") == "src"


def test_context_file_in_the_home_folder_can_start_with_a_tilde(workspace: Workspace) -> None:
    (workspace.home / "TASK.md").write_text("from home")
    done = workspace.work("true", "--dry-run", "-c", "~/TASK.md")
    assert "## CONTEXT\nSource: ~/TASK.md\n\nfrom home\n" in done.out


@pytest.mark.parametrize("value", ["notes/TASK.md", "TASK.md", "./todo", "~/x", "a.txt"])
def test_context_that_looks_like_a_missing_file_is_text_with_a_warning(
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
def test_context_that_looks_like_prose_gives_no_warning(workspace: Workspace, value: str) -> None:
    assert planned(workspace, contexts=(value,)).all_problems() == []


@pytest.mark.real
def test_invalid_utf8_in_an_argument_reaches_the_agent(workspace: Workspace) -> None:
    words = os.fsdecode(b"caf\xe9 \xff")
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "-c", words)
    assert done.code == 2
    assert b"## CONTEXT\ncaf\xe9 \xff\n\n## OBSERVE" in (workspace.path / "got").read_bytes()


@pytest.mark.real
def test_long_context_argument_reaches_the_agent(workspace: Workspace) -> None:
    words = "first paragraph\n\n" + "and so on. " * 10_000
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "-c", words)
    assert done.code == 2
    assert words in (workspace.path / "got").read_text()


def test_pipe_is_read_once_and_used_in_every_iteration(workspace: Workspace) -> None:
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
def test_empty_pipe_is_an_error(workspace: Workspace, flag: str) -> None:
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


# -- every iteration rereads its files -----------------------------------------------------


@pytest.mark.real
def test_edited_prompt_and_context_files_apply_to_the_next_iteration(
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


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "change,words",
    [
        ("rm look.md", "look.md does not exist"),
        (": > look.md", "look.md is empty"),
        ("rm look.md; mkdir look.md", "look.md is a folder"),
    ],
)
def test_prompt_file_that_becomes_unusable_aborts_the_run(
    workspace: Workspace, change: str, words: str
) -> None:
    workspace.write("look.md", "words")
    workspace.config(procedure(observe="look.md"))
    done = workspace.work(workspace.agents(change), "-n", "5", "--failure-threshold", "9")
    assert done.code == 1
    assert workspace.starts == 1
    assert words in done.err
    assert "Iteration timing: min=" in done.err


@pytest.mark.real
def test_context_file_that_disappears_aborts_the_run(workspace: Workspace) -> None:
    workspace.write("TASK.md", "words")
    done = workspace.work(workspace.agents("rm TASK.md"), "-n", "5", "-c", "TASK.md")
    assert (done.code, workspace.starts) == (1, 1)
    assert "TASK.md does not exist" in done.err


# -- unusable files ------------------------------------------------------------------------


def refused(workspace: Workspace, *args: str) -> Finished:
    """Assert that the run does not start: exit code 1, one message, no agent, no log line."""
    done = workspace.work(workspace.agent("touch started"), *args)
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("Error:") == 1, done.err
    assert "Traceback" not in done.err
    assert done.log == []
    assert not (workspace.path / "started").exists()
    return done


def make_unusable(kind: str, path: Path) -> None:
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


def test_pipe_in_the_folder_is_refused_as_context_at_once(workspace: Workspace) -> None:
    """An agent can put one in the place of a file: a resumed run would wait for it forever."""
    os.mkfifo(workspace.path / "notes.md")
    workspace.config(procedure(observe="look.md"))
    workspace.write("look.md", "Look.\n")
    done = refused(workspace, "--context", "notes.md")
    assert "notes.md is not a regular file" in done.err


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
def test_unusable_prompt_file_gives_one_error_with_advice(
    workspace: Workspace, kind: str, words: str
) -> None:
    make_unusable(kind, workspace.path / "look.md")
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
def test_impossible_file_name_is_one_problem(workspace: Workspace, name: str, words: str) -> None:
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
def test_unusable_file_of_a_flag_gives_one_error(
    workspace: Workspace, flag: str, kind: str, words: str
) -> None:
    make_unusable(kind, workspace.path / "bad.md")
    assert words in refused(workspace, flag, "bad.md").err


def test_all_unusable_files_are_reported_together(workspace: Workspace) -> None:
    workspace.write("empty.md", "")
    workspace.config(procedure(observe="gone.md", orient="empty.md", act="[gone.md, also.md]"))
    messages = [problem.message for problem in planned(workspace).all_problems()]
    assert messages == [
        "gone.md does not exist",
        "empty.md is empty",
        "gone.md does not exist",
        "also.md does not exist",
    ]


# -- warnings at the start -----------------------------------------------------------------


@pytest.mark.real
def test_prompt_without_the_success_signal_gives_a_warning(workspace: Workspace) -> None:
    workspace.config(procedure(**dict.fromkeys(PHASES, "[{content: words}]")))
    done = workspace.work(workspace.agent("exit 0"), "-n", "1")
    assert done.code == 2
    assert f"the prompt never names {TAG}" in done.err


def test_success_signal_in_the_context_prevents_the_warning(workspace: Workspace) -> None:
    workspace.config(procedure(**dict.fromkeys(PHASES, "[{content: words}]")))
    assert planned(workspace, contexts=(f"say {TAG} at the end",)).all_problems() == []
