"""Properties that every adapter in the registry has to fulfill."""

import importlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from rooda.loop.outcome import Verdict, judge
from rooda.loop.stages.promises import Promises
from rooda.plan.layers import Alias
from rooda.plan.locate import read_builtin
from rooda.world.agents.adapter import Adapter
from rooda.world.agents.agent_program import program_name, program_of
from rooda.world.agents.agent_report import Form, Usage
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.output_reader import OutputReader
from rooda.world.agents.registry import ADAPTERS, COMMANDS, KNOWN, TEXT
from rooda.world.process.exits import Exited
from support.tables import each_row
from support.transcripts import PROJECT, Piece, ReadOutput, play, read_output
from support.voices import MODEL, SESSION, VOICES, Object, Voice, line

ALIASES = {
    "claude": "claude -p --dangerously-skip-permissions --output-format stream-json --verbose",
    "codex": "codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json -",
    "gemini": "gemini --yolo --skip-trust -o stream-json",
    "opencode": "opencode run --auto --format json",
    "qwen": "qwen --yolo -o stream-json",
    "copilot": "copilot --allow-all --output-format json",
    "cursor-agent": "cursor-agent -p -f --output-format stream-json",
    "kiro-cli": "kiro-cli chat --no-interactive --trust-all-tools",
}
SUCCESS = "<promise>SUCCESS</promise>"

each_adapter = each_row("adapter", ADAPTERS.values(), ids=ADAPTERS)
each_known = each_row("adapter", KNOWN.values(), ids=KNOWN)
each_voice = each_row("voice", VOICES, ids=[voice.name for voice in VOICES])


def printed(*events: Sequence[Object]) -> bytes:
    return b"".join(line(event) for several in events for event in several)


def read_events(voice: Voice, *events: Sequence[Object], code: int = 0) -> ReadOutput:
    """Return what the reader makes of these events, each fed as a separate piece."""
    pieces: list[Piece] = [("stdout", line(event)) for several in events for event in several]
    return read_output(voice.command, pieces, Exited(code))


# -- the registry ----------------------------------------------------------------------------


def test_built_in_aliases_and_adapters_correspond_one_to_one() -> None:
    aliases = {name: valued.value for name, valued in read_builtin().aliases.items()}
    assert aliases == {name: Alias(command) for name, command in ALIASES.items()}
    assert set(KNOWN) == set(ALIASES)


@each_row("name", COMMANDS)
def test_each_agent_is_one_registry_line_and_one_module(name: str) -> None:
    module = importlib.import_module(f"rooda.world.agents.{name.replace('-', '_')}")
    assert KNOWN[name] is module.ADAPTER
    assert KNOWN[name].name == name
    assert program_name(shlex.split(COMMANDS[name])) == name


@each_adapter
def test_adapter_is_found_by_its_name(adapter: Adapter) -> None:
    assert ADAPTERS[adapter.name] is adapter
    assert program_of(["whatever"], adapter.name).adapter is adapter


@each_known
def test_built_in_alias_selects_the_most_detailed_output_form(adapter: Adapter) -> None:
    program = program_of(shlex.split(ALIASES[adapter.name]))
    assert program.adapter is adapter
    assert program.is_known
    assert program.form is (Form.TEXT if adapter.name == "kiro-cli" else Form.EVENTS)


@each_known
def test_facts_of_each_cli_include_installation_and_advice(adapter: Adapter) -> None:
    facts = adapter.facts
    assert facts.install
    assert facts.otherwise
    assert facts.advice[FailureKind.AUTH]
    assert all(name == name.upper() for name in (*facts.nesting, *facts.payers))
    assert not set(facts.nesting) & set(
        facts.payers
    )  # rooda never silently changes the paying account


# -- program and output form -----------------------------------------------------------------


