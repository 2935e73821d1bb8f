"""The outcome that follows from a CLI's report, the classification of its messages, and quotes."""

import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from rooda.loop.outcome import Outcome, Verdict, judge
from rooda.loop.stages.promises import Promises
from rooda.loop.state import Limits, State, Status
from rooda.loop.stops import StopRule, stop
from rooda.world.agents.agent_report import AgentReport, Fault
from rooda.world.agents.failure_kinds import REPORTED_KINDS, FailureKind
from rooda.world.agents.faults import classify
from rooda.world.agents.registry import KNOWN
from rooda.world.process.exits import (
    Canceled,
    Exit,
    Exited,
    HungAfterResult,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from support.tables import each_row
from support.transcripts import (
    COMMANDS,
    Piece,
    play,
    read_output,
    reader_of,
    transcript,
    transcripts,
)
from support.voices import VOICES, Object, Voice, line

NONE, SUCCESS, FAILURE = Promises(), Promises(success=True), Promises(failure=True)
KILLED = Signalled(signal.SIGKILL)
WELL = AgentReport(speaks_events=True, ended_well=True)
SILENT = AgentReport(speaks_events=True, ended_well=True, answered=False)
BADLY = AgentReport(speaks_events=True, ended_well=False, complaint="no")
CUT = AgentReport(speaks_events=True, is_complete=False, retrying="429 (try 3 of 10)")
MUTE = AgentReport(is_mute=True, answered=False)
TEXT_INSTEAD = AgentReport(is_mute=True)
TEXT = AgentReport()

FAULT_VERDICTS = {
    FailureKind.LIMIT: Verdict.LIMITED,  # not a failure: the run repeats the same iteration
    FailureKind.OVERLOADED: Verdict.LIMITED,
    FailureKind.OFFLINE: Verdict.LIMITED,
    FailureKind.CONTEXT: Verdict.FAILURE,
    FailureKind.AUTH: Verdict.ABORT,  # a retry does not help
    FailureKind.USAGE: Verdict.ABORT,
    FailureKind.EMPTY: Verdict.FAILURE,
}


LIMIT, OVERLOADED, OFFLINE = FailureKind.LIMIT, FailureKind.OVERLOADED, FailureKind.OFFLINE
AUTH, CONTEXT, USAGE = FailureKind.AUTH, FailureKind.CONTEXT, FailureKind.USAGE


def report_with_fault(kind: FailureKind) -> AgentReport:
    return AgentReport(speaks_events=True, ended_well=False, fault=Fault(kind, "its own words"))


# -- the outcome of a report -----------------------------------------------------------------


@each_row(
    "end,report,verdict,kind",
    [
        (Exited(0), WELL, Verdict.CONTINUE, None),
        (Exited(0), SILENT, Verdict.CONTINUE, None),  # files changed
        (Exited(0), TEXT, Verdict.CONTINUE, None),
        (Exited(0), TEXT_INSTEAD, Verdict.FAILURE, FailureKind.STARTUP),
        (Exited(0), BADLY, Verdict.FAILURE, FailureKind.EXIT),
        (Exited(0), CUT, Verdict.FAILURE, FailureKind.CRASH),
        (Exited(0), MUTE, Verdict.FAILURE, FailureKind.STARTUP),
        (Exited(1), BADLY, Verdict.FAILURE, FailureKind.EXIT),
        (Exited(1), CUT, Verdict.FAILURE, FailureKind.EXIT),
        (Exited(1), MUTE, Verdict.FAILURE, FailureKind.STARTUP),
        (Exited(1), TEXT, Verdict.FAILURE, FailureKind.EXIT),
        (KILLED, CUT, Verdict.FAILURE, FailureKind.CRASH),
        (KILLED, MUTE, Verdict.FAILURE, FailureKind.CRASH),
        (KILLED, TEXT, Verdict.FAILURE, FailureKind.CRASH),
        (HungAfterResult("result_grace", 30), WELL, Verdict.CONTINUE, None),
        (HungAfterResult("result_grace", 30), BADLY, Verdict.FAILURE, FailureKind.EXIT),
    ],
)
def test_report_decides_the_outcome_without_a_signal(
    end: Exit, report: AgentReport, verdict: Verdict, kind: FailureKind | None
) -> None:
    outcome = judge(end, NONE, report)
    assert (outcome.verdict, outcome.kind) == (verdict, kind)


@each_row(
    "end,report,kind",
    [
        (Exited(0), SILENT, FailureKind.EMPTY),
        (HungAfterResult("result_grace", 30), SILENT, FailureKind.EMPTY),
        (Exited(0), AgentReport(answered=False), FailureKind.EMPTY),  # text output
        (Exited(0), WELL, None),
        (Exited(0), TEXT, None),
    ],
)
def test_success_without_answer_and_changes_has_kind_empty(
    end: Exit, report: AgentReport, kind: FailureKind | None
) -> None:
    assert judge(end, NONE, report, changed=False).kind is kind


def test_silent_unknown_command_is_not_a_failure() -> None:
    assert judge(Exited(0), NONE, None, changed=False).verdict is Verdict.CONTINUE


@each_row("kind", REPORTED_KINDS)
@each_row("end", [Exited(0), Exited(1), Exited(145), KILLED, HungAfterResult("result_grace", 30)])
def test_fault_decides_the_outcome_with_any_exit_code(end: Exit, kind: FailureKind) -> None:
    outcome = judge(end, NONE, report_with_fault(kind))
    assert outcome.verdict is FAULT_VERDICTS[kind]
    assert outcome.kind is not None
    assert str(outcome.kind) == str(kind)
    assert outcome.reason == "its own words"
    assert outcome.fault is not None


@each_row("kind", REPORTED_KINDS)
def test_signal_takes_precedence_over_a_fault(kind: FailureKind) -> None:
    assert judge(Exited(1), SUCCESS, report_with_fault(kind)) == Outcome(
        Verdict.COMPLETE, despite_exit=True
    )
    assert judge(Exited(1), FAILURE, report_with_fault(kind)).kind is FailureKind.SIGNAL


@each_row(
    "end,verdict,kind",
    [
        (TimedOut("idle_timeout", 5), Verdict.FAILURE, FailureKind.TIMEOUT),
        (Canceled("max_cost", "too much"), Verdict.FAILURE, FailureKind.BUDGET),
        (Interrupted(signal.SIGINT), Verdict.INTERRUPTED, None),
        (Lost("no warden"), Verdict.FAILURE, FailureKind.CRASH),
        (NotStarted("no such file"), Verdict.ABORT, FailureKind.NOT_STARTED),
    ],
)
def test_report_is_ignored_if_rooda_stopped_the_agent(
    end: Exit, verdict: Verdict, kind: FailureKind | None
) -> None:
    for report in (
        WELL,
        BADLY,
        CUT,
        report_with_fault(FailureKind.LIMIT),
        report_with_fault(FailureKind.AUTH),
    ):
        outcome = judge(end, SUCCESS, report)
        assert (outcome.verdict, outcome.kind) == (verdict, kind)


def test_result_of_an_agent_that_hangs_afterwards_counts() -> None:
    end = HungAfterResult("result_grace", 30)
    assert judge(end, SUCCESS, WELL) == Outcome(Verdict.COMPLETE)
    assert judge(end, NONE, WELL) == Outcome(Verdict.CONTINUE)


def test_reason_of_a_missing_result_names_the_current_retry() -> None:
    for end in (Exited(0), Exited(1), KILLED):
        reason = judge(end, NONE, CUT).reason
        assert "without the result" in reason
        assert "429 (try 3 of 10)" in reason


def test_ignore_exit_status_does_not_ignore_limits_and_auth_failures() -> None:
    def verdict(end: Exit, report: AgentReport) -> Verdict:
        return judge(end, NONE, report, ignore_exit_status=True).verdict

    assert verdict(Exited(1), CUT) is Verdict.CONTINUE
    assert verdict(Exited(1), MUTE) is Verdict.CONTINUE
    assert verdict(Exited(1), report_with_fault(FailureKind.LIMIT)) is Verdict.LIMITED
    assert verdict(Exited(0), report_with_fault(FailureKind.AUTH)) is Verdict.ABORT


# -- the reaction of the run -----------------------------------------------------------------

LIMITS = Limits(max_iterations=9, failure_threshold=3)


@pytest.mark.parametrize("kind,rule", [(AUTH, StopRule.AUTH), (USAGE, StopRule.USAGE)])
def test_failure_that_needs_the_user_aborts_the_run(kind: FailureKind, rule: StopRule) -> None:
    found = stop(State().after(judge(Exited(1), NONE, report_with_fault(kind)), 1.0), LIMITS)
    assert found is not None
    assert (found.status, found.rule, found.reason) == (Status.ABORTED, rule, "its own words")


def test_other_failures_count_toward_the_threshold() -> None:
    state = State()
    for number in range(3):
        assert stop(state, LIMITS) is None, number
        state = state.after(judge(Exited(1), NONE, report_with_fault(FailureKind.CONTEXT)), 1.0)
    found = stop(state, LIMITS)
    assert found is not None
    assert found.rule is StopRule.FAILURE_THRESHOLD


@pytest.mark.parametrize("kind", [FailureKind.LIMIT, FailureKind.OVERLOADED, FailureKind.OFFLINE])
def test_limit_and_outage_count_neither_as_failure_nor_as_iteration(kind: FailureKind) -> None:
    state = State(consecutive_failures=2)
    after = state.after(judge(Exited(1), NONE, report_with_fault(kind)), 1.0)
    assert after.iteration == state.iteration
    assert after.consecutive_failures == 2
    assert stop(after, LIMITS) is None


# -- the classification of messages ----------------------------------------------------------

KINDS_BY_MESSAGE = {
    "The model returned an empty response with no text or thoughts.": FailureKind.EMPTY,
    "Model stream ended with empty response text.": FailureKind.EMPTY,
    # claude
    "You've hit your limit · resets 11:14am (UTC)": LIMIT,
    "Claude AI usage limit reached|1794725026": LIMIT,
    "5-hour limit reached ∙ resets 3pm": LIMIT,
    "API Error: Request rejected (429) · This request would exceed your rate limit.": LIMIT,
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary": OVERLOADED,
    'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal"}}': OVERLOADED,
    "API Error: Connection error.": OFFLINE,
    "API Error: Request timed out.": OFFLINE,
    "Unable to connect to API (ConnectionRefused)": OFFLINE,
    "Invalid API key · Fix external API key": AUTH,
    "Invalid API key · Please run /login": AUTH,
    "OAuth token has expired. Please obtain a new token": AUTH,
    "Not logged in · Please run /login": AUTH,
    "Credit balance is too low": AUTH,
    "Prompt is too long · the request is ~1234567 tokens (limit 200000)": CONTEXT,
    "There's an issue with the selected model (opus-9). It may not exist.": USAGE,
    "--dangerously-skip-permissions cannot be used with root/sudo privileges": USAGE,
    "error: unknown option '--frobnicate'": USAGE,
    # codex
    "exceeded retry limit, last status: 429 Too Many Requests": OVERLOADED,
    "Quota exceeded. Check your plan and billing details.": LIMIT,
    "You've hit your usage limit. Upgrade to Pro or try again in 3 hours 5 minutes.": LIMIT,
    "unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1/x": OVERLOADED,
    "unexpected status 502 Bad Gateway: <html>": OVERLOADED,
    "stream disconnected before completion: error sending request for url (https://x)": OFFLINE,
    "unexpected status 401 Unauthorized: Incorrect API key provided: dummy., url: x": AUTH,
    '{"error": {"message": "Your input exceeds the context window of this model."}}': CONTEXT,
    "Input exceeds the maximum length of 1048576 characters": CONTEXT,
    "error: unexpected argument '--frobnicate' found": USAGE,
    "The 'gpt-9' model is not supported when using Codex with a ChatGPT account.": USAGE,
    # gemini
    "TerminalQuotaError: You have exhausted your daily quota on this model.": LIMIT,
    '_ApiError: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}': LIMIT,
    '_ApiError: {"error":{"code":503,"message":"The model is overloaded."}}': OVERLOADED,
    '_ApiError: {"error":{"code":401,"message":"API key not valid."}}': AUTH,
    '_ApiError: {"error":{"code":400,"message":"prompt is too long: 1234567 tokens"}}': CONTEXT,
    '_ApiError: {"error":{"code":404,"message":"models/gemini-9 is not found"}}': USAGE,
    "request to https://x failed, reason: getaddrinfo ENOTFOUND x": OFFLINE,
    "Unknown arguments: frobnicate, frob": USAGE,
    # other CLIs
    "[API Error: 401 Incorrect API key provided: dummy.]": AUTH,
    "[API Error: 429 Throttled.]": OVERLOADED,
    "Last error: 429 This request would exceed your organization's rate limit": LIMIT,
    "Authentication failed with provider at http://x/v1 (HTTP 401).": AUTH,
    "ProviderModelNotFoundError": USAGE,
    "Overloaded": OVERLOADED,
    # outages, in messages of various CLIs, proxies and runtimes
    "API Error: Overloaded": OVERLOADED,
    "Repeated 529 Overloaded errors": OVERLOADED,
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}': OVERLOADED,
    "API Error: 503 upstream connect error or disconnect/reset before headers.": OVERLOADED,
    "upstream connect error or disconnect/reset before headers": OVERLOADED,
    "API Error: 502 <html><head><title>502 Bad Gateway</title></head></html>": OVERLOADED,
    "HTTP/1.1 503 Service Unavailable": OVERLOADED,
    "Request failed with status code 503": OVERLOADED,
    "the request returned 502": OVERLOADED,
    "Service Unavailable": OVERLOADED,
    "Bad Gateway": OVERLOADED,
    "Gateway Timeout": OVERLOADED,
    "504 Deadline Exceeded": OVERLOADED,
    "An internal error has occurred. Please retry": OVERLOADED,
    "The model is overloaded. Please try again later.": OVERLOADED,
    '"status": "UNAVAILABLE"': OVERLOADED,
    "The model is temporarily unavailable": OVERLOADED,
    "We're currently experiencing high demand, which may cause temporary errors.": OVERLOADED,
    "Selected model is at capacity. Please try a different model.": OVERLOADED,
    "The server is busy, please try again later": OVERLOADED,
    "ConnectError: [unavailable] Error": OVERLOADED,
    "ConnectError: [internal] internal error": OVERLOADED,
    "Kiro is having trouble responding right now": OVERLOADED,
    "The request failed: ServiceUnavailableException": OVERLOADED,
    "API Error: The socket connection was closed unexpectedly.": OFFLINE,
    "API Error: Unable to connect to API (ECONNRESET)": OFFLINE,
    "API Error: terminated": OFFLINE,
    "API Error: Premature close": OFFLINE,
    "connect ECONNREFUSED 127.0.0.1:443": OFFLINE,
    "read ECONNRESET": OFFLINE,
    "getaddrinfo EAI_AGAIN api.openai.com": OFFLINE,
    "connect ETIMEDOUT 1.2.3.4:443": OFFLINE,
    "connect EHOSTUNREACH 1.2.3.4:443": OFFLINE,
    "connect ENETUNREACH 1.2.3.4:443": OFFLINE,
    "TypeError: fetch failed": OFFLINE,
    "[API Error: exception TypeError: fetch failed sending request]": OFFLINE,
    "network error": OFFLINE,
    "socket hang up": OFFLINE,
    "stream disconnected before completion: Transport error: network error": OFFLINE,
    "dns error: failed to lookup address information": OFFLINE,
    "net/http: TLS handshake timeout": OFFLINE,
    "tls handshake eof": OFFLINE,
    "Temporary failure in name resolution": OFFLINE,
    "curl: (6) Could not resolve host: api.anthropic.com": OFFLINE,
    "Unable to connect. Is the computer able to access the url?": OFFLINE,
    "ConnectError: [unavailable] getaddrinfo ENOTFOUND api2.cursor.sh": OFFLINE,
    "Failed to send the request: dispatch failure": OFFLINE,
    "No internet connection": OFFLINE,
    "Network is unreachable": OFFLINE,
    "connect: no route to host": OFFLINE,
    "peer closed connection without sending complete message body": OFFLINE,
    "Idle timeout waiting for SSE": OFFLINE,
    # A login that fails for lack of a network is not a rejected login.
    "Failed to authenticate: getaddrinfo EAI_AGAIN oauth2.googleapis.com": OFFLINE,
    # request limits end within minutes
    "API Error: Rate limit reached": OVERLOADED,
    "API Error: Server is temporarily limiting requests (not your usage limit)": OVERLOADED,
    "rate limit of 30,000 input tokens per minute. Please try again later.": OVERLOADED,
    'API Error: 429 {"error":{"type":"rate_limit_error","message":"Slow down."}}': OVERLOADED,
    "Rate limit reached on tokens per min (TPM): Limit 1. Please try again in 2s.": OVERLOADED,
    "429 Too Many Requests, retry after 20s": OVERLOADED,
    "HTTP 429: please try again in 20 seconds": OVERLOADED,
    "ThrottlingException: Too many tokens, please wait before trying again.": OVERLOADED,
    "Please retry in 2s. To increase your limits, request a quota increase. (429)": OVERLOADED,
    # usage limits do not
    "API Error: Request rejected (429) · This would exceed your account's rate limit.": LIMIT,
    "API Error: Request rejected (429)": LIMIT,
    "Rate limit reached on requests per day (RPD). Please try again in 7m12s.": LIMIT,
    "429 Too many requests. Please try again in 4 hours": LIMIT,
    "429 Too many requests. Please try again at 11:14am (UTC)": LIMIT,
    "HTTP 429, retry-after: 14400": LIMIT,
    "You exceeded your current quota. Please retry in 34.07s.": LIMIT,
    "You've hit your limit · resets in 2 seconds": LIMIT,
    "Sorry, you've hit a rate limit of Copilot. Please try again in 53 minutes.": LIMIT,
    "You have reached your monthly limit": LIMIT,
    # unknown messages
    "could not resolve model alias": None,
    "Something went wrong": None,
    "Execution error": None,
    "error_during_execution": None,
    "Error: Reached max turns (5)": None,
    "an error": None,
    "": None,
}


