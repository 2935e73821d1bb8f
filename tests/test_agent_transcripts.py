"""What real CLIs printed, read again however it was cut: outcome, kind, numbers and words."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from rooda.agents.failure_kinds import FailureKind
from rooda.agents.report import Usage
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
from support.transcripts import (
    Piece,
    Transcript,
    byte_by_byte,
    cut_at_random,
    heard,
    play,
    transcript,
    transcripts,
)

_SHORT = 1700  # bytes that are printed one by one

# Numbers that are not yet as they should be.
UNCOUNTED = ("copilot-autherror-stream", "copilot-ratelimit-stream")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


# -- the tests -------------------------------------------------------------------------------


def _known(*, events: bool = False) -> list[Transcript]:
    """Those of CLIs that we know; `events`: only where JSON was printed."""
    known = [one for one in transcripts() if one.cli not in UNKNOWN]
    return [one for one in known if not events or (one.form != "text" and one.stdout)]


def _each(found: Sequence[Transcript]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("one", found, ids=[one.name for one in found])


def _cuts(one: Transcript) -> list[list[Piece]]:
    """The same output as it may arrive: at once, in pieces of all sizes, byte by byte."""
    whole = one.pieces()
    cuts = [whole, cut_at_random(whole, random.Random(one.name))]
    if len(one.stdout) + len(one.stderr) <= _SHORT:
        cuts.append(byte_by_byte(whole))
    return cuts


def test_the_corpus_is_whole() -> None:
    assert len(transcripts()) == 128
    assert {one.scenario for one in transcripts()} == set(OUTCOMES)
    assert not NUMBERS.keys() - {one.name for one in transcripts()}


@_each(transcripts())
def test_every_transcript_has_its_outcome_and_its_numbers_however_it_is_cut(
    one: Transcript, folder: Path
) -> None:
    for pieces in _cuts(one):
        ended = play(folder, one.command, pieces, one.end).iteration
        assert Outcome(ended.verdict, ended.kind, ended.promise_signal) == outcome_of(one)
        if one.name not in UNCOUNTED:
            assert _numbers(ended.usage) == numbers_of(one)
        assert (ended.usage is not None and ended.usage.session_id is not None) is has_session(one)


def test_a_turn_that_failed_is_one(folder: Path) -> None:
    for one in map(transcript, UNCOUNTED):
        ended = play(folder, one.command, one.pieces(), one.end).iteration
        assert _numbers(ended.usage) == numbers_of(one)


def _numbers(usage: Usage | None) -> Numbers:
    if usage is None:
        return Numbers()
    used = usage.tokens
    tokens = None if used is None else (used.input, used.output, used.total)
    # Dollars add up to a little more or less.
    cost = None if usage.cost is None else round(usage.cost, 9)
    return Numbers(usage.model, usage.turns, tokens, cost, usage.context_percent)


@_each(_known(events=True))
def test_a_program_of_another_name_is_read_by_the_adapter_that_its_alias_names(
    one: Transcript, folder: Path
) -> None:
    ended = play(folder, "./my-agent --fast", one.pieces(), one.end, adapter=one.cli).iteration
    assert Outcome(ended.verdict, ended.kind, ended.promise_signal) == outcome_of(one)


def test_the_form_that_nobody_named_does_not_hang_on_where_the_first_cut_is(folder: Path) -> None:
    wrong = []
    for one in _known(events=True):
        (stream, first), *rest = [("stdout", one.stdout)] if not one.stderr else one.pieces()[::-1]
        pieces = [(stream, first[:1]), (stream, first[1:]), *rest]
        ended = play(folder, "./my-agent --fast", pieces, one.end, adapter=one.cli).iteration
        if Outcome(ended.verdict, ended.kind, ended.promise_signal) != outcome_of(one):
            wrong.append(one.name)
    assert not wrong


@_each([one for one in _known() if one.form == "text"])
def test_text_of_a_program_of_another_name_is_text(one: Transcript, folder: Path) -> None:
    ended = play(folder, "./my-agent --fast", one.pieces(), one.end, adapter=one.cli).iteration
    assert Outcome(ended.verdict, ended.kind, ended.promise_signal) == outcome_of(one)


# -- the assistant's own text ----------------------------------------------------------------

ANSWERS = {
    "plain": "Looked around, made a little progress, not finished yet.\n",
    "success": 'All tasks are done & tested (a < b, "quoted").\n\n<promise>SUCCESS</promise>\n',
    "failure": "I cannot go on: the build is broken.\n\n<promise>FAILURE</promise>\n",
    "tool": "Working on it.\nThe file is written.\n\n<promise>SUCCESS</promise>\n",
    "toolecho": "Working on it.\nI read the instructions. Still work to do.\n",
}
# One document at the end has the last answer alone; qwen's is a list of all its events.
LAST_ONLY = ("claude-tool-json", "claude-tool-json-noskip", "gemini-tool-json")


@_each([one for one in _known(events=True) if one.scenario in ANSWERS])
def test_the_assistants_text_is_whole_and_nothing_else(one: Transcript) -> None:
    expected = ANSWERS[one.scenario]
    if one.name in LAST_ONLY:
        expected = expected.removeprefix("Working on it.\n")
    for pieces in _cuts(one):
        report = heard(one.command, pieces, one.end).report
        assert report.speaks_events
        assert report.spoken.decode() == expected


@_each([one for one in _known(events=True) if one.scenario not in ANSWERS])
def test_the_words_of_an_error_are_no_answer(one: Transcript) -> None:
    report = heard(one.command, one.pieces(), one.end).report
    assert report.spoken == b""
    assert not report.answered
    assert report.ended_well is not True


# -- what a person reads ---------------------------------------------------------------------

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


@pytest.mark.parametrize("cli", WRITES)
def test_a_person_reads_what_is_said_and_which_file_is_written(cli: str) -> None:
    one = transcript(f"{cli}-tool-stream")
    said = [line for line in heard(one.command, one.pieces()).lines if not line.startswith("note")]
    assert said == [
        "text: Working on it.",
        f"tool: {WRITES[cli]}",
        "text: The file is written.",
        "text: ",
        "text: <promise>SUCCESS</promise>",
    ]


@pytest.mark.parametrize("cli", RUNS)
def test_a_person_reads_which_command_is_run(cli: str) -> None:
    one = transcript(f"{cli}-toolecho-stream")
    tools = [line for line in heard(one.command, one.pieces()).said if line.kind == "tool"]
    assert len(tools) == 1
    assert tools[0].text.startswith(f"{RUNS[cli]} ")
    assert "echo 'When all is done print <promise>SUCCESS</promise>'" in tools[0].text


@_each(_known(events=True))
def test_no_line_for_people_has_raw_json_of_the_cli_in_it(one: Transcript) -> None:
    for line in heard(one.command, one.pieces(), one.end).said:
        assert not re.match(r'\s*[\[{]\s*[{"]\s*type"?', line.text)
        assert "session_id" not in line.text


def test_a_person_reads_that_a_tool_was_denied() -> None:
    one = transcript("claude-tool-json-noskip")
    assert "note: was not allowed to use Write" in heard(one.command, one.pieces()).lines


@pytest.mark.parametrize(
    "name,words,times",
    [
        ("claude-ratelimit-stream", "retrying: 429 rate_limit (try", 10),
        ("claude-overloaded-stream-retry1", "retrying: 529 overloaded (try 1 of 1)", 1),
        ("codex-ratelimit-stream", "retrying: Reconnecting... ", 5),
        ("copilot-ratelimit-stream", "retrying: rate_limit", 5),
    ],
)
def test_a_person_reads_that_a_request_is_tried_again(name: str, words: str, times: int) -> None:
    one = transcript(name)
    lines = heard(one.command, one.pieces(), one.end).lines
    assert sum(line.startswith(f"note: {words}") for line in lines) == times


# -- the evidence ----------------------------------------------------------------------------


def _squeezed(words: str) -> str:
    return " ".join(words.replace("\\", "").split())


@_each([one for one in _known() if one.scenario not in ANSWERS and one.exit_code >= 0])
def test_the_evidence_of_a_failure_are_words_that_the_cli_printed(
    one: Transcript, folder: Path
) -> None:
    ended = play(folder, one.command, one.pieces(), one.end).iteration
    printed = (one.stdout + b"\n" + one.stderr).decode().replace("\\n", "\n")
    plain = re.sub(r"\x1b\[\d+m", "", printed)
    # The name of an error and its message may be two fields of an event.
    name, _, message = ended.evidence.removesuffix("...").rpartition("Error: ")
    assert message
    assert f"{name}Error" in plain or not name
    assert _squeezed(message) in _squeezed(plain)


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
def test_the_evidence_is_the_line_that_tells(name: str, evidence: str, folder: Path) -> None:
    one = transcript(name)
    assert play(folder, one.command, one.pieces(), one.end).iteration.evidence == evidence


@pytest.mark.parametrize("name", ["gemini-ratelimit", "opencode-ratelimit-stream"])
def test_seconds_that_the_cli_names_as_a_number_are_kept(name: str) -> None:
    one = transcript(name)
    fault = heard(one.command, one.pieces(), one.end).report.fault
    assert fault is not None
    assert (fault.kind, fault.retry_after) == (FailureKind.OVERLOADED, 2.0)


def test_a_run_that_was_killed_among_retries_says_what_it_tried(folder: Path) -> None:
    one = transcript("claude-autherror-stream")
    ended = play(folder, one.command, one.pieces(), one.end).iteration
    assert ended.incomplete
    assert "killed by SIGKILL" in ended.reason
    assert "401 authentication_failed (try 8 of 10)" in ended.reason


# -- the rest --------------------------------------------------------------------------------


@_each([one for one in _known(events=True) if one.exit_code >= 0])
def test_the_result_is_in_as_soon_as_the_last_event_is(one: Transcript) -> None:
    found = heard(one.command, one.pieces(), one.end)
    assert found.had_result
    assert found.report.is_complete
    assert found.report.ended_well is (one.scenario in ANSWERS)


def test_who_names_no_model_is_believed_to_use_the_one_that_was_asked_for() -> None:
    one = transcript("codex-success-stream")
    usage = heard(f"{one.command} --model gpt-5-codex", one.pieces()).report.usage
    assert usage.model == "gpt-5-codex"
    named = transcript("claude-success-stream")
    assert heard(f"{named.command} --model opus", named.pieces()).report.usage.model == OPUS


def test_session_ids_are_those_that_the_cli_prints() -> None:
    for cli, key in (("claude", "session_id"), ("copilot", "sessionId"), ("qwen", "session_id")):
        one = transcript(f"{cli}-success-stream")
        last = json.loads(one.stdout.splitlines()[-1])
        assert heard(one.command, one.pieces()).report.usage.session_id == last[key]
