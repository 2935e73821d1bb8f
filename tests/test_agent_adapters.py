"""What every adapter promises, whoever wrote it: a test for each line of the registry."""

import importlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from rooda.agents.adapter import Adapter
from rooda.agents.agent_program import program_name, program_of
from rooda.agents.failure_kinds import FailureKind
from rooda.agents.output_reader import OutputReader
from rooda.agents.registry import ADAPTERS, COMMANDS, KNOWN, TEXT
from rooda.agents.report import Form, Usage
from rooda.config.layers import Alias
from rooda.config.locate import read_builtin
from rooda.loop.outcome import Verdict, judge
from rooda.loop.promises import Promises
from rooda.process.exits import Exited
from support.transcripts import PROJECT, Heard, Piece, heard, play
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

each_adapter = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
each_known = pytest.mark.parametrize("adapter", KNOWN.values(), ids=KNOWN)
each_voice = pytest.mark.parametrize("voice", VOICES, ids=[voice.name for voice in VOICES])


def printed(*events: Sequence[Object]) -> bytes:
    return b"".join(line(event) for several in events for event in several)


def told(voice: Voice, *events: Sequence[Object], code: int = 0) -> Heard:
    """What is made of these events, each in a piece of its own."""
    pieces: list[Piece] = [("stdout", line(event)) for several in events for event in several]
    return heard(voice.command, pieces, Exited(code))


# -- the registry ----------------------------------------------------------------------------


def test_every_built_in_alias_has_an_adapter_of_its_own_and_the_other_way_round() -> None:
    aliases = {name: valued.value for name, valued in read_builtin().aliases.items()}
    assert aliases == {name: Alias(command) for name, command in ALIASES.items()}
    assert set(KNOWN) == set(ALIASES)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_agent_is_one_line_and_the_module_of_its_name(name: str) -> None:
    module = importlib.import_module(f"rooda.agents.{name.replace('-', '_')}")
    assert KNOWN[name] is module.ADAPTER
    assert KNOWN[name].name == name
    assert program_name(shlex.split(COMMANDS[name])) == name


@each_adapter
def test_an_adapter_is_found_by_its_own_name(adapter: Adapter) -> None:
    assert ADAPTERS[adapter.name] is adapter
    assert program_of(["whatever"], adapter.name).adapter is adapter


@each_known
def test_the_built_in_alias_is_known_and_prints_what_can_be_read_best(adapter: Adapter) -> None:
    program = program_of(shlex.split(ALIASES[adapter.name]))
    assert program.adapter is adapter
    assert program.is_known
    assert program.form is (Form.TEXT if adapter.name == "kiro-cli" else Form.EVENTS)


@each_known
def test_what_is_known_of_a_cli_helps_somebody_who_has_trouble_with_it(adapter: Adapter) -> None:
    facts = adapter.facts
    assert facts.install
    assert facts.otherwise
    assert facts.advice[FailureKind.AUTH]
    assert all(name == name.upper() for name in (*facts.nesting, *facts.payers))
    assert not set(facts.nesting) & set(facts.payers)  # who pays is never changed silently


# -- which program, and in which form --------------------------------------------------------


