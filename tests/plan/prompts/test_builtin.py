"""The built-in procedures: their list, their prompts, and properties that all of them share."""

import re

import pytest

from rooda.front.ralph.test_command import find_test_command
from rooda.loop.stages.promises import Promises, Prompt, Words, scan
from rooda.plan.locate import read_builtin
from rooda.plan.prompts import builtin
from rooda.plan.prompts.compose import ENDINGS, FILE_ENDING
from rooda.plan.prompts.parts import BuiltinPart
from support.surface import PHASES, dry, plan, planned
from support.tables import each_row
from support.workspace import Workspace

MAX_ITERATIONS = {
    "bootstrap": 1,
    "agents-sync": 3,
    "build": 5,
    "publish-plan": 1,
    "audit-spec": 1,
    "audit-impl": 1,
    "audit-agents": 1,
    "audit-spec-to-impl": 1,
    "audit-impl-to-spec": 1,
    "draft-plan-spec-feat": 5,
    "draft-plan-spec-fix": 5,
    "draft-plan-spec-refactor": 5,
    "draft-plan-spec-chore": 3,
    "draft-plan-impl-feat": 5,
    "draft-plan-impl-fix": 5,
    "draft-plan-impl-refactor": 5,
    "draft-plan-impl-chore": 3,
}
WORDS = Words("SUCCESS", "FAILURE")
NOTHING = Promises()
TAG = re.compile(r"<promise>[A-Z]+</promise>")

each = each_row("name", MAX_ITERATIONS)


def phase_texts(name: str) -> dict[str, str]:
    """Return the text of each phase of a built-in procedure."""
    phases = read_builtin().procedures[name].phases
    return {phase: "\n\n".join(p.read() for p in phases[phase].parts) for phase in phases}


def lines(name: str) -> list[str]:
    return "\n".join(phase_texts(name).values()).splitlines()


def used_texts() -> set[str]:
    procedures = read_builtin().procedures.values()
    sources = [p.source for q in procedures for v in q.phases.values() for p in v.parts]
    return {source.resource for source in sources if isinstance(source, BuiltinPart)}


def test_seventeen_built_in_procedures_exist_in_order() -> None:
    assert list(read_builtin().procedures) == list(MAX_ITERATIONS)


@each
def test_procedure_has_its_default_max_iterations(workspace: Workspace, name: str) -> None:
    assert plan(workspace, name).values.iterations.maximum == MAX_ITERATIONS[name]


@each
def test_procedure_has_a_short_description(name: str) -> None:
    description = read_builtin().procedures[name].description
    assert description
    assert len(description) <= 80
    assert not description.endswith(".")


@each
def test_prompts_are_built_in_files_named_by_phase(name: str) -> None:
    phases = read_builtin().procedures[name].phases
    assert tuple(phases) == PHASES
    for phase, value in phases.items():
        for part in value.parts:
            assert re.fullmatch(rf"builtin:prompts/{phase}_[a-z_]+\.md", part.source.name)
            assert part.read()


def test_prompt_files_of_build_and_bootstrap_have_their_documented_names() -> None:
    procedures = read_builtin().procedures
    names = {
        name: [procedures[name].phases[phase].parts[0].source.name for phase in PHASES]
        for name in ("build", "bootstrap")
    }
    assert names == {
        "build": [
            "builtin:prompts/observe_plan_specs_impl.md",
            "builtin:prompts/orient_build.md",
            "builtin:prompts/decide_build.md",
            "builtin:prompts/act_build.md",
        ],
        "bootstrap": [f"builtin:prompts/{phase}_bootstrap.md" for phase in PHASES],
    }


def test_every_built_in_text_is_used() -> None:
    included = {
        fragment
        for name in used_texts()
        for fragment in builtin.names()
        if fragment.startswith("fragments/") and builtin.read(fragment) in builtin.read(name)
    }
    added = {FILE_ENDING.resource, *ENDINGS.values()}
    assert used_texts() | included | added == builtin.names()


@each
def test_prompts_include_their_fragments(name: str) -> None:
    text = "\n".join(lines(name))
    assert "@include" not in text
    assert "${" not in text
    assert builtin.read("fragments/unattended.md") in text


@each
def test_prompt_asks_the_agent_to_announce_each_phase(name: str) -> None:
    first = phase_texts(name)["observe"]
    assert first.startswith(builtin.read("fragments/announce.md"))
    for phase in PHASES:
        assert f"OODA: {phase.upper()}" in first