@each_row("words,kind", KINDS_BY_MESSAGE.items(), ids=lambda value: str(value)[:40])
def test_message_is_classified(words: str, kind: FailureKind | None) -> None:
    assert classify(words) is kind


@each_row(
    "status,kind",
    [
        (400, None),
        (401, AUTH),
        (403, AUTH),
        (429, LIMIT),
        (500, OVERLOADED),
        (502, OVERLOADED),
        (503, OVERLOADED),
        (529, OVERLOADED),
        (None, None),
    ],
)
def test_http_status_classifies_an_unknown_message(
    status: int | None, kind: FailureKind | None
) -> None:
    assert classify("it did not work", status) is kind


@each_row(
    "words,left,kind",
    [
        ("it did not work", None, LIMIT),  # in doubt, wait longer
        ("it did not work", 2.0, OVERLOADED),
        ("it did not work", 600.0, OVERLOADED),
        ("it did not work", 601.0, LIMIT),
        ("Too many requests", 14400.0, LIMIT),
        ("30,000 tokens per minute", 14400.0, LIMIT),
        ("daily quota", 2.0, LIMIT),
    ],
)
def test_remaining_time_and_words_classify_status_429(
    words: str, left: float | None, kind: FailureKind
) -> None:
    assert classify(words, 429, left) is kind