@pytest.mark.parametrize(
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
def test_the_command_line_says_who_prints_and_how(command: str, name: str, form: Form) -> None:
    program = program_of(shlex.split(command))
    assert (program.adapter.name, program.form) == (name, form)


@pytest.mark.parametrize(
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
def test_the_command_line_says_which_model_was_asked_for(command: str, model: str | None) -> None:
    assert program_of(shlex.split(command)).model == model


def test_flags_of_a_program_that_only_prints_like_a_cli_say_nothing() -> None:
    program = program_of(["my-agent", "--output-format", "text", "-m", "x"], "claude")
    assert (program.adapter.name, program.form, program.model) == ("claude", Form.UNKNOWN, None)


def test_a_known_program_may_be_taken_for_an_unknown_command() -> None:
    program = program_of(shlex.split(ALIASES["claude"]), "text")
    assert program.adapter is ADAPTERS[TEXT]
    assert not program.is_known


@pytest.mark.parametrize("words", [[], [""], ["env"], ["env", "-i"], ["timeout", "5"]])
def test_a_command_line_without_a_program_has_no_name(words: list[str]) -> None:
    assert program_name(words) == ""


# -- of every adapter ------------------------------------------------------------------------


@each_adapter
def test_who_printed_nothing_is_said_to_have_said_nothing(adapter: Adapter) -> None:
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
def test_a_program_that_prints_text_is_taken_by_its_word(adapter: Adapter) -> None:
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
def test_a_promise_as_text_counts_where_events_were_expected(
    adapter: Adapter, tmp_path: Path
) -> None:
    pieces: list[Piece] = [("stdout", f"all done\n{SUCCESS}\n".encode())]
    ended = play(tmp_path, ALIASES[adapter.name], pieces).iteration
    assert ended.verdict is Verdict.COMPLETE


@each_adapter
def test_asking_twice_gives_the_same_report(adapter: Adapter) -> None:
    for form in Form:
        reader = OutputReader(adapter, form)
        reader.feed("stdout", b'{"type": "init"}\nhello\n')
        reader.feed("stderr", b"Error: something\n")
        reader.finish()
        for code in (0, 1, 137, None):
            assert reader.report(code) == reader.report(code)


# -- of every CLI that prints events ---------------------------------------------------------


def test_every_known_cli_has_a_voice_but_the_one_that_prints_text_alone() -> None:
    assert {voice.name for voice in VOICES} == set(KNOWN) - {"kiro-cli"}


@each_voice
def test_the_assistants_words_are_joined_and_all_others_left_out(voice: Voice) -> None:
    found = told(
        voice,
        voice.begins(),
        voice.is_told("the prompt"),
        voice.says("Working on it."),
        voice.uses("bash", {"command": "echo of-the-tool"}),
        voice.tool_prints("of-the-tool"),
        voice.says("Done.\n\nThat was all."),
        voice.ends("Done.\n\nThat was all."),
    )
    assert found.report.spoken == b"Working on it.\nDone.\n\nThat was all.\n"
    assert found.report.answered


@each_voice
def test_a_person_reads_what_it_says_and_does(voice: Voice) -> None:
    found = told(
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
def test_the_result_is_in_with_the_event_that_says_so(voice: Voice) -> None:
    before = told(voice, voice.begins(), voice.says("Done."))
    after = told(voice, voice.begins(), voice.says("Done."), voice.ends("Done."))
    assert not before.had_result
    assert after.had_result
    assert (before.report.is_complete, before.report.ended_well) == (False, None)
    assert (after.report.is_complete, after.report.ended_well) == (True, True)


@each_voice
@pytest.mark.parametrize("does", ["says", "uses"])
def test_who_goes_on_working_after_the_result_has_none_yet(voice: Voice, does: str) -> None:
    more = voice.says("More.") if does == "says" else voice.uses("bash", {"command": "more"})
    found = told(voice, voice.begins(), voice.says("Done."), voice.ends("Done."), more)
    assert not found.had_result
    assert (found.report.is_complete, found.report.ended_well) == (False, None)
    again = told(voice, voice.begins(), voice.ends(""), voice.says("More."), voice.ends("More."))
    assert again.had_result
    assert again.report.ended_well is True


@each_voice
def test_who_begins_anew_after_the_result_has_none_yet(voice: Voice) -> None:
    # It may think for longer than anybody waits for an exit after the result.
    found = told(voice, voice.begins(), voice.says("Done."), voice.ends("Done."), voice.begins())
    assert not found.had_result
    assert found.report.ended_well is None


@each_voice
def test_without_the_result_exit_code_0_is_no_success(voice: Voice) -> None:
    for events in (voice.begins(), [*voice.begins(), *voice.says("Nearly done.")]):
        report = told(voice, events).report
        outcome = judge(Exited(0), Promises(), report)
        assert outcome.verdict is Verdict.FAILURE
        assert "without the result" in outcome.reason


@each_voice
def test_an_incomplete_stream_says_so_even_if_nothing_was_said_or_changed(voice: Voice) -> None:
    outcome = judge(Exited(0), Promises(), told(voice, voice.begins()).report, changed=False)
    assert outcome.verdict is Verdict.FAILURE
    assert "without the result" in outcome.reason


@each_voice
def test_success_without_a_word_and_without_a_change_is_empty(voice: Voice) -> None:
    report = told(voice, voice.begins(), voice.ends("")).report
    assert not report.answered
    assert judge(Exited(0), Promises(), report, changed=False).kind is FailureKind.EMPTY
    assert judge(Exited(0), Promises(), report, changed=True).verdict is Verdict.CONTINUE


@each_voice
def test_the_numbers_are_there(voice: Voice) -> None:
    usage = told(voice, voice.begins(), voice.says("Done."), voice.ends("Done.")).report.usage
    assert usage.session_id == SESSION
    assert usage.turns == 1
    assert usage.model == (None if voice.name in ("codex", "opencode") else MODEL)
    if voice.name not in ("copilot", "cursor-agent"):
        assert usage.tokens is not None
        assert (usage.tokens.input, usage.tokens.output, usage.tokens.total) == (100, 10, 110)
    assert usage.cost == (0.5 if KNOWN[voice.name].facts.tells_cost else None)


@each_voice
def test_a_promise_counts_where_the_assistant_makes_it(voice: Voice, tmp_path: Path) -> None:
    def verdict(*events: Sequence[Object]) -> Verdict:
        pieces: list[Piece] = [("stdout", printed(voice.begins(), *events))]
        return play(tmp_path, voice.command, pieces).iteration.verdict

    ends = voice.ends("Well.")
    assert verdict(voice.says(f"Well.\n{SUCCESS}"), voice.ends(f"Well.\n{SUCCESS}")) == "done"
    assert verdict(voice.says(SUCCESS), voice.says("Well."), ends) == "done"
    assert verdict(voice.is_told(SUCCESS), voice.says("Well."), ends) == "success"
    assert verdict(voice.uses("bash", {"command": SUCCESS}), voice.says("Well."), ends) == "success"
    assert verdict(voice.tool_prints(SUCCESS), voice.says("Well."), ends) == "success"


@each_voice
def test_its_own_error_is_a_failure_whatever_the_exit_code_says(voice: Voice) -> None:
    for code in (0, 1, 145):
        report = told(voice, voice.begins(), voice.fails("529 Overloaded"), code=code).report
        assert report.is_complete
        assert report.ended_well is False
        assert report.fault is not None
        assert report.fault.kind is FailureKind.OVERLOADED
        assert "529 Overloaded" in report.fault.evidence
        assert judge(Exited(code), Promises(), report).kind is FailureKind.OVERLOADED


@each_voice
def test_an_error_that_says_nothing_we_know_is_one_all_the_same(voice: Voice) -> None:
    report = told(voice, voice.begins(), voice.fails("the cat sat on it")).report
    assert report.fault is None
    assert report.ended_well is False
    outcome = judge(Exited(0), Promises(), report)
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILURE, FailureKind.EXIT)
    assert "the cat sat on it" in outcome.reason


@each_voice
def test_an_error_that_was_overcome_is_none(voice: Voice) -> None:
    more = (voice.says("Done."), voice.ends("Done."))
    report = told(voice, voice.begins(), voice.fails("529 Overloaded"), *more).report
    assert report.fault is None
    assert report.ended_well is True
    assert report.complaint == ""


@each_voice
def test_who_was_cut_off_at_work_did_not_fail_by_an_error_that_was_overcome(voice: Voice) -> None:
    error = voice.fails("429 Too Many Requests")
    more = voice.says("And on it goes.")
    report = told(voice, voice.begins(), error, more, code=137).report
    assert report.fault is None
    assert not report.is_complete


def test_what_a_helper_of_claude_says_is_not_the_assistants_word(tmp_path: Path) -> None:
    voice = VOICES[0]
    helper = [{**event, "parent_tool_use_id": "t"} for event in voice.says(SUCCESS)]
    pieces: list[Piece] = [
        ("stdout", printed(voice.begins(), helper, voice.says("Well."), voice.ends("Well.")))
    ]
    assert play(tmp_path, voice.command, pieces).iteration.verdict is Verdict.CONTINUE


def test_what_a_helper_of_copilot_says_is_not_the_assistants_word(tmp_path: Path) -> None:
    voice = next(voice for voice in VOICES if voice.name == "copilot")
    said = voice.says(SUCCESS)[-1]
    helper = [{**said, "data": {**said["data"], "parentToolCallId": "t"}}]
    pieces: list[Piece] = [
        ("stdout", printed(voice.begins(), helper, voice.says("Well."), voice.ends("Well.")))
    ]
    assert play(tmp_path, voice.command, pieces).iteration.verdict is Verdict.CONTINUE


@pytest.mark.parametrize(
    "command",
    [
        "env -u ANTHROPIC_API_KEY claude -p --output-format stream-json",
        "timeout -s INT 1h claude -p --output-format stream-json",
        "stdbuf -o L claude -p --output-format stream-json",
        "nice -n 5 env -i A=b claude -p --output-format stream-json",
    ],
)
def test_a_launcher_s_own_flags_are_no_program(command: str) -> None:
    program = program_of(command.split())
    assert (program.adapter.name, program.form) == ("claude", Form.EVENTS)
