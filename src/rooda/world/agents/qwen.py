"""Qwen Code (`qwen`)."""

import re
from collections.abc import Sequence

from rooda.world.agents.adapter import JSON_FORMS, Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Tokens
from rooda.world.agents.facts import (
    ADDS_WORDS,
    AgentFacts,
    SandboxNeeds,
    ToolPermissions,
    rejects_flags,
    without_flags,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import complaint, fault_in
from rooda.world.agents.json_events import (
    Event,
    count,
    label,
    part,
    read_assistant,
    read_user,
    text,
)

# qwen prints an error in place of the answer, in an event that is not marked as an error.
_ERROR = re.compile(r"\s*\[API Error: .*\]\s*", re.DOTALL)


class Qwen(Adapter):
    """Qwen Code."""

    name = "qwen"
    facts = AgentFacts(
        install="npm install -g @qwen-code/qwen-code",
        nesting=("QWEN_CODE",),
        payers={
            "OPENAI_API_KEY": "the API key, by use",
            "DASHSCOPE_API_KEY": "the DashScope key, by use",
            "OPENAI_BASE_URL": "the operator of that server",
        },
        otherwise="the account of the `qwen` login",
        advice={
            FailureKind.AUTH: "Run `qwen` and log in with /auth, or set OPENAI_API_KEY to "
            "a valid key"
        },
    )
    output_flags = ("-o", "--output-format")
    output_forms = JSON_FORMS
    permissions = ToolPermissions(
        all_tools=("--yolo", "-y", "--approval-mode=yolo"),
        some_tools=("--approval-mode=auto-edit", "--allowed-tools"),
    )
    flag_rules = (*rejects_flags("-i", "--prompt-interactive"), ADDS_WORDS)

    needs = SandboxNeeds(
        credentials=(".qwen/oauth_creds.json",),
        settings=(".qwen/settings.json", ".qwen/QWEN.md", ".qwen/.env"),
        environ={"QWEN_SANDBOX": "false", "GEMINI_SANDBOX": "false"},
        variables=("QWEN_*", "OPENAI_*", "DASHSCOPE_*"),
    )

    def without_own_sandbox(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return the flags without the sandbox; QWEN_SANDBOX overrides the user's settings."""
        return without_flags(flags, "--sandbox-image", switches=("-s", "--sandbox"))

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                notes.begins()
                notes.model = label(event.get("model")) or notes.model
            case "assistant" if not _is_error(event):
                read_assistant(event, notes)
            case "user":
                read_user(event, notes)
            case "result":
                _result(event, notes)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error on stderr."""
        return fault_in(complaint(printed.stderr)) if printed.failed else None


def _is_error(event: Event) -> bool:
    """Return whether the text is an error: it looks like one and has no output tokens."""
    message = part(event, "message")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    words = "".join(text(part(block).get("text")) for block in blocks)
    return bool(_ERROR.fullmatch(words)) and not count(part(message, "usage").get("output_tokens"))


def _result(event: Event, notes: AgentNotes) -> None:
    usage = part(event, "usage")
    given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    total = count(usage.get("total_tokens")) or given + output
    read = count(usage.get("cache_read_input_tokens"))
    notes.tokens = Tokens(given, output, read, total=total)
    notes.turns = count(event.get("num_turns")) or notes.turns
    words = text(event.get("result"))
    error = text(part(event, "error").get("message"))
    failed = event.get("is_error") is True or (bool(_ERROR.fullmatch(words)) and not output)
    if failed:
        notes.fails(error or words or text(event.get("subtype")) or "an error")
    notes.ends(well=not failed, answer="" if failed else words)


ADAPTER = Qwen()
