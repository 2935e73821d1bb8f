"""Claude Code (`claude`)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rooda.agents import anthropic_events as events
from rooda.agents.adapter import Adapter, Facts, Printed
from rooda.agents.endings import complaint, fault_in
from rooda.agents.flags import flag_value
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form
from rooda.agents.values import (
    Event,
    amount,
    count,
    label,
    part,
    parts,
    says_error,
    status_code,
    text,
)

_FORMS = {"stream-json": Form.EVENTS, "json": Form.DOCUMENT}
# With which words it begins when the answer is none: as text they stand where the answer would.
_ERRORS = re.compile(
    r"API Error(?:: | \()|Invalid API key|You've (?:hit|reached) your|You're out of"
    r"|Claude (?:AI )?usage limit|Prompt is too long|Credit balance|Please run /login|Not logged in"
    r"|Failed to authenticate|OAuth|Your organization|There's an issue with the selected model"
    r"|[\w-]+ limit reached|Execution error|Login expired|Error:|error:"
    r"|Unable to connect to |Connection error|Request timed out|fetch failed|socket hang up"
    r"|upstream connect error|(?:Repeated )?(?:5\d\d )?(?i:overloaded|service unavailable"
    r"|internal server error|bad gateway|gateway timeout)\b"
)
_LONGEST_ERROR = 2000
_SECONDS = 1e11  # of unix time, for some three thousand years
_ROOT = re.compile(r"\broot\b")
_AS_ROOT = (
    "Run rooda as an ordinary user; in a container that is a sandbox of its own, "
    "IS_SANDBOX=1 lifts it (--env IS_SANDBOX=1)"
)


class Claude(Adapter):
    """Claude Code."""

    name = "claude"
    facts = Facts(
        install="npm install -g @anthropic-ai/claude-code",
        nesting=("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"),
        payers={
            "CLAUDE_CODE_USE_BEDROCK": "the Bedrock account",
            "CLAUDE_CODE_USE_VERTEX": "the Vertex account",
            "ANTHROPIC_AUTH_TOKEN": "whoever the bearer token belongs to",
            "ANTHROPIC_API_KEY": "the API key, by use, not a subscription",
            "CLAUDE_CODE_OAUTH_TOKEN": "the subscription of the OAuth token",
            "ANTHROPIC_BASE_URL": "whoever runs that server",
        },
        otherwise="the account that `claude /login` chose",
        tells_cost=True,
        advice={
            FaultKind.AUTH: "Run `claude /login`, or set ANTHROPIC_API_KEY to a key that is valid",
            FaultKind.USAGE: "See `claude --help` for its flags and models",
        },
    )

    def form(self, words: Sequence[str]) -> Form:
        """Its output flag says it."""
        return _FORMS.get(flag_value(words, "--output-format") or "", Form.TEXT)

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of an event of its stream."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system":
                _system(event, notes)
            case "assistant" if text(event.get("error")):
                pass  # the words of an error in place of an answer; the result has them too
            case "assistant":
                events.assistant(event, notes)
            case "user":
                events.user(event, notes)
            case "rate_limit_event":
                info = part(event, "rate_limit_info")
                if text(info.get("status")) == "rejected":
                    resets = amount(info.get("resetsAt"))
                    # Some day it may be milliseconds, as such times often are.
                    notes.resets = resets / 1000 if resets and resets > _SECONDS else resets
            case "result":
                _result(event, notes)

    def last_words(self, printed: Printed) -> Fault | None:
        """It puts errors where the answer would be; what it refuses at its start on stderr."""
        if not printed.failed:
            return None
        words = printed.stdout.strip()
        if printed.form is Form.TEXT and len(words) <= _LONGEST_ERROR and _ERRORS.match(words):
            return fault_in(words)
        fault = fault_in(complaint(printed.stderr))
        return replace(fault, advice=_AS_ROOT) if fault and _ROOT.search(fault.evidence) else fault


def _system(event: Event, notes: Notes) -> None:
    match event.get("subtype"):
        case "init":
            notes.begins()
            notes.model = label(event.get("model")) or notes.model
        case "api_retry":
            status = status_code(event.get("error_status"))
            words = f"{status or ''} {text(event.get('error'))}".strip()
            attempt, most = count(event.get("attempt")), count(event.get("max_retries"))
            notes.retries(f"{words} (try {attempt} of {most})")


def _result(event: Event, notes: Notes) -> None:
    _numbers(event, notes)
    for denied in parts(event.get("permission_denials")):
        notes.note(f"was not allowed to use {text(denied.get('tool_name'))}")
    failed = says_error(event)
    words = text(event.get("result"))
    if failed:
        status = status_code(event.get("api_error_status"))
        errors = event.get("errors")
        more = " ".join(filter(None, map(text, errors))) if isinstance(errors, list) else ""
        notes.fails(words or more or text(event.get("subtype")) or "an error", status)
    notes.ends(well=not failed, answer="" if failed else words)


def _numbers(event: Event, notes: Notes) -> None:
    turns = count(event.get("num_turns"))
    notes.turns = turns or notes.turns
    notes.tokens = events.tokens(part(event, "usage"))
    notes.cost = amount(event.get("total_cost_usd"))
    if notes.context_used is None and turns == 1:
        notes.context_used = notes.tokens.total
    models = part(event, "modelUsage")
    main = max(models, key=lambda name: events.read_by(part(models, name)), default=None)
    if main is not None:
        notes.model = notes.model or label(main)
        notes.window = count(part(models, main).get("contextWindow")) or notes.window