def test_huge_message_is_classified() -> None:
    assert classify("429 Too Many Requests " + "x" * 5_000_000) is OVERLOADED
    assert classify(" " * 100_000 + "model" * 100_000) is None


# -- quoted messages do not count ------------------------------------------------------------

FAULT_KINDS = {str(kind) for kind in REPORTED_KINDS}


@cache
def evidence() -> tuple[str, ...]:
    """Return all failure messages in the recorded outputs, and those of the table above."""
    found = []
    for one in transcripts():
        fault = read_output(one.command, one.pieces(), one.end).report.fault
        words = (fault.evidence if fault else "", one.stdout.decode().strip())
        found += [one_of for one_of in words if one_of and "\n" not in one_of]
    known = [words for words, kind in KINDS_BY_MESSAGE.items() if kind is not None]
    return tuple(dict.fromkeys([*(words for words in found if classify(words)), *known]))


def test_evidence_of_the_following_tests_covers_all_kinds() -> None:
    assert len(evidence()) > 50
    assert {classify(words) for words in evidence()} == set(REPORTED_KINDS)


def places(voice: Voice, words: str) -> dict[str, list[Object]]:
    """Return events that contain these words without being a message of the CLI."""
    quoted = f"The log says:\n\n```\n{words}\n```\nSo I tried it again."
    listing = f"README.md:12:{words}\ntest_rate_limit.py:429:    assert error == {words!r}"
    return {
        "answer": voice.says(quoted),
        "bare answer": voice.says(words),
        "command": voice.uses("bash", {"command": f"grep -r '{words}' ."}),
        "file name": voice.uses("read", {"path": words}),
        "tool": voice.tool_prints(words),
        "listing": voice.tool_prints(listing),
        "JSON in a tool": voice.tool_prints(f'{{"error": {{"code": 429, "message": "{words}"}}}}'),
        "prompt": voice.echoes_prompt(words),
    }