@each_row(
    "command,name,form",
    [
        ("claude -p", "claude", Form.TEXT),
        ("claude -p --output-format json", "claude", Form.DOCUMENT),
        ("claude -p --output-format=stream-json --verbose", "claude", Form.EVENTS),
        ("claude -p --output-format text --output-format json", "claude", Form.DOCUMENT),
        ("claude -p --output-format", "claude", Form.TEXT),
        ("/usr/local/bin/claude -p --output-format=json", "claude", Form.DOCUMENT),
        ("codex exec -", "codex", Form.TEXT),
        ("codex exec --experimental-json -", "codex", Form.EVENTS),
        ("gemini --yolo", "gemini", Form.TEXT),
        ("gemini --yolo -o json", "gemini", Form.DOCUMENT),
        ("gemini --yolo --output-format stream-json", "gemini", Form.EVENTS),
        ("opencode run", "opencode", Form.TEXT),
        ("opencode run --format=json", "opencode", Form.EVENTS),
        ("qwen --yolo -o json", "qwen", Form.DOCUMENT),
        ("copilot --allow-all -s", "copilot", Form.TEXT),
        ("cursor-agent -p", "cursor-agent", Form.TEXT),
        ("cursor-agent -p --output-format json", "cursor-agent", Form.DOCUMENT),
        ("kiro-cli chat --output-format json", "kiro-cli", Form.TEXT),
        ("env A=b timeout 1h nice -n 5 claude -p --output-format json", "claude", Form.DOCUMENT),
        ("cat --output-format stream-json", "text", Form.TEXT),
        ("claude.sh --output-format stream-json", "text", Form.TEXT),
        ("sh -c 'claude -p'", "text", Form.TEXT),
        ("env", "text", Form.TEXT),
    ],
)
def test_command_line_determines_adapter_and_output_form(
    command: str, name: str, form: Form
) -> None:
    program = program_of(shlex.split(command))
    assert (program.adapter.name, program.form) == (name, form)


@each_row(
    "command,model",
    [
        ("claude -p --model opus", "opus"),
        ("codex exec -m gpt-5 -", "gpt-5"),
        ("gemini --yolo -m gemini-2.5-pro -o stream-json", "gemini-2.5-pro"),
        ("opencode run --model=anthropic/claude-x", "anthropic/claude-x"),
        ("claude -p", None),
        ("agent.sh --model opus", None),
    ],
)
def test_command_line_determines_the_requested_model(command: str, model: str | None) -> None:
    assert program_of(shlex.split(command)).model == model


def test_flags_of_a_wrapper_with_an_adapter_are_ignored() -> None:
    program = program_of(["my-agent", "--output-format", "text", "-m", "x"], "claude")
    assert (program.adapter.name, program.form, program.model) == ("claude", Form.UNKNOWN, None)


def test_text_adapter_overrides_a_known_program() -> None:
    program = program_of(shlex.split(ALIASES["claude"]), "text")
    assert program.adapter is ADAPTERS[TEXT]
    assert not program.is_known


@each_row("words", [[], [""], ["env"], ["env", "-i"], ["timeout", "5"]])
def test_command_line_without_a_program_has_no_program_name(words: list[str]) -> None:
    assert program_name(words) == ""


# -- every adapter ---------------------------------------------------------------------------


@each_adapter
def test_empty_output_gives_an_empty_report(adapter: Adapter) -> None:
    for form in Form:
        reader = OutputReader(adapter, form)
        assert reader.finish() == []
        report = reader.report(0)
        assert not reader.is_result_in
        assert not report.answered
        assert report.ended_well is None
        assert report.fault is None
        assert report.usage == Usage()


@each_adapter
def test_text_output_is_read_as_text_in_every_form(adapter: Adapter) -> None:
    for form in Form:
        reader = OutputReader(adapter, form)
        said = reader.feed("stdout", f"all done\n{SUCCESS}\n".encode()) + reader.finish()
        report = reader.report(0)
        assert reader.form is Form.TEXT
        assert not report.speaks_events
        assert report.answered
        assert report.fault is None
        assert report.ended_well is None
        assert all(one.text in ("all done", SUCCESS) for one in said)


@each_known
def test_signal_in_text_output_counts_although_events_were_expected(
    adapter: Adapter, tmp_path: Path
) -> None:
    pieces: list[Piece] = [("stdout", f"all done\n{SUCCESS}\n".encode())]
    ended = play(tmp_path, ALIASES[adapter.name], pieces).iteration
    assert ended.verdict is Verdict.COMPLETE


@each_adapter
def test_report_can_be_requested_twice(adapter: Adapter) -> None:
    for form in Form:
        reader = OutputReader(adapter, form)
        reader.feed("stdout", b'{"type": "init"}\nhello\n')
        reader.feed("stderr", b"Error: something\n")
        reader.finish()
        for code in (0, 1, 137, None):
            assert reader.report(code) == reader.report(code)


