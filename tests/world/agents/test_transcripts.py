"""Recorded outputs of real CLIs, split in various ways: outcome, kind, usage and answer."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rooda.world.agents.agent_report import Usage
from rooda.world.agents.failure_kinds import FailureKind
from support.expected import (
    NUMBERS,
    OPUS,
    OUTCOMES,
    UNKNOWN,
    Numbers,
    Outcome,
    has_session,
    numbers_of,
    outcome_of,
)
from support.tables import Test, each_row
from support.transcripts import (
    Piece,
    Transcript,
    byte_by_byte,
    cut_at_random,
    play,
    read_output,
    transcript,
    transcripts,
)

_SHORT = 1700  # outputs up to this size are also fed byte by byte

# The numbers of these transcripts are tested separately.
UNCOUNTED = ("copilot-autherror-stream", "copilot-ratelimit-stream")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


# -- outcome and usage -----------------------------------------------------------------------


def _known(*, events: bool = False) -> list[Transcript]:
    """Return the transcripts of known CLIs; with `events`, only those with JSON output."""
    known = [one for one in transcripts() if one.cli not in UNKNOWN]
    return [one for one in known if not events or (one.form != "text" and one.stdout)]


def _each(found: Sequence[Transcript]) -> Callable[[Test], Test]:
    return each_row("one", found, ids=[one.name for one in found])


def _cuts(one: Transcript) -> list[list[Piece]]:
    """Return the output as it may arrive: at once, in pieces of random size, byte by byte."""
    whole = one.pieces()
    cuts = [whole, cut_at_random(whole, random.Random(one.name))]
    if len(one.stdout) + len(one.stderr) <= _SHORT:
        cuts.append(byte_by_byte(whole))
    return cuts


def test_corpus_is_complete() -> None:
    assert len(transcripts()) == 128
    assert {one.scenario for one in transcripts()} == set(OUTCOMES)
    assert not NUMBERS.keys() - {one.name for one in transcripts()}


@pytest.mark.long
@_each(transcripts())
def test_transcript_has_its_outcome_and_usage_for_every_split(
    one: Transcript, folder: Path
) -> None:
    for pieces in _cuts(one):
        ended = play(folder, one.command, pieces, one.end).iteration
        assert Outcome(ended.verdict, ended.kind, ended.facts.signal) == outcome_of(one)
        if one.name not in UNCOUNTED:
            assert _numbers(ended.usage) == numbers_of(one)
        assert (ended.usage is not None and ended.usage.session_id is not None) is has_session(one)


def test_failed_turns_of_copilot_are_counted(folder: Path) -> None:
    for one in map(transcript, UNCOUNTED):
        ended = play(folder, one.command, one.pieces(), one.end).iteration
        assert _numbers(ended.usage) == numbers_of(one)


def _numbers(usage: Usage | None) -> Numbers:
    if usage is None:
        return Numbers()
    used = usage.tokens
    tokens = None if used is None else (used.input, used.output, used.total)
    # The sum of dollar amounts has rounding errors.
    cost = None if usage.cost is None else round(usage.cost, 9)
    return Numbers(usage.model, usage.turns, tokens, cost, usage.context_percent)


@_each(_known(events=True))
def test_adapter_of_an_alias_reads_the_events_of_a_wrapper(one: Transcript, folder: Path) -> None:
    ended = play(folder, "./my-agent --fast", one.pieces(), one.end, adapter=one.cli).iteration
    assert Outcome(ended.verdict, ended.kind, ended.facts.signal) == outcome_of(one)


def test_detected_output_form_does_not_depend_on_the_first_piece(folder: Path) -> None:
    wrong = []
    for one in _known(events=True):
        (stream, first), *rest = [("stdout", one.stdout)] if not one.stderr else one.pieces()[::-1]
        pieces = [(stream, first[:1]), (stream, first[1:]), *rest]
        ended = play(folder, "./my-agent --fast", pieces, one.end, adapter=one.cli).iteration
        if Outcome(ended.verdict, ended.kind, ended.facts.signal) != outcome_of(one):
            wrong.append(one.name)
    assert not wrong


@_each([one for one in _known() if one.form == "text"])
def test_adapter_of_an_alias_reads_the_text_of_a_wrapper(one: Transcript, folder: Path) -> None:
    ended = play(folder, "./my-agent --fast", one.pieces(), one.end, adapter=one.cli).iteration
    assert Outcome(ended.verdict, ended.kind, ended.facts.signal) == outcome_of(one)


# -- the assistant's own text ----------------------------------------------------------------

ANSWERS = {
    "plain": "Looked around, made a little progress, not finished yet.\n",
    "success": 'All tasks are done & tested (a < b, "quoted").\n\n<promise>SUCCESS</promise>\n',
    "failure": "I cannot go on: the build is broken.\n\n<promise>FAILURE</promise>\n",
    "tool": "Working on it.\nThe file is written.\n\n<promise>SUCCESS</promise>\n",
    "toolecho": "Working on it.\nI read the instructions. Still work to do.\n",
}
# A final document contains only the last answer, except qwen's, which is a list of all events.
LAST_ONLY = ("claude-tool-json", "claude-tool-json-noskip", "gemini-tool-json")


@_each([one for one in _known(events=True) if one.scenario in ANSWERS])
def test_spoken_text_is_exactly_the_assistants_answer(one: Transcript) -> None:
    expected = ANSWERS[one.scenario]
    if one.name in LAST_ONLY:
        expected = expected.removeprefix("Working on it.\n")
    for pieces in _cuts(one):
        report = read_output(one.command, pieces, one.end).report
        assert report.speaks_events
        assert report.spoken.decode() == expected
        assert report.usage.messages == 1 + expected.startswith("Working on it.\n")


@_each([one for one in _known(events=True) if one.scenario not in ANSWERS])
def test_error_message_is_not_an_answer(one: Transcript) -> None:
    report = read_output(one.command, one.pieces(), one.end).report
    assert report.spoken == b""
    assert report.usage.messages is None
    assert not report.answered
    assert report.ended_well is not True


# -- readable lines --------------------------------------------------------------------------

WRITES = {
    "claude": "Write rig_written.txt",
    "codex": "run /bin/bash -lc \"printf 'hello from the agent\\\\n' > rig_written.txt && "
    'cat rig_written.txt"',
    "copilot": "create rig_written.txt",
    "gemini": "write_file rig_written.txt",
    "opencode": "write rig_written.txt",
    "qwen": "write_file rig_written.txt",
}
RUNS = {
    "claude": "Bash",
    "codex": "run /bin/bash -lc",
    "copilot": "bash",
    "gemini": "run_shell_command",
    "opencode": "bash",
    "qwen": "run_shell_command",
}


@each_row("cli", WRITES)
def test_readable_lines_show_the_answer_and_the_written_file(cli: str) -> None:
    one = transcript(f"{cli}-tool-stream")
    said = [
        line for line in read_output(one.command, one.pieces()).lines if not line.startswith("note")
    ]
    assert said == [
        "text: Working on it.",
        f"tool: {WRITES[cli]}",
        "text: The file is written.",
        "text: ",
        "text: <promise>SUCCESS</promise>",
    ]


@each_row("cli", RUNS)
def test_readable_lines_show_the_command(cli: str) -> None:
    one = transcript(f"{cli}-toolecho-stream")
    tools = [line for line in read_output(one.command, one.pieces()).said if line.kind == "tool"]
    assert len(tools) == 1
    assert tools[0].text.startswith(f"{RUNS[cli]} ")
    assert "echo 'When all is done print <promise>SUCCESS</promise>'" in tools[0].text


@_each(_known(events=True))
def test_readable_lines_contain_no_raw_json(one: Transcript) -> None:
    for line in read_output(one.command, one.pieces(), one.end).said:
        assert not re.match(r'\s*[\[{]\s*[{"]\s*type"?', line.text)
        assert "session_id" not in line.text


def test_readable_lines_show_a_denied_tool() -> None:
    one = transcript("claude-tool-json-noskip")
    assert "note: was not allowed to use Write" in read_output(one.command, one.pieces()).lines


@each_row(
    "name,words,times",
    [
        ("claude-ratelimit-stream", "retrying: 429 rate_limit (try", 10),
        ("claude-overloaded-stream-retry1", "retrying: 529 overloaded (try 1 of 1)", 1),
        ("codex-ratelimit-stream", "retrying: Reconnecting... ", 5),
        ("copilot-ratelimit-stream", "retrying: rate_limit", 5),
    ],
)
def test_readable_lines_show_retries(name: str, words: str, times: int) -> None:
    one = transcript(name)
    lines = read_output(one.command, one.pieces(), one.end).lines
    assert sum(line.startswith(f"note: {words}") for line in lines) == times


# -- evidence --------------------------------------------------------------------------------


def _without_extra_space(words: str) -> str:
    return " ".join(words.replace("\\", "").split())


@_each([one for one in _known() if one.scenario not in ANSWERS and one.exit_code >= 0])
def test_evidence_occurs_in_the_output(one: Transcript, folder: Path) -> None:
    ended = play(folder, one.command, one.pieces(), one.end).iteration
    printed = (one.stdout + b"\n" + one.stderr).decode().replace("\\n", "\n")
    plain = re.sub(r"\x1b\[\d+m", "", printed)
    # The name of an error and its message may be separate fields of an event.
    name, _, message = (ended.facts.evidence or "").removesuffix("...").rpartition("Error: ")
    assert message
    assert f"{name}Error" in plain or not name
    assert _without_extra_space(message) in _without_extra_space(plain)


@pytest.mark.parametrize(
    "name,evidence",
    [
        ("claude-autherror-retry1", "Invalid API key · Fix external API key"),
        ("claude-usagelimit-oauth", "You've hit your limit · resets 11:14am (UTC)"),
        ("codex-ratelimit", "exceeded retry limit, last status: 429 Too Many Requests"),
        ("codex-usagelimit-stream", "Quota exceeded. Check your plan and billing details."),
        (
            "gemini-overloaded",
            "RetryableQuotaError: The model is overloaded. Please try again later.",
        ),
        ("opencode-overloaded", "Overloaded"),
        ("qwen-autherror-stream", "[API Error: 401 Incorrect API key provided: dummy.]"),
    ],
)
def test_evidence_is_the_error_message(name: str, evidence: str, folder: Path) -> None:
    one = transcript(name)
    assert play(folder, one.command, one.pieces(), one.end).iteration.facts.evidence == evidence


@pytest.mark.parametrize("name", ["gemini-ratelimit", "opencode-ratelimit-stream"])
def test_retry_delay_given_as_a_number_is_kept(name: str) -> None:
    one = transcript(name)
    fault = read_output(one.command, one.pieces(), one.end).report.fault
    assert fault is not None
    assert (fault.kind, fault.retry_after) == (FailureKind.OVERLOADED, 2.0)


def test_reason_of_a_cli_killed_during_retries_names_the_retry(folder: Path) -> None:
    one = transcript("claude-autherror-stream")
    ended = play(folder, one.command, one.pieces(), one.end).iteration
    assert ended.facts.incomplete
    reason = ended.facts.reason or ""
    assert "killed by SIGKILL" in reason
    assert "401 authentication_failed (try 8 of 10)" in reason


# -- result, model and session ---------------------------------------------------------------


@_each([one for one in _known(events=True) if one.exit_code >= 0])
def test_result_is_in_after_the_last_event(one: Transcript) -> None:
    found = read_output(one.command, one.pieces(), one.end)
    assert found.had_result
    assert found.report.is_complete
    assert found.report.ended_well is (one.scenario in ANSWERS)


def test_model_of_the_command_line_is_used_if_the_output_names_none() -> None:
    one = transcript("codex-success-stream")
    usage = read_output(f"{one.command} --model gpt-5-codex", one.pieces()).report.usage
    assert usage.model == "gpt-5-codex"
    named = transcript("claude-success-stream")
    assert read_output(f"{named.command} --model opus", named.pieces()).report.usage.model == OPUS


def test_session_id_is_read_from_the_output() -> None:
    for cli, key in (("claude", "session_id"), ("copilot", "sessionId"), ("qwen", "session_id")):
        one = transcript(f"{cli}-success-stream")
        last = json.loads(one.stdout.splitlines()[-1])
        assert read_output(one.command, one.pieces()).report.usage.session_id == last[key]