def has_fault(command: str, *pieces: Piece, codes: tuple[int, ...] = (0, 1, 137)) -> bool:
    """Return whether the pieces give a fault with any of these exit codes."""
    reader = reader_of(command)
    for stream, data in pieces:
        reader.feed(stream, data)
    reader.finish()
    for code in codes:
        report = reader.report(code)
        outcome = judge(Exited(code), NONE, report)
        is_stopped = outcome.verdict in (Verdict.LIMITED, Verdict.ABORT)
        if is_stopped or report.fault is not None or str(outcome.kind) in FAULT_KINDS:
            return True
    return False


def printed(*events: Sequence[Object]) -> Piece:
    return "stdout", b"".join(line(event) for several in events for event in several)


@pytest.mark.long
@each_row("voice", VOICES, ids=[voice.name for voice in VOICES])
def test_failure_messages_in_answers_tools_and_prompts_are_not_faults(voice: Voice) -> None:
    begins, ends = voice.begins(), [*voice.says("Done."), *voice.ends("Done.")]
    for words in evidence():
        for place, events in places(voice, words).items():
            assert not has_fault(voice.command, printed(begins, events)), (place, words)
            assert not has_fault(voice.command, printed(begins, events, ends)), (place, words)


TEXTS = [(cli, COMMANDS[cli, form]) for cli, form in COMMANDS if form == "text"]
TEXTS += [("cursor-agent", "cursor-agent -p"), ("kiro-cli", "kiro-cli chat --no-interactive")]
each_text = each_row("command", [c for _, c in TEXTS], ids=[c for c, _ in TEXTS])