@each
def test_prompt_ends_with_the_signal_instructions(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt()
    assert prompt.endswith(f"\n\n{builtin.read('fragments/signals.md')}\n")
    assert prompt.count("### How to end") == 1


def test_signal_instructions_explain_both_signals() -> None:
    text = builtin.read("fragments/signals.md")
    assert set(TAG.findall(text)) == {
        "<promise>SUCCESS</promise>",
        "<promise>FAILURE</promise>",
    }
    for words in ("Done", "Blocked", "More to do", "last line", "neither"):
        assert words in text


@each
def test_act_phase_defines_done(name: str) -> None:
    assert "Done means" in phase_texts(name)["act"]


@each
def test_no_prompt_line_consists_of_a_tag_alone(name: str) -> None:
    tagged = [line for line in lines(name) if TAG.search(line)]
    assert tagged
    for line in tagged:
        assert len(re.findall(r"[A-Za-z]{2,}", TAG.sub("", line))) >= 3, line


@each
def test_prompt_has_no_other_headings_at_the_level_of_the_phases(name: str) -> None:
    assert [line for line in lines(name) if re.match(r"#{1,2}(?!#)", line)] == []


@each
def test_prompt_size_and_line_length_are_limited(workspace: Workspace, name: str) -> None:
    size = len(plan(workspace, name).prompt())
    assert 2_000 <= size <= 6_000
    assert max(map(len, lines(name))) <= 120


@each
def test_prompt_mentions_the_agents_file(name: str) -> None:
    assert "`AGENTS.md`" in "\n".join(lines(name))


@each_row("name", [name for name in MAX_ITERATIONS if name.startswith("audit-")])
def test_audit_writes_only_its_report(name: str) -> None:
    act = phase_texts(name)["act"]
    assert f"AUDIT-{name}.md" in act
    assert builtin.read("fragments/report_only.md") in act


@each_row("name", [name for name in MAX_ITERATIONS if name.startswith("draft-plan-")])
def test_draft_reads_the_task_and_writes_the_plan(name: str) -> None:
    text = "\n".join(lines(name))
    assert "`TASK.md`" in text
    assert "`PLAN.md`" in phase_texts(name)["act"]


def test_publish_plan_reads_the_draft_plan() -> None:
    assert "`PLAN.md`" in phase_texts("publish-plan")["observe"]


@each
def test_prompt_advises_subagents_and_a_small_context(name: str) -> None:
    text = " ".join(phase_texts(name)["observe"].split())
    assert "Keep your context small" in text
    assert "If you can start subagents" in text


def test_build_works_on_an_uncommitted_plan_and_keeps_its_files_short() -> None:
    text = " ".join(" ".join(phase_texts("build").values()).split())
    for words in (
        "A new or changed `PLAN.md` is the draft you work from: change it, and commit it",
        "move tasks done earlier from `PLAN.md` to `PLAN-DONE.md`",
        "what was done and why this way",
    ):
        assert words in text


@pytest.mark.parametrize("name", ["bootstrap", "agents-sync"])
def test_agents_file_names_the_test_command_where_ralph_looks_for_it(name: str) -> None:
    form = phase_texts(name)["act"]
    (example,) = re.findall(r"``(- Test: .*?) ``", form)
    assert find_test_command(f"# Project\n\n{example}\n- Single test: `pytest -k`\n") == "make test"


# -- through the dry run -------------------------------------------------------------------


@each
def test_dry_run_of_each_procedure_passes_without_warnings(workspace: Workspace, name: str) -> None:
    prepared = planned(workspace, name)
    report = dry(prepared, name, "--dry-run", "--ai-cmd", "true")
    assert prepared.all_problems() == []
    assert report.startswith(f"=== Dry-Run: {name} ===\n")
    assert report.count("  ✓ Prompt file exists: builtin:prompts/") == 4
    assert report.endswith(f"\nDry-run complete. Ready to execute: rooda {name} --ai-cmd true\n")


def test_dry_run_of_audit_spec_through_the_command(workspace: Workspace) -> None:
    done = workspace.rooda("audit-spec", "--dry-run", "--ai-cmd", "true")
    assert (done.code, done.err) == (0, "")
    assert "  Max Iterations: 1 (built-in)\n" in done.out
    assert "<promise>SUCCESS</promise>" in done.out


# -- agents that echo the prompt -----------------------------------------------------------


def echoes(prompt: str) -> dict[str, str]:
    """Return the prompt in the forms in which agents echo it."""
    rows = prompt.splitlines()
    return {
        "unchanged": prompt,
        "quoted": "\n".join(f"> {row}" for row in rows),
        "indented": "\n".join(f"    {row}" for row in rows),
        "in a box": "\n".join(f"│ {row} │" for row in rows),
        "numbered": "\n".join(f"{n:>4}: {row}" for n, row in enumerate(rows, 1)),
        "colored": "\n".join(f"\x1b[2m{row}\x1b[0m" for row in rows),
        "with carriage returns": "\r\n".join(rows),
        "only the lines with tags": "\n\n".join(row for row in rows if TAG.search(row)),
        "twice": prompt * 2,
    }


@each
def test_echoed_prompt_is_not_a_signal(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt()
    prepared = Prompt(prompt.encode())
    found = {way: scan(output.encode(), WORDS, prepared) for way, output in echoes(prompt).items()}
    assert found == dict.fromkeys(found, NOTHING)


@each
@pytest.mark.parametrize("word", ["SUCCESS", "FAILURE"])
def test_signal_after_an_echoed_prompt_counts(workspace: Workspace, name: str, word: str) -> None:
    prompt = plan(workspace, name).prompt()
    output = f"{prompt}Summary: all there\n\n<promise>{word}</promise>\n"
    found = scan(output.encode(), WORDS, Prompt(prompt.encode()))
    assert (found.success, found.failure) == (word == "SUCCESS", word == "FAILURE")


@each
def test_truncated_end_of_an_echoed_prompt_is_not_a_signal(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt().encode()
    prepared = Prompt(prompt)
    start = prompt.index(b"### How to end")
    signaled_at = [
        at
        for at in range(start, len(prompt), 3)
        if scan(prompt[at:], WORDS, prepared, truncated=True) != NOTHING
    ]
    # If only the bare tag is left of a line, it cannot be distinguished from the agent's signal.
    bare = [at for at in signaled_at if not prompt[at:].lstrip(b" `").startswith(b"<promise>")]
    assert bare == []


@pytest.mark.real
def test_agent_that_echoes_a_built_in_prompt_reaches_max_iterations(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--ai-cmd", "cat", "-n", "2")
    assert done.code == 2
    assert "Reached max iterations: 2" in done.err
