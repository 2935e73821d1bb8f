"""Cursor's agent (`cursor-agent`)."""

from collections.abc import Mapping, Sequence

from rooda.world.agents.adapter import JSON_FORMS, Adapter, LastOutput
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Tokens
from rooda.world.agents.facts import (
    AgentFacts,
    SandboxNeeds,
    ToolPermissions,
    has_flag,
    needs_flag,
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
    says_error,
    text,
)


class Cursor(Adapter):
    """Cursor's agent."""

    name = "cursor-agent"
    facts = AgentFacts(
        install="see Cursor's documentation of its CLI",
        nesting=("CURSOR_AGENT",),
        payers={"CURSOR_API_KEY": "the account of the API key"},
        otherwise="the account that `cursor-agent login` chose",
        advice={FailureKind.AUTH: "Run `cursor-agent login`, or set CURSOR_API_KEY"},
    )
    output_flags = ("--output-format",)
    output_forms = JSON_FORMS
    permissions = ToolPermissions(all_tools=("-f", "--force", "--yolo"))
    flag_rules = (needs_flag("-p", "--print", write="cursor-agent -p"),)

    needs = SandboxNeeds(
        credentials=(".config/cursor/auth.json",),
        settings=(".cursor/cli-config.json", ".cursor/rules"),
        variables=("CURSOR_API_*",),
    )

    def without_own_sandbox(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Return the flags with the sandbox off, if the command line has the flag for it.

        Older versions don't have the flag.
        """
        if not has_flag(flags, "--sandbox"):
            return tuple(flags)
        return ("--sandbox", "disabled", *without_flags(flags, "--sandbox"))

    def read(self, event: Event, notes: AgentNotes) -> None:
        """Record the content of an event in the notes."""
        notes.session_id = label(event.get("session_id")) or notes.session_id
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                notes.begins()
                notes.model = label(event.get("model")) or notes.model
            case "assistant":
                read_assistant(event, notes)
            case "tool_call" if event.get("subtype") == "started":
                _tool(part(event, "tool_call"), notes)
            case "tool_call":
                notes.tool_ended()
            case "result":
                _result(event, notes)

    def last_words(self, printed: LastOutput) -> Fault | None:
        """Return the error on stderr."""
        return fault_in(complaint(printed.stderr)) if printed.failed else None


def _tool(call: Event, notes: AgentNotes) -> None:
    """Record a tool call: an object with one key, such as `writeToolCall`, and its arguments."""
    name = next((name for name in call if isinstance(call[name], Mapping)), "")
    notes.uses_tool(name.removesuffix("ToolCall"), part(call, name, "args"))


def _result(event: Event, notes: AgentNotes) -> None:
    usage = part(event, "usage")
    if usage:
        given, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
        read, written = count(usage.get("cacheReadTokens")), count(usage.get("cacheWriteTokens"))
        total = given + output + read + written
        notes.tokens = Tokens(given, output, read, written, total=total)
    failed = says_error(event)
    words = text(event.get("result"))
    if failed:
        notes.fails(words or text(event.get("subtype")) or "an error")
    notes.ends(well=not failed, answer="" if failed else words)


ADAPTER = Cursor()