@each_text
def test_failure_messages_quoted_in_a_text_answer_are_not_faults(command: str) -> None:
    for words in evidence():
        for answer in (f"I read the log:\n{words}\nand went on.", f"It says: {words}"):
            assert not has_fault(command, ("stdout", answer.encode())), words


@each_text
def test_failure_message_beside_a_text_answer_is_not_a_fault_with_exit_code_0(command: str) -> None:
    for words in evidence():
        data = words.encode()
        assert not has_fault(command, ("stdout", b"Well."), ("stderr", data), codes=(0,)), words


IN_PLACE_OF_AN_ANSWER = {
    "Invalid API key · Please run /login": AUTH,
    "Not logged in · Please run /login": AUTH,
    "OAuth token has expired. Please obtain a new token": AUTH,
    "Credit balance is too low": AUTH,
    "Error: Incorrect API key provided: dummy.": AUTH,
    "ERROR: unexpected status 401 Unauthorized: Incorrect API key provided: dummy., url: x": AUTH,
    "[API Error: 401 Incorrect API key provided: dummy.]": AUTH,
    "error: You are not logged in, please log in with kiro-cli login": AUTH,
    "Your account is on hold and can't use Claude Code. View details or appeal: x": AUTH,
    "Your organization does not have access to Claude. Please login again or contact x.": AUTH,
    "Your workspace is out of credits": AUTH,
    "You've hit your limit · resets 11:14am (UTC)": LIMIT,
    "You've hit your org's monthly spend limit": LIMIT,
    "You've hit your team's shared budget": LIMIT,
    "Your org is out of usage · add funds to continue": LIMIT,
    "Opus weekly limit reached ∙ resets Oct 6, 1pm": LIMIT,
    "You\u2019ve hit your usage limit. Try again at 7:02 AM.": LIMIT,
    "Claude AI usage limit reached|1794725026": LIMIT,
    "5-hour limit reached ∙ resets 3pm": LIMIT,
    "API Error: Request rejected (429) · This request would exceed your rate limit.": LIMIT,
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary": OVERLOADED,
    "API Error: 502\n<html>\n<body>Bad Gateway</body>\n</html>": OVERLOADED,
    "Kiro is having trouble responding right now": OVERLOADED,
    "You have exhausted your capacity on this model": OVERLOADED,
    "Policy-restricted capacity is unavailable. Please try again later.": OVERLOADED,
    "API Error: Connection error.": OFFLINE,
    "Unable to connect to API (ConnectionRefused)": OFFLINE,
    "Unable to connect to Anthropic services": OFFLINE,
    "Unable to connect to Anthropic services\n\nFailed to connect to api.anthropic.com: x\n\n"
    "Please check your internet connection and network settings.": OFFLINE,
}
KNOWN_TEXTS = [command for cli, command in TEXTS if cli in KNOWN]