# -- every CLI that prints events ------------------------------------------------------------


def test_every_cli_with_events_has_a_voice() -> None:
    assert {voice.name for voice in VOICES} == set(KNOWN) - {"kiro-cli"}


@each_voice
def test_spoken_text_contains_only_the_assistants_messages(voice: Voice) -> None:
    found = read_events(
        voice,
        voice.begins(),
        voice.echoes_prompt("the prompt"),
        voice.says("Working on it."),
        voice.uses("bash", {"command": "echo of-the-tool"}),
        voice.tool_prints("of-the-tool"),
        voice.says("Done.\n\nThat was all."),
        voice.ends("Done.\n\nThat was all."),
    )
    assert found.report.spoken == b"Working on it.\nDone.\n\nThat was all.\n"
    assert found.report.answered


@each_voice
def test_readable_lines_show_the_assistants_text_and_tools(voice: Voice) -> None:
    found = read_events(
        voice,
        voice.begins(),
        voice.says("First\nsecond"),
        voice.uses("write", {"path": f"{PROJECT}/src/a.py", "content": "x\ny"}),
        voice.ends("First\nsecond"),
    )
    tool = next(one for one in found.lines if one.startswith("tool: "))
    assert found.lines[:2] == ["text: First", "text: second"]
    assert "write" in tool
    assert "src/a.py" in tool
    assert len(tool) < 250


@each_voice
def test_result_is_in_as_soon_as_its_event_is_read(voice: Voice) -> None:
    before = read_events(voice, voice.begins(), voice.says("Done."))
    after = read_events(voice, voice.begins(), voice.says("Done."), voice.ends("Done."))
    assert not before.had_result
    assert after.had_result
    assert (before.report.is_complete, before.report.ended_well) == (False, None)
    assert (after.report.is_complete, after.report.ended_well) == (True, True)


@each_voice
@pytest.mark.parametrize("does", ["says", "uses"])
def test_work_after_a_result_withdraws_the_result(voice: Voice, does: str) -> None:
    more = voice.says("More.") if does == "says" else voice.uses("bash", {"command": "more"})
    found = read_events(voice, voice.begins(), voice.says("Done."), voice.ends("Done."), more)
    assert not found.had_result
    assert (found.report.is_complete, found.report.ended_well) == (False, None)
    again = read_events(
        voice, voice.begins(), voice.ends(""), voice.says("More."), voice.ends("More.")
    )
    assert again.had_result
    assert again.report.ended_well is True


@each_voice
def test_new_start_after_a_result_withdraws_the_result(voice: Voice) -> None:
    # The agent may think for longer than the grace period after a result.
    found = read_events(
        voice, voice.begins(), voice.says("Done."), voice.ends("Done."), voice.begins()
    )
    assert not found.had_result
    assert found.report.ended_well is None


@each_voice
def test_exit_code_0_without_result_is_a_failure(voice: Voice) -> None:
    for events in (voice.begins(), [*voice.begins(), *voice.says("Nearly done.")]):
        report = read_events(voice, events).report
        outcome = judge(Exited(0), Promises(), report)
        assert outcome.verdict is Verdict.FAILURE
        assert "without the result" in outcome.reason


@each_voice
def test_incomplete_stream_is_reported_although_nothing_was_said_or_changed(voice: Voice) -> None:
    outcome = judge(Exited(0), Promises(), read_events(voice, voice.begins()).report, changed=False)
    assert outcome.verdict is Verdict.FAILURE
    assert "without the result" in outcome.reason


@each_voice
def test_success_without_answer_and_without_changes_is_empty(voice: Voice) -> None:
    report = read_events(voice, voice.begins(), voice.ends("")).report
    assert not report.answered
    assert judge(Exited(0), Promises(), report, changed=False).kind is FailureKind.EMPTY
    assert judge(Exited(0), Promises(), report, changed=True).verdict is Verdict.CONTINUE


@each_voice
def test_usage_is_read_from_the_events(voice: Voice) -> None:
    usage = read_events(
        voice, voice.begins(), voice.says("Done."), voice.ends("Done.")
    ).report.usage
    assert usage.session_id == SESSION
    assert usage.turns == 1
    assert usage.model == (None if voice.name in ("codex", "opencode") else MODEL)
    if voice.name not in ("copilot", "cursor-agent"):
        assert usage.tokens is not None
        assert (usage.tokens.input, usage.tokens.output, usage.tokens.total) == (100, 10, 110)
    assert usage.cost == (0.5 if KNOWN[voice.name].facts.tells_cost else None)


