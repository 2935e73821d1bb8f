"""The built-in procedures, as appendix A of the contract lists them, and what all of them owe."""

import re

import pytest

from rooda.config.locate import read_builtin
from rooda.loop.promises import Promises, Prompt, Words, scan
from rooda.prompts import builtin
from rooda.prompts.parts import BuiltinPart
from support.surface import PHASES, dry, plan, planned
from support.workspace import Workspace

APPENDIX_A = {
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

each = pytest.mark.parametrize("name", APPENDIX_A)


def phase_texts(name: str) -> dict[str, str]:
    """What each phase of a built-in procedure says."""
    phases = read_builtin().procedures[name].phases
    return {phase: "\n\n".join(p.read() for p in phases[phase].parts) for phase in phases}


def lines(name: str) -> list[str]:
    return "\n".join(phase_texts(name).values()).splitlines()


def used_texts() -> set[str]:
    procedures = read_builtin().procedures.values()
    sources = [p.source for q in procedures for v in q.phases.values() for p in v.parts]
    return {source.resource for source in sources if isinstance(source, BuiltinPart)}


def test_there_are_the_seventeen_of_appendix_a() -> None:
    assert list(read_builtin().procedures) == list(APPENDIX_A)


@each
def test_it_has_its_default_of_iterations(workspace: Workspace, name: str) -> None:
    assert plan(workspace, name).values.iterations.maximum == APPENDIX_A[name]


@each
def test_it_has_a_description_for_the_list(name: str) -> None:
    description = read_builtin().procedures[name].description
    assert description
    assert len(description) <= 80
    assert not description.endswith(".")


@each
def test_its_prompts_are_built_in_files_named_by_phase(name: str) -> None:
    phases = read_builtin().procedures[name].phases
    assert tuple(phases) == PHASES
    for phase, value in phases.items():
        for part in value.parts:
            assert re.fullmatch(rf"builtin:prompts/{phase}_[a-z_]+\.md", part.source.name)
            assert part.read()


def test_seed_000_names_the_files_of_build_and_bootstrap() -> None:
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


def test_no_built_in_text_lies_about_unused() -> None:
    included = {
        fragment
        for name in used_texts()
        for fragment in builtin.names()
        if fragment.startswith("fragments/") and builtin.read(fragment) in builtin.read(name)
    }
    assert used_texts() | included == builtin.names()


@each
def test_its_fragments_are_in_place(name: str) -> None:
    text = "\n".join(lines(name))
    assert "@include" not in text
    assert "${" not in text
    assert builtin.read("fragments/unattended.md") in text


@each
def test_it_asks_for_each_phase_to_be_announced_as_it_is_entered(name: str) -> None:
    first = phase_texts(name)["observe"]
    assert first.startswith(builtin.read("fragments/announce.md"))
    for phase in PHASES:
        assert f"OODA: {phase.upper()}" in first


@each
def test_it_ends_with_how_to_signal(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt()
    assert prompt.endswith(f"\n\n{builtin.read('fragments/signals.md')}\n")
    assert prompt.count("### How to end") == 1


def test_the_signal_instructions_say_when_to_say_what() -> None:
    text = builtin.read("fragments/signals.md")
    assert set(TAG.findall(text)) == {
        "<promise>SUCCESS</promise>",
        "<promise>FAILURE</promise>",
    }
    for words in ("Done", "Blocked", "More to do", "last line", "neither"):
        assert words in text


@each
def test_it_says_what_done_means(name: str) -> None:
    assert "Done means" in phase_texts(name)["act"]


@each
def test_no_line_of_it_is_a_tag_alone(name: str) -> None:
    tagged = [line for line in lines(name) if TAG.search(line)]
    assert tagged
    for line in tagged:
        assert len(re.findall(r"[A-Za-z]{2,}", TAG.sub("", line))) >= 3, line


@each
def test_it_has_no_headings_that_compete_with_the_phases(name: str) -> None:
    assert [line for line in lines(name) if re.match(r"#{1,2}(?!#)", line)] == []


@each
def test_it_is_short_and_fits_a_screen(workspace: Workspace, name: str) -> None:
    size = len(plan(workspace, name).prompt())
    assert 2_000 <= size <= 6_000
    assert max(map(len, lines(name))) <= 120


@each
def test_it_works_with_an_agents_file_or_without(name: str) -> None:
    assert "`AGENTS.md`" in "\n".join(lines(name))


@pytest.mark.parametrize("name", [name for name in APPENDIX_A if name.startswith("audit-")])
def test_an_audit_writes_its_report_and_nothing_else(name: str) -> None:
    act = phase_texts(name)["act"]
    assert f"AUDIT-{name}.md" in act
    assert builtin.read("fragments/report_only.md") in act


@pytest.mark.parametrize("name", [name for name in APPENDIX_A if name.startswith("draft-plan-")])
def test_a_draft_reads_the_task_and_writes_the_plan(name: str) -> None:
    text = "\n".join(lines(name))
    assert "`TASK.md`" in text
    assert "`PLAN.md`" in phase_texts(name)["act"]


def test_publish_plan_reads_the_draft_plan() -> None:
    assert "`PLAN.md`" in phase_texts("publish-plan")["observe"]


# -- through the dry run -------------------------------------------------------------------


@each
def test_its_dry_run_passes_every_check_without_a_warning(workspace: Workspace, name: str) -> None:
    prepared = planned(workspace, name)
    report = dry(prepared, name, "--dry-run", "--ai-cmd", "true")
    assert prepared.all_problems() == []
    assert report.startswith(f"=== Dry-Run: {name} ===\n")
    assert report.count("  ✓ Prompt file exists: builtin:prompts/") == 4
    assert report.endswith(f"\nDry-run complete. Ready to execute: rooda {name} --ai-cmd true\n")


def test_one_of_them_through_the_command(workspace: Workspace) -> None:
    done = workspace.rooda("audit-spec", "--dry-run", "--ai-cmd", "true")
    assert (done.code, done.err) == (0, "")
    assert "  Max Iterations: 1 (built-in)\n" in done.out
    assert "<promise>SUCCESS</promise>" in done.out


# -- an agent that prints the prompt back --------------------------------------------------


def echoes(prompt: str) -> dict[str, str]:
    """Ways in which agents repeat what they were told."""
    rows = prompt.splitlines()
    return {
        "as it is": prompt,
        "quoted": "\n".join(f"> {row}" for row in rows),
        "indented": "\n".join(f"    {row}" for row in rows),
        "in a box": "\n".join(f"│ {row} │" for row in rows),
        "numbered": "\n".join(f"{n:>4}: {row}" for n, row in enumerate(rows, 1)),
        "coloured": "\n".join(f"\x1b[2m{row}\x1b[0m" for row in rows),
        "with carriage returns": "\r\n".join(rows),
        "its tagged lines alone": "\n\n".join(row for row in rows if TAG.search(row)),
        "twice": prompt * 2,
    }


@each
def test_the_prompt_printed_back_is_no_signal(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt()
    prepared = Prompt(prompt.encode())
    found = {way: scan(output.encode(), WORDS, prepared) for way, output in echoes(prompt).items()}
    assert found == dict.fromkeys(found, NOTHING)


@each
@pytest.mark.parametrize("word", ["SUCCESS", "FAILURE"])
def test_a_signal_after_it_counts(workspace: Workspace, name: str, word: str) -> None:
    prompt = plan(workspace, name).prompt()
    output = f"{prompt}Summary: all there\n\n<promise>{word}</promise>\n"
    found = scan(output.encode(), WORDS, Prompt(prompt.encode()))
    assert (found.success, found.failure) == (word == "SUCCESS", word == "FAILURE")


@each
def test_the_end_of_it_cut_anywhere_is_no_signal(workspace: Workspace, name: str) -> None:
    prompt = plan(workspace, name).prompt().encode()
    prepared = Prompt(prompt)
    start = prompt.index(b"### How to end")
    said = [
        at
        for at in range(start, len(prompt), 3)
        if scan(prompt[at:], WORDS, prepared, truncated=True) != NOTHING
    ]
    # Where nothing but the bare tag is left of a line, nobody can tell it from the agent's own.
    bare = [at for at in said if not prompt[at:].lstrip(b" `").startswith(b"<promise>")]
    assert bare == []


def test_an_agent_that_echoes_a_built_in_prompt_goes_on(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--ai-cmd", "cat", "-n", "2")
    assert done.code == 2
    assert "Reached max iterations: 2" in done.err