@pytest.mark.parametrize("before", ["", "\n", "Starting claude ...\n"])
@pytest.mark.parametrize("words,kind", IN_PLACE_OF_AN_ANSWER.items())
def test_error_in_place_of_a_text_answer_is_a_fault_with_exit_code_0(
    words: str, kind: FailureKind, before: str
) -> None:
    for command in KNOWN_TEXTS:
        report = read_output(command, [("stdout", f"{before}{words}\n".encode())]).report
        assert report.fault is not None, command
        assert report.fault.kind is kind
        assert judge(Exited(0), NONE, report).verdict is FAULT_VERDICTS[kind]
    for command in ("aider --yes", "kimi --print"):
        assert not has_fault(command, ("stdout", words.encode()), codes=(0,))


@pytest.mark.parametrize("words,kind", IN_PLACE_OF_AN_ANSWER.items())
def test_error_in_place_of_a_text_answer_has_its_kind_with_a_bad_exit_code_too(
    words: str, kind: FailureKind
) -> None:
    for command in KNOWN_TEXTS:
        reader = reader_of(command)
        reader.feed("stdout", f"{words}\n".encode())
        reader.finish()
        assert judge(Exited(1), NONE, reader.report(1)).kind is kind, command


def test_error_on_stderr_without_an_answer_is_a_fault_with_exit_code_0() -> None:
    pieces: list[Piece] = [
        ("stderr", b"YOLO mode is enabled.\nError: Incorrect API key provided: dummy.\n")
    ]
    for command in KNOWN_TEXTS:
        fault = read_output(command, pieces).report.fault
        assert fault is not None, command
        assert fault.kind is AUTH