@each_voice
def test_signal_counts_only_in_the_assistants_text(voice: Voice, tmp_path: Path) -> None:
    def verdict(*events: Sequence[Object]) -> Verdict:
        pieces: list[Piece] = [("stdout", printed(voice.begins(), *events))]
        return play(tmp_path, voice.command, pieces).iteration.verdict

    ends = voice.ends("Well.")
    assert verdict(voice.says(f"Well.\n{SUCCESS}"), voice.ends(f"Well.\n{SUCCESS}")) == "done"
    assert verdict(voice.says(SUCCESS), voice.says("Well."), ends) == "done"
    assert verdict(voice.echoes_prompt(SUCCESS), voice.says("Well."), ends) == "success"
    assert verdict(voice.uses("bash", {"command": SUCCESS}), voice.says("Well."), ends) == "success"
    assert verdict(voice.tool_prints(SUCCESS), voice.says("Well."), ends) == "success"


@each_voice
def test_reported_error_is_a_failure_with_any_exit_code(voice: Voice) -> None:
    for code in (0, 1, 145):
        report = read_events(voice, voice.begins(), voice.fails("529 Overloaded"), code=code).report
        assert report.is_complete
        assert report.ended_well is False
        assert report.fault is not None
        assert report.fault.kind is FailureKind.OVERLOADED
        assert "529 Overloaded" in report.fault.evidence
        assert judge(Exited(code), Promises(), report).kind is FailureKind.OVERLOADED


@each_voice
def test_error_with_an_unknown_message_is_a_failure_of_kind_exit(voice: Voice) -> None:
    report = read_events(voice, voice.begins(), voice.fails("the cat sat on it")).report
    assert report.fault is None
    assert report.ended_well is False
    outcome = judge(Exited(0), Promises(), report)
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILURE, FailureKind.EXIT)
    assert "the cat sat on it" in outcome.reason


@each_voice
def test_error_before_a_good_result_is_cleared(voice: Voice) -> None:
    more = (voice.says("Done."), voice.ends("Done."))
    report = read_events(voice, voice.begins(), voice.fails("529 Overloaded"), *more).report
    assert report.fault is None
    assert report.ended_well is True
    assert report.complaint == ""


@each_voice
def test_error_before_further_work_is_cleared_although_the_stream_is_incomplete(
    voice: Voice,
) -> None:
    error = voice.fails("429 Too Many Requests")
    more = voice.says("And on it goes.")
    report = read_events(voice, voice.begins(), error, more, code=137).report
    assert report.fault is None
    assert not report.is_complete


def test_signal_of_a_claude_subagent_does_not_count(tmp_path: Path) -> None:
    voice = VOICES[0]
    helper = [{**event, "parent_tool_use_id": "t"} for event in voice.says(SUCCESS)]
    pieces: list[Piece] = [
        ("stdout", printed(voice.begins(), helper, voice.says("Well."), voice.ends("Well.")))
    ]
    assert play(tmp_path, voice.command, pieces).iteration.verdict is Verdict.CONTINUE


def test_signal_of_a_copilot_subagent_does_not_count(tmp_path: Path) -> None:
    voice = next(voice for voice in VOICES if voice.name == "copilot")
    said = voice.says(SUCCESS)[-1]
    helper = [{**said, "data": {**said["data"], "parentToolCallId": "t"}}]
    pieces: list[Piece] = [
        ("stdout", printed(voice.begins(), helper, voice.says("Well."), voice.ends("Well.")))
    ]
    assert play(tmp_path, voice.command, pieces).iteration.verdict is Verdict.CONTINUE


@each_row(
    "command",
    [
        "env -u ANTHROPIC_API_KEY claude -p --output-format stream-json",
        "timeout -s INT 1h claude -p --output-format stream-json",
        "stdbuf -o L claude -p --output-format stream-json",
        "nice -n 5 env -i A=b claude -p --output-format stream-json",
    ],
)
def test_flags_of_a_launcher_are_not_taken_for_the_program(command: str) -> None:
    program = program_of(command.split())
    assert (program.adapter.name, program.form) == ("claude", Form.EVENTS)