ANSWERS = [
    "Not logged in users now get status 401.",
    "Invalid API keys are rejected with a message.",
    "OAuth tokens that have expired are refreshed now.",
    "Authentication required a new table; the tests pass.",
    "Rate limit reached: the handler now answers 429.",
    "Error handling of authentication is done.",
    "Error: 3 tests of the usage limit still fail.",
    "Overloaded operators are tested now.",
    "- Invalid API key · Please run /login",
    "`Invalid API key · Please run /login`",
    '"You\'ve hit your limit" is what it prints then.',
    "The message was wrong. It is now:\nInvalid API key · Please run /login",
    "I fixed the login.\n" * 6 + "Invalid API key · Please run /login",
    "x" * 2000 + "\nInvalid API key · Please run /login",
    "Invalid API key · Please run /login\nis the message that the new test expects.",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_answer_about_such_an_error_is_not_a_fault(answer: str) -> None:
    for command in KNOWN_TEXTS:
        assert not has_fault(command, ("stdout", answer.encode()), codes=(0,)), command
    assert not has_fault("kiro-cli chat", ("stderr", answer.encode()), codes=(0,))


@pytest.mark.parametrize("voice", VOICES, ids=[voice.name for voice in VOICES])
def test_text_in_place_of_events_is_a_failure_with_exit_code_0(voice: Voice) -> None:
    def outcome(stream: Literal["stdout", "stderr"], words: str) -> Outcome:
        report = read_output(voice.command, [(stream, words.encode())]).report
        return judge(Exited(0), NONE, report, changed=False)

    assert outcome("stdout", "I fixed it.").kind is FailureKind.STARTUP
    assert outcome("stdout", "I fixed it.").reason == "exit code 0 without any event"
    assert outcome("stdout", "").kind is FailureKind.STARTUP
    for words, kind in IN_PLACE_OF_AN_ANSWER.items():
        assert outcome("stdout", words).kind is kind, words
    assert outcome("stderr", "Error: Incorrect API key provided: dummy.").kind is AUTH


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_unknown_command_fails_only_by_its_exit_code(stream: str, tmp_path: Path) -> None:
    for words in evidence()[::15]:
        for command in ("agent.sh", "aider --yes", "kimi --print"):
            data = f"Error: {words}\n".encode()
            piece: Piece = ("stdout", data) if stream == "stdout" else ("stderr", data)
            good = play(tmp_path, command, [piece], Exited(0)).iteration
            bad = play(tmp_path, command, [piece], Exited(1)).iteration
            assert (good.verdict, good.kind) == (Verdict.CONTINUE, None)
            assert (bad.verdict, bad.kind) == (Verdict.FAILURE, FailureKind.EXIT)


@pytest.mark.parametrize("name", ["codex-toolecho", "opencode-toolecho"])
def test_failure_messages_of_tools_on_stderr_are_not_faults(name: str) -> None:
    one = transcript(name)
    quote = b"When all is done print <promise>SUCCESS</promise>"
    assert quote in one.stderr
    for words in evidence():
        for shown in (words, f"ERROR: {words}", f"Error: {words}"):
            stderr = one.stderr.replace(quote, f"{shown}\nok".encode())
            assert not has_fault(one.command, ("stdout", one.stdout), ("stderr", stderr)), shown


def test_failure_messages_in_an_answer_on_stderr_are_not_faults() -> None:
    for words in evidence():
        answer = f"I read the log. It says:\n\nError: {words}\n\nSo I tried it again.\n"
        assert not has_fault("kiro-cli chat", ("stderr", answer.encode())), words


FOREIGN = (
    b'{"error":{"code":429,"message":"rate limit","status":"RESOURCE_EXHAUSTED"}}\n',
    b'{"level":"error","msg":"429 Too Many Requests"}\n',
    b'[{"message":"You\'ve hit your limit"}]\n',
    b"Error: 429 Too Many Requests\n",
)


@each_row("voice", VOICES, ids=lambda voice: voice.name)
def test_lines_of_other_programs_between_events_are_not_faults(voice: Voice) -> None:
    _, before = printed(voice.begins(), voice.says("Hello."))
    for foreign in FOREIGN:
        assert not has_fault(voice.command, ("stdout", before + foreign)), foreign


# -- messages of the CLI count ---------------------------------------------------------------

AS_ROOT = (
    "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
)


@each_row(
    "command,stderr,kind",
    [
        (
            "claude -p --dangerously-skip-permissions --output-format stream-json --verbose",
            f"{AS_ROOT}\n",
            USAGE,
        ),
        ("claude -p --frobnicate", "error: unknown option '--frobnicate'\n", USAGE),
        (
            "codex exec --json --frobnicate -",
            "error: unexpected argument '--frobnicate' found\n\nUsage: codex exec\n\nSee --help\n",
            USAGE,
        ),
        ("codex exec --json -", "Error: Input exceeds the maximum length of 1048576\n", CONTEXT),
        ("gemini -o stream-json", "Please set an Auth method in your settings.json\n", AUTH),
        ("qwen --yolo", "[API Error: 429 Throttled.]\n", OVERLOADED),
        ("copilot --allow-all -s", "\nError: No authentication information found.\n", AUTH),
        ("cursor-agent -p", "Error: Not logged in. Run cursor-agent login\n", AUTH),
        (
            "kiro-cli chat",
            "error: You are not logged in, please log in with kiro-cli login\n",
            AUTH,
        ),
        ("opencode run", "\x1b[91m\x1b[1mError: \x1b[0mOverloaded\n", OVERLOADED),
        # The page of a proxy ends the message.
        ("opencode run", "Error: Bad Gateway: <html>\n<body>no</body>\n</html>\n", OVERLOADED),
        (
            "codex exec -",
            "ERROR: unexpected status 502 Bad Gateway: <html>\n<hr>\n</html>, url: http://x\n",
            OVERLOADED,
        ),
        ("cursor-agent -p", "ConnectError: [unavailable] Error\n    at x (y.js:1)\n", OVERLOADED),
        ("qwen --yolo", "TypeError: fetch failed\n    at node:internal/x:1\n", OFFLINE),
        (
            "kiro-cli chat",
            "error: The request failed:\n   0: dispatch failure\n\nLocation:\n   src/a.rs:12\n",
            OFFLINE,
        ),
        ("kiro-cli chat", "Kiro is having trouble responding right now:\n   0: x\n", OVERLOADED),
    ],
)
def test_last_error_of_a_cli_on_stderr_is_a_fault(
    command: str, stderr: str, kind: FailureKind
) -> None:
    fault = read_output(command, [("stderr", stderr.encode())], Exited(1)).report.fault
    assert fault is not None
    assert fault.kind is kind
    assert "\x1b" not in fault.evidence


@each_row(
    "words,kind",
    [
        ("API Error: 503 upstream connect error", OVERLOADED),
        ("Overloaded", OVERLOADED),
        ("529 Overloaded", OVERLOADED),
        ("Repeated 529 Overloaded errors", OVERLOADED),
        ("Service Unavailable", OVERLOADED),
        ("Unable to connect to API (ConnectionRefused)", OFFLINE),
        ("Connection error.", OFFLINE),
        ("Request timed out.", OFFLINE),
        ("I made the client retry after 503 Service Unavailable.", None),
        ("All 503 tests pass now, ECONNREFUSED is handled.", None),
    ],
)
def test_claude_error_in_place_of_the_text_answer_is_a_fault(
    words: str, kind: FailureKind | None
) -> None:
    fault = read_output("claude -p", [("stdout", words.encode())], Exited(1)).report.fault
    assert (fault and fault.kind) is kind


def test_claude_root_refusal_has_advice() -> None:
    fault = read_output("claude -p", [("stderr", AS_ROOT.encode())], Exited(1)).report.fault
    assert fault is not None
    assert "IS_SANDBOX=1" in fault.advice
    assert "ordinary user" in fault.advice


def test_reset_time_of_a_claude_limit_event_is_kept() -> None:
    voice = VOICES[0]
    info = {"status": "rejected", "resetsAt": 1794739626, "rateLimitType": "five_hour"}
    warning = {"status": "allowed_warning", "resetsAt": 1}
    events = [
        {"type": "rate_limit_event", "rate_limit_info": info},
        {"type": "rate_limit_event", "rate_limit_info": warning},
        *voice.fails("You've hit your limit"),
    ]
    fault = read_output(voice.command, [("stdout", b"".join(map(line, events)))]).report.fault
    assert fault is not None
    assert (fault.kind, fault.resets) == (LIMIT, 1794739626)


def test_warning_before_a_limit_is_not_a_fault() -> None:
    voice = VOICES[0]
    warning = {"status": "allowed_warning", "resetsAt": 1794739626}
    event = {"type": "rate_limit_event", "rate_limit_info": warning}
    events = [*voice.begins(), event, *voice.says("Done."), *voice.ends("Done.")]
    report = read_output(voice.command, [("stdout", b"".join(map(line, events)))]).report
    assert report.fault is None
    assert report.ended_well is True
